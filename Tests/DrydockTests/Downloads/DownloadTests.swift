// One download at a time: what is asked, what is kept, and which of the eight outcomes it comes to.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct DownloadTests {
    @Test(arguments: [false, true]) func isAskedForOnce(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, fields: [("X-Kind", "a")], "hello")
        } _: { manager, origin in
            let first = try await manager.download(origin.url())
            #expect(first.outcome == .downloaded)
            #expect(first.text == "hello")
            #expect(first.url == origin.url())
            #expect(first.head.status == .ok)
            #expect(first.head.headerFields[try #require(HTTPField.Name("X-Kind"))] == "a")
            #expect(first.cacheStatus == "fwd=uri-miss; fwd-status=200; stored")
            #expect(first.validity == nil)
            let second = try await manager.download(origin.url())
            #expect(second.outcome == .stillValid)
            #expect(second.data == first.data)
            #expect(second.cacheStatus == "hit; ttl=+; detail=memory")
            #expect(try #require(second.validity) > .seconds(7000))
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func aSecondManagerFindsWhatTheFirstHasKept() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        let first = makeManager(folder)
        _ = try await first.download(origin.url())
        await first.close()
        let second = makeManager(folder)
        let result = try await second.download(origin.url())
        await second.close()
        #expect(result.outcome == .stillValid)
        #expect(result.cacheStatus == "hit; ttl=+; detail=disk")
        #expect(result.text == "hello")
        #expect(origin.server.requests() == 1)
    }

    // MARK: - The eight outcomes

    @Test func downloadedAndStillValid() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url()).outcome == .downloaded)
            #expect(try await manager.download(origin.url()).outcome == .stillValid)
            #expect(origin.count("GET") == 1)
            #expect(origin.count("HEAD") == 0)
        }
    }

    @Test(arguments: [
        (ValidationMethod.head, "HEAD", "fwd=stale; fwd-status=200; ttl=+; detail=revalidated"),
        (.conditional, "GET", "fwd=stale; fwd-status=304; ttl=+; detail=revalidated"),
    ]) func confirmed(check: ValidationMethod, method: String, status: String) async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.validation = check
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.forgetRequests()
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .confirmed)
            #expect(result.text == "version 1")
            #expect(result.cacheStatus.replacing("ttl=-", with: "ttl=+") == status)
            #expect(origin.server.log.map(\.method) == [method])
        }
    }

    @Test func replacedAfterACheck() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            resource.change()
            origin.server.forgetRequests()
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .downloaded)
            #expect(result.text == "version 2")
            #expect(result.cacheStatus == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(origin.server.log.map(\.method) == ["HEAD", "GET"])
        }
    }

    @Test func beingChecked() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.staleWhileRevalidate = .seconds(600)
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .beingChecked)
            #expect(result.text == "version 1")
            #expect(await origin.isAsked(1, method: "HEAD"))
        }
    }

    @Test(arguments: [true, false]) func checkFailed(isDown: Bool) async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: { request in
            isDown && resource.isFailing ? .cut : resource.reply(request)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            resource.isFailing = true
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .checkFailed)
            #expect(result.text == "version 1")
        }
    }

    /// 0: the connection is closed.
    @Test(arguments: [400, 401, 403, 404, 405, 429, 500, 503, 0]) func headAloneFails(status: Int) async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: { request in
            guard request.method == "HEAD" else { return resource.reply(request) }
            return status == 0 ? .cut : .answer(status, to: request, "")
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            resource.change()
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .downloaded && result.text == "version 2")
            #expect(origin.count("GET") == 3)
            // What was cut on a connection that had been used before is sent again, once.
            if status != 0 { #expect(origin.count("HEAD") == 1) }
        }
    }

    @Test func downloadFailed() async throws {
        try await withManager {
            .answer(404, to: $0, "nothing here")
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            guard case .unacceptableStatus(let result) = try #require(error) else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(error?.outcome == .downloadFailed)
            #expect(result.outcome == .downloadFailed)
            #expect(result.head.status == .notFound)
            #expect(result.text == "nothing here")
            #expect(error?.description.contains("answered 404") == true)
        }
    }

    @Test(arguments: [
        ("ftp://origin.test/a", "begin it with http:// or https://"),
        ("a/b", "begin it with http:// or https://"),
        ("http://user@origin.test/", "without a user"),
        ("http://origin.test:0/", "name a host"),
        ("http:///a", "name a host"),
        ("file:///etc/passwd", "begin it with http:// or https://"),
    ]) func invalid(text: String, advice: String) async throws {
        let manager = makeManager()
        let url = try #require(URL(string: text))
        let error = await failure { try await manager.download(url) }
        guard case .invalidRequest(let detail) = error else {
            Issue.record("\(text): \(error as Any)")
            return
        }
        #expect(detail.contains(text) && detail.contains(advice), "\(detail)")
        #expect(error?.outcome == .invalid)
        #expect(manager.downloadCount == 0)
    }

    /// What is asked for is what stands behind the authority, byte for byte.
    @Test func aURLIsAskedForAsItStands() async throws {
        try await withManager {
            .answer(to: $0, "x")
        } _: { manager, origin in
            let authority = origin.server.authority
            for text in ["HTTP://\(authority)/a%2Fb?q=%20&r#part", "http://\(authority)?x", "http://\(authority)#part"]
            {
                _ = try await manager.download(try #require(URL(string: text)))
            }
            #expect(origin.server.log.map(\.target) == ["/a%2Fb?q=%20&r", "/?x", "/"])
        }
    }

    @Test func namesHaveTheSpellingOfTheOrigin() async throws {
        try await withManager {
            .answer(to: $0, fields: [("content-TYPE", "text/plain"), ("ETag", "\"1\""), ("X-Own", "a")], "x")
        } _: { manager, origin in
            let fields = try await manager.download(origin.url()).head.headerFields
            let names = fields.map(\.name.rawName)
            for name in ["content-TYPE", "ETag", "X-Own"] { #expect(names.contains(name), "\(names)") }
            #expect(fields[.contentType] == "text/plain" && fields[.eTag] == "\"1\"")
        }
    }

    // MARK: - Failures

    @Test func whatIsCutShortIsNoResult() async throws {
        let isWhole = Monitor(false)
        try await withManager(onDisk: true) { request in
            isWhole.read { $0 }
                ? .answer(to: request, "hello, world")
                : OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "12")]), OriginReply.text("hello"), .cut,
                ])
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error?.originKind == .cutShort)
            isWhole.update { $0 = true }
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .downloaded)
            #expect(result.text == "hello, world")
        }
    }

    @Test func nobodyListens() async throws {
        let port = try ClosedPort()
        let manager = makeManager()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/a"))
        let error = await failure { try await manager.download(url) }
        #expect(error?.originKind == .unreachable)
        #expect(error?.description.contains("127.0.0.1") == true)
        await manager.close()
    }

    @Test func theOriginIsTooSlow() async throws {
        try await withManager {
            $0.timeouts.firstByte = .milliseconds(50)
        } _: { _ in
            .never
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error?.originKind == .timeout)
            let text = error?.description ?? ""
            #expect(text.contains("raise DownloadConfiguration.timeouts.firstByte"), "\(text)")
        }
    }

    @Test func aFolderThatIsInUseIsToldInTheWordsOfPrograms() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let (first, second) = (makeManager(folder), makeManager(folder))
        try await first.open()
        let error = await #expect(throws: DownloadError.self) { try await second.open() }
        let text = error?.description ?? ""
        #expect(text.contains("set DownloadConfiguration.disk.folder to another folder"), "\(text)")
        #expect(!text.contains("cache.disk") && !text.contains("daemon"))
        await second.close()
        await first.close()
    }

    @Test func noTimeoutRunsBeforeItsTurn() async throws {
        let gate = Gate()
        try await withManager {
            $0.maximumFetches = 1
            $0.timeouts.firstByte = .milliseconds(200)
            // An origin that answers at once, on a busy machine, may pass it in its turn: then it has another one.
            $0.retry = RetryPolicy(count: 1000, delay: .zero, causes: [.timeout], budget: 1)
        } _: { request in
            if request.target == "/first" { gate.wait() }
            return .answer(to: request, "hello")
        } _: { manager, origin in
            let options = DownloadOptions(timeouts: .init())
            let first = Task { try await manager.download(origin.url("/first"), options: options) }
            #expect(await origin.isAsked(1))
            let others = (1..<10).map { number in Task { try await manager.download(origin.url("/\(number)")) } }
            #expect(await eventually { manager.statistics.waiting == 9 })
            // They wait for longer than the timeout; that nothing happens meanwhile is all that shows.
            try await Task.sleep(for: .milliseconds(400))
            #expect(manager.statistics.waiting == 9 && manager.statistics.retries == 0)
            #expect(origin.server.requests() == 1)
            gate.open()
            for task in [first] + others { #expect(try await task.value.outcome == .downloaded) }
            #expect(await eventually { origin.server.requests() == 10 + manager.statistics.retries })
        }
    }

    @Test func largerThanAResultMayBe() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try await withManager {
            $0.maximumBody = 1000
        } _: { request in
            request.target == "/chunked" ? .chunked([String(repeating: "x", count: 1001)]) : .pattern(1001)
        } _: { manager, origin in
            for path in ["/known", "/chunked"] {
                let url = origin.url(path)
                let error = await failure { try await manager.download(url) }
                #expect(error == .tooLarge(limit: 1000))
                let file = URL(fileURLWithPath: folder.file("whole"))
                try await manager.download(url, to: file)
                #expect(try readBytes(file.path).count == 1001)
            }
        }
    }

    // MARK: - Concurrency

    @Test func manyAtOnceAreOneTransfer() async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([.wait(gate)]).then(.pattern(300_000))
        } _: { manager, origin in
            let outcomes = try await withThrowingTaskGroup(of: DownloadResult.self) { group in
                for _ in 0..<20 { group.addTask { try await manager.download(origin.url()) } }
                #expect(await origin.isAsked(1))
                #expect(await eventually { manager.downloadCount == 20 })
                gate.open()
                return try await group.reduce(into: [DownloadResult]()) { $0.append($1) }
            }
            #expect(outcomes.count == 20)
            for result in outcomes { #expect(Array(result.data) == Pattern.bytes(0..<300_000)) }
            #expect(outcomes.count { $0.cacheStatus == "fwd=uri-miss; fwd-status=200; stored" } == 1)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func soManyFetchesAndNoMore() async throws {
        let (gate, running, most) = (Gate(), Monitor(0), Monitor(0))
        try await withManager {
            $0.maximumFetches = 3
        } _: { request in
            let now = running.update { count in
                count += 1
                return count
            }
            most.update { $0 = max($0, now) }
            gate.wait()
            running.update { $0 -= 1 }
            return .answer(to: request, "hello")
        } _: { manager, origin in
            try await withThrowingTaskGroup(of: DownloadResult.self) { group in
                for number in 0..<30 { group.addTask { try await manager.download(origin.url("/\(number)")) } }
                #expect(await eventually { manager.statistics.waiting == 27 })
                #expect(await origin.isAsked(3))
                #expect(origin.server.requests() == 3)
                gate.open()
                for try await _ in group {}
            }
            #expect(origin.server.requests() == 30)
            #expect(most.read { $0 } <= 3)
        }
    }
}
