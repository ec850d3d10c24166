// Credentials of a manager: which origin gets them, and which does not.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct CredentialTests {
    private static func reply(_ request: OriginRequest) -> OriginReply {
        .answer(to: request, fields: [("Cache-Control", "no-store")], request.field("Authorization") ?? "nothing")
    }

    @Test func theOriginGetsWhatIsForIt() async throws {
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        let port = origin.server.port
        let cases: [([String: CredentialSource], String)] = [
            (["http://127.0.0.1:\(port)": .bearer("t")], "Bearer t"),
            (
                ["http://127.0.0.1": .basic(user: "Aladdin", password: "open sesame")],
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
            ),
            (["http://127.0.0.1": .basic(user: "J\u{F6}rg", password: "")], "Basic SsO2cmc6"),
            // The one that says more counts.
            (["http://127.0.0.1": .bearer("host"), "HTTP://127.0.0.1:\(port)": .bearer("port")], "Bearer port"),
            // A host alone means https, and so does an origin that says so.
            (
                ["127.0.0.1": .bearer("t"), "127.0.0.1:\(port)": .bearer("t"), "https://127.0.0.1": .bearer("t")],
                "nothing"
            ),
            (["http://127.0.0.1:1": .bearer("t"), "http://localhost": .bearer("t")], "nothing"),
            ([:], "nothing"),
        ]
        for (credentials, expected) in cases {
            let manager = makeManager { $0.credentials = credentials }
            #expect(try await manager.download(origin.url()).text == expected)
            await manager.close()
        }
    }

    @Test func aRequestWithItsOwnIsSentAsItIs() async throws {
        let asked = Counter()
        try await withManager {
            $0.credentials = [
                "http://127.0.0.1": .asking(first: .bearer("t")) { _ in
                    asked.add()
                    return nil
                }
            ]
        } _: { request in
            .answer(401, to: request, request.field("Authorization") ?? "nothing")
        } _: { manager, origin async throws in
            let response = try await manager.send(
                TransportRequest(origin.request("/a", [.authorization: "Own credentials"]))
            )
            #expect(String(decoding: try await response.body.collect(upTo: 1000), as: UTF8.self) == "Own credentials")
            #expect(asked.value == 0)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func anotherOriginGetsNoneAfterARedirect() async throws {
        let other = try ScriptedOrigin { request in
            .answer(to: request, "\(request.field("Authorization") ?? "-") \(request.field("Cookie") ?? "-")")
        }
        try await withManager {
            $0.credentials = ["http://127.0.0.1": .bearer("t")]
            $0.cookies = .memory
        } _: { request in
            switch request.target {
            case "/set":
                .answer(to: request, fields: [("Set-Cookie", "session=1")], "set")
            case "/away":
                .answer(302, to: request, fields: [("Location", other.url + "/b")], "")
            case "/here":
                .answer(302, to: request, fields: [("Location", "/there"), ("Set-Cookie", "hop=2; Path=/")], "")
            default:
                .answer(to: request, "\(request.field("Authorization") ?? "-") \(request.field("Cookie") ?? "-")")
            }
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url("/set"))
            #expect(try await manager.download(origin.url("/away")).text == "- -")
            #expect(origin.server.log.last?.field("Cookie") == "session=1")
            #expect(origin.server.log.last?.field("Authorization") == "Bearer t")
            // The same origin gets both, with the cookie that the redirect has set.
            #expect(try await manager.download(origin.url("/here")).text == "Bearer t session=1; hop=2")
            #expect(other.log.count == 1)
        }
    }

    @Test func nothingIsSentInTheClearThatIsForTLS() async throws {
        try await withManager {
            $0.credentials = ["https://127.0.0.1": .bearer("t")]
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url()).text == "nothing")
        }
    }

    @Test(arguments: [
        (["ftp://a.test": CredentialSource.bearer("t")], "'ftp://a.test' in credentials is no origin"),
        (["https://a.test/path": .bearer("t")], "no origin"), (["user@a.test": .bearer("t")], "no origin"),
        (["": .bearer("t")], "no origin"), (["a.test": .bearer("two words")], "cannot be sent"),
        (["a.test": .bearer("")], "cannot be sent"), (["a.test": .bearer("t\r\nX: 1")], "cannot be sent"),
        (["a.test": .basic(user: "a:b", password: "")], "cannot be sent"),
        (["a.test": .basic(user: "a", password: "\n")], "cannot be sent"),
    ])
    func whatCannotBeSentKeepsTheManagerClosed(_ credentials: [String: CredentialSource], _ part: String) async throws {
        let manager = makeManager { $0.credentials = credentials }
        do {
            try await manager.open()
            Issue.record("it is open")
        } catch {
            guard case .unavailable(let why) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(why.contains(part))
        }
        await manager.close()
    }

    @Test func whatIsPassedOnHasThemToo() async throws {
        try await withManager {
            $0.credentials = ["http://127.0.0.1": .bearer("t")]
            $0.mode = .http
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            let result = try await manager.download(origin.request("/a", method: .post), body: Data("x".utf8))
            #expect(result.text == "Bearer t")
        }
    }

    @Test func aBatchHasThemToo() async throws {
        try await withManager {
            $0.credentials = ["http://127.0.0.1": .bearer("t")]
        } _: { request in
            request.field("Authorization") == "Bearer t"
                ? .answer(to: request, fields: [("Cache-Control", "private")], "text")
                : .answer(401, to: request, "who?")
        } _: { manager, origin async throws in
            let urls = (0..<3).map { origin.url("/\($0)") }
            let batch = manager.batch(urls.map { DownloadBatch.Item($0) })
            let report = try await batch.run()
            #expect(report.progress.failed == 0)
            for url in urls { #expect(try await manager.download(url).outcome == .stillValid) }
        }
    }
}
