// An unsafe request that is redirected and followed changes what it was sent to on its way (RFC 9111 section 4.4).

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5)))
struct RedirectedInvalidationTests {
    private static func text(_ origin: ScriptedOrigin, _ far: ScriptedOrigin) -> String {
        """
        forward: { enabled: true, allow: ["127.0.0.1"] }
        services:
          - name: api
            match: { prefix: /api }
            base_url: "\(origin.url)/base"
            redirects: { follow: 3 }
          - { name: hosted, match: { prefix: /hosted }, base_url: "\(origin.url)/base", host: preserve, redirects: { follow: 3 } }
          - { name: outer, match: { prefix: /outer }, base_url: service:api }
          - { name: root, match: { prefix: /root }, base_url: "\(origin.url)" }
          - { name: far, match: { prefix: /far }, base_url: "\(far.url)" }
        """
    }

    private static func stored(_ request: OriginRequest) -> OriginReply {
        .answer(to: request, fields: [("Cache-Control", "max-age=600")], request.target)
    }

    /// All ways to one path below `/base`, and to one of the other origin.
    private static func ways(_ name: String, _ origin: ScriptedOrigin) -> [String] {
        ["/api/\(name)", "/hosted/\(name)", "/outer/\(name)", "/root/base/\(name)", "\(origin.url)/base/\(name)"]
    }

    private static func far(_ name: String, _ far: ScriptedOrigin) -> [String] {
        ["/far/\(name)", "\(far.url)/\(name)"]
    }

    private static func isHit(_ harness: HandlerHarness, _ target: String) throws -> Bool {
        try harness.get(target).field("Cache-Status")?.contains("hit") == true
    }

    private static func store(_ harness: HandlerHarness, _ targets: [String]) throws {
        for target in targets { _ = try harness.get(target) }
        for target in targets { #expect(try isHit(harness, target), "\(target)") }
    }

    @Test(arguments: ["/api", "/hosted", "/outer"])
    func `every URL of the way that answers without an error is invalidated, by every way to it`(
        asked: String
    ) async throws {
        let far = try ScriptedOrigin { request in
            request.method == "GET" ? Self.stored(request) : .answer(200, fields: [("Content-Location", "/named")], "")
        }
        let there = far.url
        let origin = try ScriptedOrigin { request in
            switch (request.method, request.target) {
            case ("PUT", "/base/one"): .answer(307, fields: [("Location", "two")], "")
            case ("PUT", "/base/two"): .answer(308, fields: [("Location", "\(there)/three")], "")
            default: Self.stored(request)
            }
        }
        try await HandlerHarness.run(Self.text(origin, far)) { harness throws in
            let changed =
                ["one", "two"].flatMap { Self.ways($0, origin) } + ["three", "named"].flatMap { Self.far($0, far) }
            let kept = Self.ways("other", origin) + Self.far("other", far) + Self.ways("three", origin)
            try Self.store(harness, changed + kept)
            #expect(try harness.exchange("PUT", asked + "/one", body: []).status == 200)
            for target in changed { #expect(try !Self.isHit(harness, target), "\(target)") }
            for target in kept { #expect(try Self.isHit(harness, target), "\(target)") }
        }
    }

    @Test(arguments: [404, 500, 0])
    func `a redirect has changed something, whatever becomes of it`(status: Int) async throws {
        let far = try ScriptedOrigin { request in Self.stored(request) }
        let origin = try ScriptedOrigin { request in
            switch (request.method, request.target) {
            case ("POST", "/base/one"): .answer(307, fields: [("Location", "/base/two")], "")
            case ("POST", _) where status == 0: .cut
            case ("POST", _): .answer(status, fields: [("Content-Location", "/base/other")], "")
            default: Self.stored(request)
            }
        }
        try await HandlerHarness.run(Self.text(origin, far)) { harness throws in
            let kept = Self.ways("two", origin) + Self.ways("other", origin)
            try Self.store(harness, Self.ways("one", origin) + kept)
            #expect(try harness.exchange("POST", "/api/one", body: []).status == (status == 0 ? 502 : status))
            for target in Self.ways("one", origin) { #expect(try !Self.isHit(harness, target), "\(target)") }
            // What answers with an error has changed nothing.
            for target in kept { #expect(try Self.isHit(harness, target), "\(target)") }
        }
    }

    @Test func `what a GET leads to stays, and no origin invalidates what is another's`() async throws {
        let first = Monitor("")
        let far = try ScriptedOrigin { request in
            let other = first.read { $0 } + "/base/other"
            return request.method == "GET"
                ? Self.stored(request)
                : .answer(201, fields: [("Location", other), ("Content-Location", "/named")], "")
        }
        let there = far.url
        let origin = try ScriptedOrigin { request in
            switch (request.method, request.target) {
            case ("POST", "/base/seen"): .answer(303, fields: [("Location", "/base/two")], "")
            case ("POST", "/base/sent"): .answer(307, fields: [("Location", "\(there)/made")], "")
            default: Self.stored(request)
            }
        }
        first.update { $0 = origin.url }
        try await HandlerHarness.run(Self.text(origin, far)) { harness throws in
            let kept = ["two", "other"].flatMap { Self.ways($0, origin) }
            let changed = ["seen", "sent"].flatMap { Self.ways($0, origin) }
            let changedThere = ["made", "named"].flatMap { Self.far($0, far) }
            try Self.store(harness, kept + changed + changedThere)
            #expect(try harness.exchange("POST", "/api/seen", body: []).status == 200)
            #expect(try harness.exchange("POST", "/api/sent", body: []).status == 201)
            for target in changed + changedThere { #expect(try !Self.isHit(harness, target), "\(target)") }
            for target in kept { #expect(try Self.isHit(harness, target), "\(target)") }
        }
    }
}
