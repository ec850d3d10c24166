// revalidate: auto: which of HEAD and conditional GET an origin is asked by, as it is seen to answer them.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import TestSupport
import Testing
import Upstream

private let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]
private let auto = CachePolicy(revalidate: .automatic)
private let long = [UInt8](repeating: 1, count: 100_000)

/// What an origin does with checks.
private struct Manner: Sendable {
    var answersHead = true
    var answersConditions = true

    func callAsFunction(_ asked: Asked, _ body: [UInt8]) -> Reply {
        let isKnown = answersConditions && asked.fields.first(.ifNoneMatch) == "\"1\""
        if asked.method == .head {
            guard answersHead else { return .headOnly(405, []) }
            return .headOnly(isKnown ? 304 : 200, fields + [("Content-Length", "\(body.count)")])
        }
        return isKnown ? .whole(304, fields) : .whole(200, fields, body)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct HabitTests {
    @Test(
        "what is asked, over three checks of a short and of a long response, one after the other",
        arguments: [
            // An origin that honours both: HEAD for what is long until it has shown that it answers 304.
            (true, true, false, "GET GET GET GET"), (true, true, true, "GET HEAD GET GET"),
            // One that ignores conditions: a body for what is short, HEAD for what is long.
            (true, false, false, "GET GET GET GET"), (true, false, true, "GET HEAD HEAD HEAD"),
            // One that refuses HEAD: asked once.
            (false, true, true, "GET HEAD GET GET GET"), (false, true, false, "GET GET GET GET"),
        ]
    )
    func sequence(_ head: Bool, _ conditions: Bool, _ isLong: Bool, _ expected: String) async throws {
        try await withRig { rig in
            let manner = Manner(answersHead: head, answersConditions: conditions)
            let body = isLong ? long : Array("hello".utf8)
            rig.origin.answers { manner($0, body) }
            _ = await rig.get("/a", policy: auto)
            for _ in 0..<3 {
                rig.clock.advance(seconds: 6100)
                let got = await rig.get("/a", policy: auto)
                #expect(got.body == body && got.status == 200)
            }
            #expect(rig.origin.methods == expected)
        }
    }

    @Test("what one resource has shown counts for the whole origin, and for no other service or origin")
    func perOrigin() async throws {
        try await withRig { rig in
            let manner = Manner(answersHead: false)
            rig.origin.answers { manner($0, long) }
            for path in ["/a", "/b"] { _ = await rig.get(path, policy: auto) }
            rig.clock.advance(seconds: 6100)
            for path in ["/a", "/b"] { _ = await rig.get(path, policy: auto) }
            #expect(rig.origin.methods == "GET GET HEAD GET GET")
            var other = rig.ask(policy: auto)
            other.key = CacheKey(service: "t", url: host + "/a")
            _ = await rig.get(other)
            rig.clock.advance(seconds: 6100)
            _ = await rig.get(other)
            #expect(rig.origin.methods == "GET GET HEAD GET GET GET HEAD GET")
        }
    }

    @Test(
        "what the client sees is the same, whichever way is chosen",
        arguments: [ValidationMethod.head, .conditional, .automatic],
        [true, false]
    )
    func sameForTheClient(_ method: ValidationMethod, _ isLong: Bool) async throws {
        let policy = CachePolicy(revalidate: method, checkPause: 0)
        try await withRig(disk: true) { rig in
            let body = isLong ? long : Array("hello".utf8)
            let manner = Manner()
            rig.origin.answers { manner($0, body) }
            var seen: [String] = []
            func note(_ got: Got) { seen.append("\(got.status) \(got.body?.count ?? -1) \(got.age ?? -1)") }
            note(await rig.get("/a", policy: policy))
            rig.clock.advance(seconds: 6100)
            note(await rig.get("/a", policy: policy))
            note(await rig.get("/a", policy: policy))
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .down }
            note(await rig.get("/a", policy: policy))
            rig.origin.answers { asked in
                let new = [("Cache-Control", "max-age=6000"), ("ETag", "\"2\"")]
                return asked.method == .head ? .headOnly(200, new) : .whole(200, new, [1, 2])
            }
            note(await rig.get("/a", policy: policy))
            #expect(
                seen == [
                    "200 \(body.count) -1", "200 \(body.count) 0", "200 \(body.count) 0", "200 \(body.count) 6100",
                    "200 2 -1",
                ]
            )
        }
    }
}

/// What an origin does with HEAD, and with HEAD alone.
enum BrokenHead: Sendable, CaseIterable, CustomTestStringConvertible {
    case closed, garbage, hanging, cutTransfer
    case badRequest, unauthorized, forbidden, notFound, notAllowed, gone, tooMany
    case serverError, notImplemented, badGateway, unavailable, timeout

    var testDescription: String { "\(self)" }

    var status: Int? {
        switch self {
        case .closed, .garbage, .hanging, .cutTransfer: nil
        case .badRequest: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .notAllowed: 405
        case .gone: 410
        case .tooMany: 429
        case .serverError: 500
        case .notImplemented: 501
        case .badGateway: 502
        case .unavailable: 503
        case .timeout: 504
        }
    }

    func reply() -> Reply {
        switch self {
        case .closed: failing(.closed)
        case .garbage: failing(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        case .cutTransfer: failing(.truncated)
        // Nobody ever opens it.
        case .hanging: Reply(steps: [.valve(Valve())])
        default: .headOnly(status ?? 0, [])
        }
    }

    private func failing(_ kind: UpstreamError.Kind) -> Reply {
        Reply(steps: [.fail(.upstream(UpstreamError(kind, detail: "HEAD alone")))])
    }
}

/// Which copies are stored, and whether they may stand in for a failure.
private let ways: [(CachePolicy, String)] = [
    (CachePolicy(checkPause: 300), "max-age=100"), (CachePolicy(checkPause: 300), "max-age=100, must-revalidate"),
    (CachePolicy(mode: .library, ttl: 100, checkPause: 300), "no-cache"),
    (CachePolicy(revalidate: .automatic, checkPause: 300), "max-age=100"),
    (CachePolicy(checkPause: 300, gone: .useStored), "max-age=100"),
]

@Suite(.timeLimit(.minutes(5)))
struct BrokenHeadTests {
    /// Where a HEAD hangs; else nothing may.
    private static let timeout: UInt64 = 50_000_000

    /// Stored, and stale since 100 seconds.
    private func withStale(
        _ policy: CachePolicy,
        _ control: String,
        disk: Bool = false,
        hangs: Bool = false,
        _ test: (Rig, [(String, String)]) async throws -> Void
    ) async throws {
        try await withRig(disk: disk, headTimeout: hangs ? Self.timeout : patience) { rig in
            let fields = [("Cache-Control", control), ("ETag", "\"1\"")]
            rig.origin.answers { _ in .whole(200, fields, long) }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            rig.clock.advance(seconds: 200)
            try await test(rig, fields)
        }
    }

    @Test(
        "HEAD alone is broken: one conditional GET, which also asks for five minutes; then HEAD is tried again",
        arguments: BrokenHead.allCases,
        0..<ways.count
    )
    func causes(_ cause: BrokenHead, _ way: Int) async throws {
        let (policy, control) = ways[way]
        try await withStale(policy, control, hangs: cause == .hanging) { rig, fields in
            rig.origin.answers { asked in
                if asked.method == .head { return cause.reply() }
                return asked.fields.contains(.ifNoneMatch) ? .whole(304, fields) : .whole(200, fields, [9])
            }
            let good = "fwd=stale; fwd-status=304; ttl=100; detail=revalidated"
            let first = await rig.get("/a", policy: policy)
            #expect(first.cache == good && first.body == long && first.status == 200)
            #expect(rig.origin.methods == "GET HEAD GET")
            #expect(rig.origin.log[2].fields.first(.ifNoneMatch) == "\"1\"")
            #expect(await rig.get("/a", policy: policy).cache.hasPrefix("hit; ttl=100; detail="))
            rig.clock.advance(seconds: 200)
            let explained = await rig.explain(rig.ask(policy: policy))
            #expect(explained.capabilities.head == .refused && explained.rules.check?.kind == .conditional)
            #expect(await rig.get("/a", policy: policy).cache == good)
            #expect(rig.origin.methods == "GET HEAD GET GET")
            rig.clock.advance(seconds: 200)
            // What is known to answer 304 is asked by nothing else with `auto`.
            let kind: Revalidation.Kind = policy.revalidate == .automatic ? .conditional : .head
            #expect(await rig.explain(rig.ask(policy: policy)).rules.check?.kind == kind)
            #expect(await rig.get("/a", policy: policy).cache == good)
            #expect(rig.origin.methods == (kind == .head ? "GET HEAD GET GET HEAD GET" : "GET HEAD GET GET GET"))
        }
    }

    @Test("what the GET brings instead replaces the copy", arguments: BrokenHead.allCases, [0, 1, 2])
    func replaced(_ cause: BrokenHead, _ way: Int) async throws {
        let (policy, control) = ways[way]
        try await withStale(policy, control, disk: true, hangs: cause == .hanging) { rig, _ in
            let new = [("Cache-Control", "max-age=100"), ("ETag", "\"2\"")]
            rig.origin.answers { $0.method == .head ? cause.reply() : .whole(200, new, [9]) }
            let got = await rig.get("/a", policy: policy)
            #expect(got.body == [9] && got.cache == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).body == [9])
            #expect(rig.origin.methods == "GET HEAD GET")
        }
    }

    @Test("where GET fails as well, that is the failure; HEAD is not blamed, and asks again", arguments: ways.indices)
    func bothFail(_ way: Int) async throws {
        var (policy, control) = ways[way]
        policy.checkPause = 0
        try await withStale(policy, control, hangs: true) { [policy] rig, _ in
            let isAllowed = !control.contains("must-revalidate")
            for (failing, status) in [(BrokenHead.closed, 503), (.hanging, 500), (.unavailable, 502)] {
                rig.origin.answers { $0.method == .head ? failing.reply() : .whole(status, [], [1]) }
                let got = await rig.get("/a", policy: policy)
                #expect(got.status == (isAllowed ? 200 : status))
                let stale = "fwd=stale; fwd-status=\(status); ttl=-100; detail=stale-if-error"
                if isAllowed { #expect(got.cache == stale) }
                #expect(await rig.settle())
            }
            #expect(rig.origin.methods == "GET HEAD GET HEAD GET HEAD GET")
            #expect(await rig.explain(rig.ask(policy: policy)).capabilities.head == .unknown)
        }
    }

    @Test("no connection at all is a failure at once, and so is a fetch that was not admitted", arguments: ways.indices)
    func noConnection(_ way: Int) async throws {
        var (policy, control) = ways[way]
        policy.checkPause = 0
        try await withStale(policy, control) { [policy] rig, _ in
            let kinds: [UpstreamError.Kind] = [
                .connectionRefused, .unreachable, .nameNotFound, .timeout(.connect), .certificate, .tls,
            ]
            let errors = kinds.map { FetchError.upstream(UpstreamError($0, detail: "none")) } + [.notAdmitted("full")]
            for error in errors {
                rig.origin.answers { _ in Reply(refusal: error) }
                let got = await rig.get("/a", policy: policy)
                #expect((got.failure != nil) == control.contains("must-revalidate"))
            }
            #expect(rig.origin.methods == "GET" + String(repeating: " HEAD", count: errors.count))
        }
    }

    @Test(
        "a client's HEAD of what is stale is answered by what a GET confirms, and GET alone is asked from then on",
        arguments: BrokenHead.allCases,
        0..<ways.count
    )
    func clientsHead(_ cause: BrokenHead, _ way: Int) async throws {
        let (policy, control) = ways[way]
        let counts = cause.status.map { policy.countsAsFailure($0) } ?? true
        try await withStale(policy, control, hangs: cause == .hanging) { rig, fields in
            rig.origin.answers { $0.method == .head ? cause.reply() : .whole(304, fields) }
            let got = await rig.get(rig.ask(method: .head, [("Range", "bytes=0-1")], policy: policy))
            guard counts else {
                // It is the origin's answer to this very request.
                #expect(got.status == cause.status && rig.origin.methods == "GET HEAD")
                return
            }
            #expect(got.cache == "fwd=stale; fwd-status=304; ttl=100; detail=revalidated")
            #expect(got.status == 200 && got.body == nil && got.length == Int64(long.count))
            #expect(rig.origin.methods == "GET HEAD GET" && !rig.origin.log[2].fields.contains(.range))
            rig.clock.advance(seconds: 200)
            #expect(await rig.get(rig.ask(method: .head, policy: policy)).cache.hasSuffix("detail=revalidated"))
            #expect(rig.origin.methods == "GET HEAD GET GET")
        }
    }

    @Test("a client that leaves a HEAD that hangs ends it, and nothing else is asked")
    func leaving() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=100"), ("ETag", "\"1\"")]) }
            _ = await rig.get()
            rig.clock.advance(seconds: 200)
            rig.origin.answers { _ in BrokenHead.hanging.reply() }
            var ask = rig.ask()
            ask.onClientAbort = .abort
            let task = await rig.start(ask)
            #expect(await eventually { rig.origin.count == 2 })
            task.cancel()
            #expect(await task.value.failure == .cancelled)
            #expect(await eventually { rig.origin.cancelled == 1 })
            #expect(rig.origin.methods == "GET HEAD")
        }
    }
}
