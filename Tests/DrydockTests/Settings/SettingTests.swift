// The settings that a manager shares with the daemon's keys: what is kept for how long, what makes two requests one,
// whom a redirect may lead to, and what one download may want otherwise.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct SettingTests {
    private func request(_ origin: Origin, _ path: String = "/a", _ fields: [(String, String)]) -> HTTPRequest {
        var request = HTTPRequest(method: .get, scheme: "http", authority: origin.server.authority, path: path)
        for (name, value) in fields { if let name = HTTPField.Name(name) { request.headerFields[name] = value } }
        return request
    }

    // MARK: - Lifetimes

    @Test func aStatusMayHaveALifetimeOfItsOwn() async throws {
        try await withManager {
            $0.lifetimes = [404: .seconds(600), 200: .zero]
        } _: {
            $0.target == "/none" ? .answer(404, to: $0, "none") : .answer(to: $0, fields: [("ETag", "\"1\"")], "there")
        } _: { manager, origin async throws in
            for _ in 0..<2 {
                let error = await failure { try await manager.download(origin.url("/none")) }
                guard case .unacceptableStatus(let result) = error else {
                    Issue.record("\(error as Any)")
                    continue
                }
                #expect(result.text == "none")
            }
            #expect(origin.server.requests() == 1, "the second one is from the store")
            _ = try await manager.download(origin.url())
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
        }
    }

    @Test func oneDownloadMayHaveItsOwnLifetimes() async throws {
        try await withManager {
            $0.lifetimes = [200: .zero]
        } _: {
            .answer(to: $0, fields: [("ETag", "\"1\"")], "there")
        } _: { manager, origin async throws in
            let long = DownloadOptions(lifetimes: [200: .seconds(600)])
            _ = try await manager.download(origin.url(), options: long)
            #expect(try await manager.download(origin.url(), options: long).outcome == .stillValid)
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            // A lifetime of its own wins over what the manager says of that status.
            let own = DownloadOptions(lifetime: .seconds(600))
            #expect(try await manager.download(origin.url(), options: own).outcome == .stillValid)
        }
    }

    @Test(arguments: [false, true])
    func theOriginMayBeOverridden(isOverridden: Bool) async throws {
        try await withManager {
            $0.mode = .http
            $0.lifetime = .seconds(600)
            $0.overridesOrigin = isOverridden
        } _: {
            .resource($0, etag: "\"1\"", fields: [("Cache-Control", "max-age=0")], "there")
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url())
            #expect(try await manager.download(origin.url()).outcome == (isOverridden ? .stillValid : .confirmed))
        }
    }

    // MARK: - Keys

    @Test func queryItemsMayBeIgnored() async throws {
        try await withManager {
            $0.ignoredQueryItems = ["utm_*", "session"]
        } _: {
            .answer(to: $0, "there")
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url("/a?utm_source=mail&b=1&session=7"))
            #expect(try await manager.download(origin.url("/a?b=1&utm_medium=x")).outcome == .stillValid)
            #expect(try await manager.download(origin.url("/a?b=1")).outcome == .stillValid)
            #expect(origin.server.log.map(\.target) == ["/a?b=1"])
            #expect(try await manager.download(origin.url("/a?b=2")).outcome == .downloaded)
            guard case .valid = try await manager.state(of: origin.url("/a?session=9&b=1")) else {
                Issue.record("another item that is ignored makes it no other resource")
                return
            }
            // Where nothing may be stored, the origin gets all of it.
            _ = try await manager.download(origin.url("/a?session=7"), options: .init(cachePolicy: .bypass))
            #expect(origin.server.log.last?.target == "/a?session=7")
        }
    }

    @Test func fieldsMayEnterTheKey() async throws {
        try await withManager(onDisk: true) {
            $0.keyFields = [.init("X-Tenant")].compactMap { $0 }
        } _: {
            .answer(to: $0, $0.field("x-tenant") ?? "nobody")
        } _: { manager, origin async throws in
            for tenant in ["a", "b", "a", "b"] {
                let request = request(origin, "/a", [("X-Tenant", tenant)])
                #expect(try await manager.download(request).text == tenant)
            }
            #expect(try await manager.download(origin.url()).text == "nobody")
            #expect(origin.server.requests() == 3)
            #expect(try await manager.remove(origin.url()) == 3, "they are all of one URL")
        }
    }

    @Test(arguments: [(1, 3), (32, 2)])
    func variantsHaveALimit(limit: Int, requests: Int) async throws {
        try await withManager {
            $0.maximumVariants = limit
        } _: {
            .answer(to: $0, fields: [("Vary", "Accept-Language")], $0.field("accept-language") ?? "")
        } _: { manager, origin async throws in
            for language in ["en", "de", "en"] {
                let request = request(origin, "/a", [("Accept-Language", language)])
                #expect(try await manager.download(request).text == language)
            }
            #expect(origin.server.requests() == requests)
        }
    }

    // MARK: - What comes

    @Test func mediaTypesMayBeNamed() async throws {
        let type = Monitor("text/html; charset=utf-8")
        try await withManager {
            $0.acceptedContentTypes = ["application/json", "image/*"]
        } _: {
            .answer(to: $0, fields: [("Content-Type", type.read { $0 })], "{}")
        } _: { manager, origin async throws in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error?.originKind == .protocolViolation)
            #expect(error?.description.contains("text/html; charset=utf-8") == true)
            #expect(error?.description.contains("acceptedContentTypes") == true)
            #expect(try await manager.state(of: origin.url()) == .absent)
            for good in ["application/json", "image/png"] {
                type.update { $0 = good }
                _ = try await manager.download(origin.url("/\(good)"))
            }
            type.update { $0 = "text/html" }
            let any = DownloadOptions(acceptedContentTypes: [])
            #expect(try await manager.download(origin.url("/any"), options: any).text == "{}")
            // What was kept while nothing was expected is no answer where something is.
            let failed = await failure { try await manager.download(origin.url("/any")) }
            #expect(failed?.originKind == .protocolViolation)
        }
    }

    @Test func whatIsNoMediaTypeIsRefused() async throws {
        try await withManager {
            .answer(to: $0, "")
        } _: { manager, origin async throws in
            let options = DownloadOptions(acceptedContentTypes: ["json"])
            let error = await failure { try await manager.download(origin.url(), options: options) }
            guard case .invalidRequest(let text) = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(text.contains("'json'"))
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func whatIsStoredMustBeWhatIsExpected() async throws {
        let body = Monitor("<html>")
        try await withManager {
            .answer(to: $0, body.read { $0 })
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url())
            body.update { $0 = "{}" }
            let options = DownloadOptions(expectation: .json)
            #expect(try await manager.download(origin.url(), options: options).text == "{}")
            #expect(try await manager.download(origin.url(), options: options).outcome == .stillValid)
        }
    }

    // MARK: - Origins

    @Test func oneDownloadMayHaveItsOwnTimeouts() async throws {
        try await withManager { _ in
            .never
        } _: { manager, origin async throws in
            var options = DownloadOptions()
            options.timeouts = .init(firstByte: .milliseconds(50))
            let asked = options
            let failed = await failure { try await manager.download(origin.url(), options: asked) }
            #expect(failed?.originKind == .timeout)
        }
    }

    @Test func oneDownloadMayTakeARedirectForTheAnswer() async throws {
        try await withManager {
            $0.target == "/a" ? .answer(302, to: $0, fields: [("Location", "/b")], "") : .answer(to: $0, "there")
        } _: { manager, origin async throws in
            let options = DownloadOptions(cachePolicy: .bypass, maximumRedirects: 0)
            let error = await failure { try await manager.download(origin.url(), options: options) }
            guard case .unacceptableStatus(let result) = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(result.head.status.code == 302)
            #expect(try await manager.download(origin.url()).text == "there")
        }
    }

    @Test func aRedirectLeadsToHostsThatAreNamed() async throws {
        let named = Origin(try ScriptedOrigin { .answer(to: $0, "there") })
        let other = Origin(try ScriptedOrigin { .answer(to: $0, "never") })
        try await withManager {
            $0.redirectHosts = ["127.0.0.1:\(named.server.port)"]
        } _: { request in
            let location =
                switch request.target {
                case "/named": named.server.url + "/"
                case "/other": other.server.url + "/"
                default: "/here"
                }
            return request.target == "/here"
                ? .answer(to: request, "here") : .answer(302, to: request, fields: [("Location", location)], "")
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url("/named")).text == "there")
            #expect(try await manager.download(origin.url("/own")).text == "here")
            let error = await failure { try await manager.download(origin.url("/other")) }
            #expect(error?.originKind == .protocolViolation)
            #expect(error?.description.contains("redirectHosts") == true)
            #expect(other.server.requests() == 0)
        }
    }

    // MARK: - Numbers

    @Test func whatRunsAndWhatWaitsIsCounted() async throws {
        let gate = Gate()
        try await withManager {
            $0.maximumFetches = 1
        } _: {
            gate.wait()
            return .answer(to: $0, "there")
        } _: { manager, origin async throws in
            #expect(manager.statistics.requests == 0)
            async let first = manager.download(origin.url("/1"))
            async let second = manager.download(origin.url("/2"))
            #expect(await eventually { manager.statistics.waiting == 1 && manager.statistics.requests == 1 })
            #expect(manager.statistics.running == 1)
            #expect(manager.statistics.downloads == 2)
            #expect(manager.statistics.requests == 1)
            gate.open()
            _ = try await (first, second)
            #expect(manager.statistics.requests == 2)
            #expect(await eventually { manager.statistics.running == 0 && manager.statistics.downloads == 0 })
        }
    }
}
