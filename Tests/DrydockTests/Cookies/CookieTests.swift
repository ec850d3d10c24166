// The cookies of a manager: sent, taken, stored with responses, kept in a file, and in the program's hands.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import TestSupport
import Testing

@Suite struct CookieTests {
    /// Sets what the query says, and answers what it got.
    private static func reply(_ request: OriginRequest) -> OriginReply {
        let query = request.target.split(separator: "?").dropFirst().first.map(String.init) ?? ""
        let set = query.isEmpty ? [] : [("Set-Cookie", query.replacing("+", with: "; "))]
        return .answer(
            to: request,
            fields: set + [("Cache-Control", "no-store")],
            request.field("Cookie") ?? "none"
        )
    }

    private func manager(
        _ file: URL,
        _ log: RecordedLog = RecordedLog()
    ) -> DownloadManager {
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.cookies = .file(file)
        return DownloadManager(configuration: configuration, logger: log.logger)
    }

    @Test func whatIsSetIsSent() async throws {
        for (storage, expected) in [(CookieSettings.none, "none"), (.memory, "a=1")] {
            try await withManager {
                $0.cookies = storage
            } _: { request in
                Self.reply(request)
            } _: { manager, origin async throws in
                let first = try await manager.download(origin.url("/x?a=1"))
                #expect(first.text == "none")
                #expect(first.head.headerFields[.setCookie] == "a=1")
                #expect(try await manager.download(origin.url("/y")).text == expected)
                #expect(try await manager.download(origin.request("/y", [.cookie: "own=2"])).text == "own=2")
            }
        }
    }

    @Test func responsesAreKeptApartByTheirCookies() async throws {
        try await withManager {
            $0.cookies = .memory
        } _: { request in
            .answer(to: request, fields: [("Cache-Control", "private, max-age=600")], request.field("Cookie") ?? "none")
        } _: { manager, origin async throws in
            let session = { (value: String) in Cookie(name: "session", value: value, domain: "127.0.0.1") }
            #expect(try await manager.download(origin.url()).text == "none")
            for round in 0..<2 {
                for user in ["anna", "bert"] {
                    try await manager.cookies.set(session(user))
                    let result = try await manager.download(origin.url())
                    #expect(result.text == "session=\(user)")
                    #expect(result.outcome == (round == 0 ? .downloaded : .stillValid))
                }
            }
            try await manager.cookies.removeAll()
            #expect(try await manager.download(origin.url()).text == "none")
            #expect(origin.server.requests() == 3)
        }
    }

    @Test("Which answers to requests with cookies are stored", arguments: CookiePolicy.allCases, ["", "max-age=600"])
    func withCookies(rule: CookiePolicy, control: String) async throws {
        try await withManager {
            $0.cookies = .memory
            $0.cookies.requestCookie = rule
        } _: { request in
            .answer(to: request, fields: control.isEmpty ? [] : [("Cache-Control", control)], "text")
        } _: { manager, origin async throws in
            try await manager.cookies.set(Cookie(name: "a", value: "1", domain: "127.0.0.1"))
            for _ in 0..<2 { _ = try await manager.download(origin.url()) }
            let isStored = rule == .any || rule == .explicit && !control.isEmpty
            #expect(origin.server.requests() == (isStored ? 1 : 2))
            // With any, the cookies make no difference.
            try await manager.cookies.removeAll()
            _ = try await manager.download(origin.url())
            #expect(origin.server.requests() == (rule == .any ? 1 : isStored ? 2 : 3))
        }
    }

    @Test(
        "Which answers that set cookies are stored, and with what",
        arguments: SetCookiePolicy.allCases,
        ["", "max-age=600", "public, max-age=600"]
    )
    func settingCookies(rule: SetCookiePolicy, control: String) async throws {
        try await withManager {
            $0.cookies.setCookie = rule
        } _: { request in
            let lifetime = control.isEmpty ? [] : [("Cache-Control", control)]
            return .answer(to: request, fields: lifetime + [("Set-Cookie", "a=1")], "text")
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url()).head.headerFields[.setCookie] == "a=1")
            let second = try await manager.download(origin.url())
            let isExplicit = !control.isEmpty
            let isStored = rule == .strip || rule != .skip && isExplicit
            #expect(origin.server.requests() == (isStored ? 1 : 2))
            guard isStored else { return }
            let keeps = rule == .explicit || rule == .strict && control.contains("public")
            #expect(second.head.headerFields[.setCookie] == (keeps ? "a=1" : nil))
        }
    }

    @Test func aRedirectThatSetsACookieStoresNothingForOthers() async throws {
        try await withManager {
            $0.cookies = .memory
        } _: { request in
            request.target == "/login"
                ? .answer(302, to: request, fields: [("Location", "/home"), ("Set-Cookie", "session=1; Path=/")], "")
                : .answer(
                    to: request,
                    fields: [("Cache-Control", "private, max-age=600")],
                    request.field("Cookie") ?? "none"
                )
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url("/login")).text == "session=1")
            try await manager.cookies.removeAll()
            // Were it stored for those without a cookie, nobody would be asked.
            #expect(try await manager.download(origin.url("/login")).text == "session=1")
            #expect(origin.count("GET", "/home") == 2)
        }
    }

    // MARK: - The file

    @Test func aRestartReadsTheJar() async throws {
        let folder = try TemporaryFolder("drydock-cookies")
        let file = URL(fileURLWithPath: folder.file("below/cookies.json"))
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        let first = manager(file)
        _ = try await first.download(origin.url("/?a=1+Max-Age=600+Path=/"))
        _ = try await first.download(origin.url("/?b=2"))
        #expect(try await first.download(origin.url("/x")).text == "a=1; b=2")
        await first.close()
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("below")) == ["cookies.json"])
        let second = manager(file)
        // One without a lifetime ends with its manager.
        #expect(try await second.download(origin.url("/x")).text == "a=1")
        let cookies = try await second.cookies.all()
        #expect(cookies.map(\.name) == ["a"])
        #expect(cookies.first?.expires != nil)
        try await second.cookies.removeAll()
        await second.close()
        let third = manager(file)
        #expect(try await third.download(origin.url("/x")).text == "none")
        await third.close()
    }

    @Test("The end of a manager waits for the file, whoever else ends it, and when it is cancelled", arguments: 0..<10)
    func theEndWaitsForTheFile(round: Int) async throws {
        let folder = try TemporaryFolder("drydock-cookies")
        let file = URL(fileURLWithPath: folder.file("cookies.json"))
        let manager = manager(file)
        let values = (0..<200).map { "\($0) of \(round)" }
        for value in values {
            try await manager.cookies.set(
                Cookie(name: "a", value: value, domain: "example.com", expires: Date(timeIntervalSinceNow: 600))
            )
        }
        await withTaskGroup(of: String.self) { group in
            for number in 0..<4 {
                group.addTask {
                    if number > 0 { withUnsafeCurrentTask { $0?.cancel() } }
                    await manager.close()
                    return readText(file.path)
                }
            }
            for await text in group { #expect(text.contains(values[199])) }
        }
    }

    @Test(
        "A bad file costs the cookies and a line of the log",
        arguments: ["", "{", "[1]", #"{"version":2,"cookies":[]}"#]
    )
    func badFile(content: String) async throws {
        let folder = try TemporaryFolder("drydock-cookies")
        let file = URL(fileURLWithPath: folder.file("cookies.json"))
        try Data(content.utf8).write(to: file)
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        let log = RecordedLog()
        let first = manager(file, log)
        #expect(try await first.download(origin.url("/?a=1+Max-Age=600")).text == "none")
        await first.close()
        #expect(log.all.filter { $0.contains("cookies") && $0.hasPrefix("warning") }.count == 1)
        let second = manager(file, log)
        #expect(try await second.download(origin.url("/")).text == "a=1")
        await second.close()
        #expect(log.all.filter { $0.contains("cookies") && $0.hasPrefix("warning") }.count == 1)
    }

    @Test func aFileThatCannotBeWrittenCostsALineOfTheLog() async throws {
        let folder = try TemporaryFolder("drydock-cookies")
        try folder.write("file", "text")
        let log = RecordedLog()
        let manager = manager(URL(fileURLWithPath: folder.file("file/below.json")), log)
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        for number in 0..<3 { _ = try await manager.download(origin.url("/?a=\(number)+Max-Age=600")) }
        #expect(try await manager.download(origin.url("/")).text == "a=2")
        await manager.close()
        #expect(log.all.filter { $0.contains("cookies cannot be written") }.count == 1)
    }

    @Test func whatIsNoFileKeepsTheManagerClosed() async throws {
        for text in ["https://example.com/cookies", "file:///tmp/"] {
            let manager = manager(try #require(URL(string: text)))
            let error = await #expect(throws: DownloadError.self) { try await manager.open() }
            #expect(error?.description.contains("no file for cookies") == true)
            await manager.close()
        }
    }

    // MARK: - In the program's hands

    @Test func aProgramReadsSetsAndRemoves() async throws {
        try await withManager {
            $0.cookies = .memory
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            let cookie = Cookie(name: "a", value: "1", domain: "127.0.0.1", path: "/x")
            try await manager.cookies.set(cookie)
            try await manager.cookies.set(Cookie(name: "b", value: "2", domain: "EXAMPLE.com", isHostOnly: false))
            #expect(try await manager.cookies.all().map(\.domain) == ["127.0.0.1", "example.com"])
            #expect(try await manager.cookies.cookies(for: origin.url("/x/y")) == [cookie])
            #expect(try await manager.cookies.cookies(for: origin.url("/")).isEmpty)
            let below = try #require(URL(string: "https://www.example.com/"))
            #expect(try await manager.cookies.cookies(for: below).map(\.name) == ["b"])
            #expect(try await manager.download(origin.url("/x")).text == "a=1")
            #expect(try await manager.cookies.remove(cookie))
            #expect(try await !manager.cookies.remove(cookie))
            #expect(try await manager.download(origin.url("/x")).text == "none")
            #expect(try await manager.cookies.removeAll() == 1)
            #expect("\(cookie)" == "a of 127.0.0.1/x" && !String(reflecting: cookie).contains("1;"))
        }
    }

    @Test(arguments: [
        Cookie(name: "", value: "1", domain: "a.test"), Cookie(name: "a", value: "1;b", domain: "a.test"),
        Cookie(name: "a", value: "1\r\n", domain: "a.test"), Cookie(name: "a=b", value: "1", domain: "a.test"),
        Cookie(name: "a", value: "1", domain: ""), Cookie(name: "a", value: "1", domain: ".a.test"),
        Cookie(name: "a", value: "1", domain: "a.test", path: "x"), Cookie(name: "a", value: " 1", domain: "a.test"),
        Cookie(name: "a", value: String(repeating: "x", count: 5000), domain: "a.test"),
    ])
    func whatCannotBeSentIsNotSet(_ cookie: Cookie) async throws {
        let manager = makeManager { $0.cookies = .memory }
        await #expect(throws: DownloadError.self) { try await manager.cookies.set(cookie) }
        #expect(try await manager.cookies.all().isEmpty)
        await manager.close()
        let without = makeManager()
        await #expect(throws: DownloadError.self) {
            try await without.cookies.set(Cookie(name: "a", value: "1", domain: "a.test"))
        }
        await without.close()
    }
}
