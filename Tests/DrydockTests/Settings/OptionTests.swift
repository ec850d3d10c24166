// What one download wants otherwise than its manager has it, and what a manager does with a
// request of the program's own.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct OptionTests {
    @Test func lifetimeOfOneResource() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            let options = DownloadOptions(lifetime: .zero)
            _ = try await manager.download(origin.url(), options: options)
            #expect(try await manager.download(origin.url(), options: options).outcome == .confirmed)
            #expect(try await manager.download(origin.url()).outcome == .stillValid)
        }
    }

    @Test func forcedDownloads() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            resource.change()
            let options = DownloadOptions(cachePolicy: .reload)
            let forced = try await manager.download(origin.url(), options: options)
            #expect(forced.outcome == .downloaded)
            #expect(forced.text == "version 2")
            #expect(try await manager.download(origin.url()).text == "version 2")
            #expect(origin.count("GET") == 2)
        }
    }

    @Test func aForcedDownloadThatFailsLeavesTheOldOne() async throws {
        let isCut = Monitor(false)
        try await withManager(onDisk: true) { request in
            isCut.read { $0 }
                ? OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "12")]), OriginReply.text("half"), .cut,
                ])
                : .answer(to: request, fields: [("ETag", "\"1\"")], "old and whole")
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            isCut.update { $0 = true }
            let options = DownloadOptions(cachePolicy: .reload)
            let error = await failure { try await manager.download(origin.url(), options: options) }
            #expect(error?.originKind == .cutShort)
            let kept = try await manager.download(origin.url())
            #expect(kept.outcome == .stillValid)
            #expect(kept.text == "old and whole")
        }
    }

    @Test func onlyWhatIsStored() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            let options = DownloadOptions(cachePolicy: .storedOnly)
            let error = await failure { try await manager.download(origin.url(), options: options) }
            guard case .notStored = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(origin.server.requests() == 0)
            _ = try await manager.download(origin.url())
            #expect(try await manager.download(origin.url(), options: options).outcome == .stillValid)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test(arguments: [
        DownloadOptions(lifetime: .zero, cachePolicy: .storedOnly),
        DownloadOptions(cachePolicy: .storedOnly, methods: []),
        DownloadOptions(cachePolicy: .storedOnly, yieldsStaleFirst: true),
    ]) func whoWantsOnlyWhatIsStoredAsksNobody(options: DownloadOptions) async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.forgetRequests()
            for path in ["/a", "/never-stored"] {
                let error = await failure { try await manager.download(origin.url(path), options: options) }
                guard case .notStored = error else {
                    Issue.record("\(error as Any)")
                    continue
                }
            }
            #expect(origin.server.requests() == 0)
            #expect(try await manager.download(origin.url()).outcome == .confirmed, "what is stored is as it was")
        }
    }

    @Test func whatIsOnlyStoredIsNotRefreshed() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.staleWhileRevalidate = .seconds(3600)
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.forgetRequests()
            let result = try await manager.download(origin.url(), options: .init(cachePolicy: .storedOnly))
            #expect(result.text == "version 1")
            #expect(result.outcome == .checkFailed)
            #expect(result.cacheStatus.hasPrefix("hit; ") && result.cacheStatus.hasSuffix("; detail=unrefreshed"))
            // Whatever was begun before this download is over when it is.
            #expect(try await manager.download(origin.url("/b")).outcome == .downloaded)
            #expect(origin.server.log.map(\.target) == ["/b"])
        }
    }

    @Test func whatPassesByChangesNothing() async throws {
        let resource = ChangingResource()
        try await withManager(onDisk: true) {
            resource.reply($0)
        } _: { manager, origin in
            let options = DownloadOptions(cachePolicy: .bypass)
            _ = try await manager.download(origin.url(), options: options)
            #expect(try await manager.download(origin.url()).cacheStatus == "fwd=uri-miss; fwd-status=200; stored")
            resource.change()
            let passed = try await manager.download(origin.url(), options: options)
            #expect(passed.text == "version 2")
            #expect(passed.outcome == .downloaded)
            let kept = try await manager.download(origin.url())
            #expect(kept.text == "version 1")
            #expect(kept.outcome == .stillValid)
            #expect(origin.count("GET") == 3)
        }
    }

    @Test func sharedOptionsAreNobodysState() async throws {
        try await withManager {
            .answer(to: $0, $0.target)
        } _: { manager, origin in
            let options = DownloadOptions()
            for path in ["/a", "/b"] {
                let result = try await manager.download(origin.url(path), options: options)
                #expect(result.text == path)
            }
            #expect(try await manager.download(origin.url("/a"), options: options).outcome == .stillValid)
        }
    }

    @Test(arguments: [
        (ContentExpectation.image, "<!doctype html>", false), (.image, "GIF89a and so on", true),
        (.json, "{\"a\": [1]}", true), (.json, "{\"a\": [1}", false), (.jsonObject, "[1]", false),
        (.jsonArray, "[1]", true),
        (.propertyList, "hello", false), (.anything, "<!doctype html>", true),
    ]) func whatIsNotExpectedIsNotKept(
        expectation: ContentExpectation,
        body: String,
        isKept: Bool
    ) async throws {
        try await withManager {
            .answer(to: $0, body)
        } _: { manager, origin in
            let options = DownloadOptions(expectation: expectation)
            for _ in 0..<2 {
                let result = try await manager.download(origin.url(), options: options)
                #expect(result.text == body)
            }
            #expect(origin.server.requests() == (isKept ? 1 : 2))
        }
    }

    @Test(arguments: [
        (AbandonmentPolicy.finish, true), (.abort, false), (.finishBeyond(0.4), true),
        (.finishBeyond(0.6), false),
    ])
    func whatNobodyWaitsForAnyMore(leaving: AbandonmentPolicy, isKept: Bool) async throws {
        let gate = Gate()
        try await withManager {
            $0.abandonment = leaving
        } _: { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "200")]), .pattern(100, from: 0), .wait(gate),
            ])
            .then(OriginReply([.pattern(100, from: 100)]))
        } _: { manager, origin in
            for try await event in manager.events(for: origin.url()) {
                if case .progress(let progress) = event, progress.completed == 100 { break }
            }
            #expect(await eventually { manager.downloadCount == 0 })
            let next = Task { try await manager.download(origin.url()) }
            if !isKept { #expect(await origin.isAsked(2)) }
            gate.open()
            #expect(try await next.value.data.count == 200)
            #expect(origin.server.requests() == (isKept ? 1 : 2))
        }
    }

    // MARK: - Requests

    @Test func fieldsOfARequest() async throws {
        try await withManager {
            $0.headerFields = [.userAgent: "test/1", .accept: "text/plain"]
        } _: {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            var request = HTTPRequest(
                method: .get,
                scheme: "http",
                authority: origin.server.authority,
                path: "/a?b=%2F%41"
            )
            request.headerFields[.accept] = "image/png"
            request.headerFields[.connection] = "close"
            let result = try await manager.download(request)
            #expect(result.url.absoluteString == origin.server.url + "/a?b=%2F%41")
            let asked = try #require(origin.server.log.first)
            // Byte for byte: nothing is encoded or decoded again.
            #expect(asked.target == "/a?b=%2F%41")
            #expect(asked.all("Accept") == ["image/png"])
            #expect(asked.all("User-Agent") == ["test/1"])
            #expect(asked.all("Host") == [origin.server.authority])
            #expect(asked.field("Connection") == nil)
        }
    }

    @Test func headHasNoBody() async throws {
        try await withManager {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            let request = HTTPRequest(method: .head, scheme: "http", authority: origin.server.authority, path: "/a")
            let result = try await manager.download(request)
            #expect(result.data.isEmpty)
            #expect(result.head.headerFields[.contentLength] == "5")
            #expect(origin.server.log.map(\.method) == ["HEAD"])
        }
    }

    @Test func postsAreKeptByTheirContent() async throws {
        try await withManager {
            .answer(to: $0, String(decoding: $0.body, as: UTF8.self))
        } _: { manager, origin in
            let request = HTTPRequest(method: .post, scheme: "http", authority: origin.server.authority, path: "/a")
            for (text, outcome) in [
                ("one", DownloadOutcome.downloaded), ("two", .downloaded), ("one", .stillValid), ("", .downloaded),
            ] {
                let result = try await manager.download(request, body: Data(text.utf8))
                #expect(result.text == text)
                #expect(result.outcome == outcome)
            }
            #expect(origin.server.log.map(\.method) == ["POST", "POST", "POST"])
            #expect(try await manager.state(of: origin.url()) == .absent)
        }
    }

    @Test func otherStatusesCanBeAccepted() async throws {
        try await withManager {
            $0.acceptedStatuses = 200..<500
        } _: {
            .answer(404, to: $0, "none")
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.head.status == .notFound)
            #expect(result.text == "none")
        }
    }

    @Test func standardModeObeysTheOrigin() async throws {
        try await withManager {
            $0.mode = .http
        } _: { request in
            request.target == "/never"
                ? .answer(to: request, fields: [("Cache-Control", "no-store")], "a")
                : .answer(to: request, fields: [("Cache-Control", "max-age=600")], "a")
        } _: { manager, origin in
            for path in ["/never", "/never", "/fresh", "/fresh"] { _ = try await manager.download(origin.url(path)) }
            #expect(origin.server.log.map(\.target) == ["/never", "/never", "/fresh"])
        }
    }

    // MARK: - Redirects

    @Test func redirectsAreFollowed() async throws {
        try await withManager { request in
            switch request.target {
            case "/a": .answer(302, to: request, fields: [("Location", "b?c=d")], "elsewhere")
            case "/b?c=d": .answer(301, to: request, fields: [("Location", "/x/../e")], "elsewhere")
            default: .answer(to: request, "at last")
            }
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.text == "at last")
            #expect(result.url == origin.url())
            #expect(origin.server.log.map(\.target) == ["/a", "/b?c=d", "/e"])
            #expect(try await manager.download(origin.url()).outcome == .stillValid)
            #expect(origin.server.requests() == 3)
        }
    }

    @Test func anotherOriginGetsNoCredentials() async throws {
        let other = try ScriptedOrigin { .answer(to: $0, "there") }
        try await withManager { request in
            request.target == "/a"
                ? .answer(307, to: request, fields: [("Location", "/b")], "")
                : .answer(307, to: request, fields: [("Location", other.url + "/c")], "")
        } _: { manager, origin in
            var request = HTTPRequest(method: .get, scheme: "http", authority: origin.server.authority, path: "/a")
            request.headerFields[.authorization] = "Bearer secret"
            request.headerFields[.cookie] = "a=b"
            request.headerFields[.accept] = "text/plain"
            #expect(try await manager.download(request).text == "there")
            #expect(origin.server.log.map { $0.field("Authorization") } == ["Bearer secret", "Bearer secret"])
            let asked = try #require(other.log.first)
            #expect(asked.field("Authorization") == nil)
            #expect(asked.field("Cookie") == nil)
            #expect(asked.field("Accept") == "text/plain")
            #expect(asked.field("Host") == other.authority)
        }
    }

    @Test func aCircleHasAnEnd() async throws {
        try await withManager {
            $0.maximumRedirects = 3
        } _: {
            .answer(302, to: $0, fields: [("Location", "/a")], "")
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error?.originKind == .protocolViolation)
            #expect(error?.description.contains("maximumRedirects") == true)
            #expect(origin.server.requests() == 4)
        }
    }

    @Test func aRedirectCanBeTheAnswer() async throws {
        try await withManager {
            $0.maximumRedirects = 0
        } _: {
            .answer(302, to: $0, fields: [("Location", "/b")], "elsewhere")
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            guard case .unacceptableStatus(let result) = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(result.head.headerFields[.location] == "/b")
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func inStandardModeATemporaryRedirectIsAskedForAgain() async throws {
        let target = Monitor("/b")
        try await withManager {
            $0.mode = .http
        } _: { request in
            if request.target == "/a" {
                return .answer(302, to: request, fields: [("Location", target.read { $0 })], "")
            }
            return .resource(
                request,
                etag: "\"\(request.target)\"",
                fields: [("Cache-Control", "max-age=600")],
                request.target
            )
        } _: { manager, origin in
            let first = try await manager.download(origin.url())
            #expect(first.text == "/b")
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            target.update { $0 = "/c" }
            #expect(try await manager.download(origin.url()).text == "/c")
        }
    }

    @Test func theBodyOfARedirectIsNotWaitedFor() async throws {
        try await withManager { request in
            request.target == "/a"
                ? OriginReply([
                    OriginReply.head(302, fields: [("Location", "/b"), ("Content-Length", "1000000")]),
                    .pattern(200_000, from: 0),
                    .hang,
                ])
                : .answer(to: request, "there")
        } _: { manager, origin in
            let result = try await manager.download(origin.url())
            #expect(result.text == "there")
        }
    }

    @Test func oneDownloadMayTakeARedirectOfItsContentAsTheAnswer() async throws {
        try await withManager {
            .answer(307, to: $0, fields: [("Location", "/b")], "elsewhere")
        } _: { manager, origin in
            let body = RequestBody.once(ContentPieces(["a"]))
            let options = DownloadOptions(maximumRedirects: 0)
            let request = TransportRequest(origin.request(.put), body: body, options: options)
            let response = try await manager.send(request)
            #expect(response.head.status.code == 307)
            #expect(try await response.body.collect(upTo: 100) == Data("elsewhere".utf8))
            #expect(origin.server.requests() == 1)
        }
    }
}
