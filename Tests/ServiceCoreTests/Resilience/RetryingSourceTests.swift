// Attempts over a real origin: how many it gets, what the sink hears, and what becomes of slots meanwhile.

import Content
import DownloadCore
import EventLoop
import HTTPWire
import Policies
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5)))
struct RetryingSourceTests {
    private static let three = RetryPolicy(count: 3, delay: .nanoseconds(1_000_000), backoff: 1, jitter: 0)

    /// Answers 503 so many times, and then 200.
    private static func failing(_ times: Int) -> ScriptedOrigin.Handler {
        let count = Monitor(0)
        return { _ in
            let number = count.update { number in
                number += 1
                return number
            }
            return number <= times ? .answer(503, "no") : .answer("yes")
        }
    }

    @Test("three retries are four requests, and the last answer is passed on as it is")
    func count() async throws {
        let rig = try await OriginRig(retry: Self.three, Self.failing(100))
        let heard = try await rig.get("/a")
        #expect(heard.status == 503 && heard.body == Array("no".utf8))
        #expect(rig.origin.log.count == 4)
        #expect(rig.runtime.resilience.retryCount == 3)
        #expect(rig.runtime.fetchCount == 4)
        #expect(rig.runtime.admission.running == 0)
        await rig.close()
    }

    @Test("the first good answer is the only one that the sink hears", arguments: [1, 2, 3])
    func succeeds(_ failures: Int) async throws {
        let rig = try await OriginRig(retry: Self.three, Self.failing(failures))
        let heard = try await rig.get("/a")
        #expect(heard.status == 200 && heard.body == Array("yes".utf8) && heard.heads == 1)
        #expect(rig.origin.log.count == failures + 1)
        let reports = rig.reports.read { $0 }
        #expect(reports.count == failures)
        #expect(
            reports.first?.text(service: "s")
                == "service s: GET /a: attempt 2 of 4 in 1 ms, since the status was 503"
        )
        await rig.close()
    }

    @Test("an answer that no policy repeats comes at once", arguments: [200, 404, 500])
    func final(_ status: Int) async throws {
        let rig = try await OriginRig(retry: Self.three) { _ in .answer(status, "x") }
        #expect(try await rig.get("/a").status == status)
        #expect(rig.origin.log.count == 1)
        await rig.close()
    }

    @Test("a connection that ends before the head is repeated, a body that is cut is not")
    func closed() async throws {
        let rig = try await OriginRig(retry: Self.three) { request in
            request.target == "/cut"
                ? .cut : .raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").then(.cut)
        }
        #expect(try await rig.get("/cut").error != nil)
        #expect(rig.origin.requests(target: "/cut") >= 4)
        let heard = try await rig.get("/half")
        #expect(heard.status == 200 && heard.error != nil && heard.heads == 1)
        #expect(rig.origin.requests(target: "/half") == 1)
        await rig.close()
    }

    @Test("a POST is not repeated unless the policy says so, and its content is sent again whole")
    func content() async throws {
        let content = [UInt8](repeating: 97, count: 10_000)
        let rig = try await OriginRig(retry: Self.three, Self.failing(2))
        #expect(try await rig.get("/a", method: .post, content: content).status == 503)
        #expect(rig.origin.log.count == 1)
        await rig.close()
        var policy = Self.three
        policy.methods = .any
        let other = try await OriginRig(retry: policy, Self.failing(2))
        #expect(try await other.get("/a", method: .post, content: content).status == 200)
        #expect(other.origin.log.map(\.body.count) == [10_000, 10_000, 10_000])
        await other.close()
    }

    @Test("between two attempts the slot is another's, and the retry queues behind those who wait")
    func slots() async throws {
        let limits = AdmissionLimits(concurrent: 1, queueLength: 5, wait: 600_000_000_000)
        let policy = RetryPolicy(count: 1, delay: .nanoseconds(1_000_000), backoff: 1, jitter: 0)
        let (fails, gate) = (Gate(), Gate())
        defer {
            fails.open()
            gate.open()
        }
        let rig = try await OriginRig(limits, retry: policy) { request in
            if request.target == "/fails" { _ = fails.wait(seconds: 200) }
            if request.target == "/held" { _ = gate.wait(seconds: 200) }
            return request.target == "/fails" ? .answer(503, "no") : .answer("ok")
        }
        let failing = try await rig.start("/fails").value.get()
        let (held, next) = (await rig.start("/held"), await rig.start("/next"))
        #expect(await eventually { rig.runtime.admission.waiting == 2 })
        // The first attempt ends now, and one of those who wait has its slot before the second one wants it.
        fails.open()
        #expect(await eventually { rig.origin.requests(target: "/held") == 1 && rig.runtime.admission.waiting == 2 })
        #expect(rig.runtime.resilience.retryCount == 1 && rig.runtime.admission.running == 1)
        #expect(!failing.read { $0.isOver })
        gate.open()
        let ends = [failing, try await held.value.get(), try await next.value.get()]
        #expect(await eventually { ends.allSatisfy { $0.read { $0.isOver } } })
        #expect(rig.origin.log.map(\.target) == ["/fails", "/held", "/next", "/fails"])
        #expect(rig.runtime.admission.running == 0)
        await rig.close()
    }

    @Test("what is cancelled between two attempts is not repeated")
    func cancelled() async throws {
        let rig = try await OriginRig(
            retry: RetryPolicy(count: 3, delay: .nanoseconds(60_000_000_000), jitter: 0),
            Self.failing(100)
        )
        let heard = try await rig.start("/a").value.get()
        #expect(await eventually { rig.runtime.resilience.retryCount == 1 })
        await rig.cancelAll()
        // What comes later on the same loop is asked, and the other was not.
        _ = await rig.start("/b")
        #expect(await eventually { rig.origin.requests(target: "/b") == 1 })
        #expect(rig.origin.requests(target: "/a") == 1 && !heard.read { $0.isOver })
        await rig.cancelAll()
        #expect(await eventually { rig.runtime.admission.running == 0 })
        await rig.close()
    }

    @Test("a failing origin gets no more retries than the budget has")
    func budget() async throws {
        var policy = Self.three
        policy.budget = 0
        let rig = try await OriginRig(retry: policy, Self.failing(1_000))
        for _ in 0..<10 { #expect(try await rig.get("/a").status == 503) }
        #expect(rig.origin.log.count == 20, "ten requests, and the ten retries of the reserve")
        #expect(rig.runtime.resilience.unaffordableCount == 7)
        let refusals = rig.reports.read { $0 }.filter { if case .retryRefused = $0 { true } else { false } }
        #expect(refusals.count == 7 && refusals.map(\.isWarning) == [true] + Array(repeating: false, count: 6))
        #expect(
            refusals.first?.text(service: "s")
                == "service s: GET /a: no further attempt after 2, although the status was 503: \(RetryBudget.refusal)"
        )
        await rig.close()
    }

    @Test("an error says that the budget has kept it from being repeated", arguments: [0.0, nil])
    func refusedError(_ budget: Double?) async throws {
        let policy = RetryPolicy(count: 12, delay: .zero, jitter: 0, budget: budget)
        let rig = try await OriginRig(retry: policy) { _ in OriginReply([.cut]) }
        let error = try await rig.get("/a").error
        let isTold = error?.description.contains("; it was not repeated: \(RetryBudget.refusal)") == true
        #expect(isTold == (budget != nil) && error?.told.contains(RetryBudget.refusal) == isTold, "\(error as Any)")
        #expect(rig.runtime.resilience.unaffordableCount == (budget == nil ? 0 : 1))
        #expect(rig.runtime.resilience.retryCount == (budget == nil ? 12 : 10))
        await rig.close()
    }

    @Test("a body that is not what the route expects is fetched again before a byte of it is passed on")
    func unexpected() async throws {
        let policy = RetryPolicy(count: 2, delay: .zero, jitter: 0, causes: [.content])
        let bodies = Monitor(["<html>", "{\"a\": ", "{\"a\": 1}"])
        let rig = try await OriginRig(retry: policy, expect: .jsonObject) { _ in
            .answer(bodies.update { $0.isEmpty ? "[]" : $0.removeFirst() })
        }
        let heard = try await rig.get("/a")
        #expect(heard.body == Array("{\"a\": 1}".utf8) && heard.heads == 1 && heard.error == nil)
        #expect(rig.origin.log.count == 3)
        // None is left that would do: the last one is passed on, for whoever asked to judge.
        let last = try await rig.get("/b")
        #expect(last.body == Array("[]".utf8) && last.status == 200)
        #expect(rig.origin.requests(target: "/b") == 3)
        await rig.close()
    }

    @Test("a body that is cut while it is looked at is fetched again, one that nobody can look into is not")
    func cut() async throws {
        let policy = RetryPolicy(count: 2, delay: .zero, jitter: 0, causes: [.content])
        let count = Monitor(0)
        let rig = try await OriginRig(retry: policy, expect: .json) { request in
            if request.target == "/zstd" { return .answer("[]", fields: [("Content-Encoding", "zstd")]) }
            let number = count.update { number in
                number += 1
                return number
            }
            return number == 1
                ? .raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n[1,").then(.cut) : .answer("[1, 2]")
        }
        let heard = try await rig.get("/a")
        #expect(heard.body == Array("[1, 2]".utf8) && heard.error == nil && heard.heads == 1)
        #expect(try await rig.get("/zstd").status == 200)
        #expect(rig.origin.requests(target: "/zstd") == 1)
        await rig.close()
    }

    @Test("nobody asks again once the origin is not to be asked", arguments: [0, 1])
    func mayAsk(_ allowed: Int) async throws {
        let rig = try await OriginRig(retry: Self.three, attempts: allowed, Self.failing(100))
        let heard = try await rig.get("/a")
        if allowed == 0 {
            #expect(heard.status == 503 && heard.error == nil)
        } else {
            guard case .offline(let detail)? = heard.error else {
                Issue.record("\(String(describing: heard.error))")
                return await rig.close()
            }
            #expect(detail.contains("before, the status was 503"))
        }
        #expect(rig.origin.log.count == 1)
        await rig.close()
    }

    @Test("a body that is larger than what is held comes whole, once")
    func large() async throws {
        let policy = RetryPolicy(count: 2, delay: .zero, jitter: 0, causes: [.content])
        let text = "[" + String(repeating: "1,", count: 1_500_000) + "1]"
        let rig = try await OriginRig(retry: policy, expect: .json) { _ in .answer(text) }
        let heard = try await rig.get("/a")
        #expect(heard.body == Array(text.utf8) && heard.heads == 1)
        #expect(rig.origin.log.count == 1)
        await rig.close()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct BreakerTests {
    private static let policy = BreakerPolicy(
        failures: 3,
        window: .nanoseconds(60_000_000_000),
        pause: .nanoseconds(5_000_000_000)
    )

    @Test("after failures in a row nobody asks the origin, until one request has probed it")
    func opensAndCloses() async throws {
        let isUp = Monitor(false)
        let rig = try await OriginRig(breaker: Self.policy) { _ in
            isUp.read { $0 } ? .answer("ok") : .answer(503, "no")
        }
        for _ in 0..<3 { #expect(try await rig.get("/a").status == 503) }
        guard case .failure(.unavailable(let detail, seconds: _)) = await rig.start("/a").value else {
            Issue.record("the origin was asked")
            return await rig.close()
        }
        #expect(detail.contains("circuit breaker of \(rig.origin.url)") && detail.contains("for another 5 s"))
        #expect(rig.origin.log.count == 3)
        #expect(rig.runtime.resilience.breaker(of: rig.origin.url) == .open(for: 5_000_000_000))
        // The probe fails, and it is open again.
        rig.now.update { $0 += 5_000_000_000 }
        #expect(try await rig.get("/probe").status == 503)
        guard case .failure(.unavailable) = await rig.start("/a").value else {
            Issue.record("the origin was asked")
            return await rig.close()
        }
        isUp.update { $0 = true }
        rig.now.update { $0 += 5_000_000_000 }
        #expect(try await rig.get("/probe").status == 200)
        #expect(try await rig.get("/a").status == 200)
        #expect(rig.origin.log.map(\.target) == ["/a", "/a", "/a", "/probe", "/probe", "/a"])
        #expect(rig.runtime.resilience.openingCount == 2 && rig.runtime.resilience.refusalCount == 2)
        let reports = rig.reports.read { $0 }.map { $0.text(service: "s") }
        #expect(reports.count == 3)
        #expect(reports.first?.contains("opened after 3 failures in a row") == true)
        #expect(reports.last?.hasSuffix("closed: the origin answers again") == true)
        #expect(rig.runtime.admission.running == 0)
        await rig.close()
    }

    @Test("while a probe is under way nobody else asks, and one that is cancelled leaves it to the next")
    func probes() async throws {
        let gate = Gate()
        defer { gate.open() }
        let rig = try await OriginRig(breaker: Self.policy) { request in
            if request.target == "/held" { _ = gate.wait(seconds: 200) }
            return request.target == "/a" ? .answer(502, "no") : .answer("ok")
        }
        for _ in 0..<3 { _ = try await rig.get("/a") }
        rig.now.update { $0 += 5_000_000_000 }
        _ = try await rig.start("/held").value.get()
        guard case .failure(.unavailable(let detail, seconds: _)) = await rig.start("/b").value else {
            Issue.record("the origin was asked")
            return await rig.close()
        }
        #expect(detail.contains("half-open"))
        await rig.cancelAll()
        gate.open()
        #expect(try await rig.get("/b").status == 200)
        #expect(rig.runtime.resilience.breaker(of: rig.origin.url) == .closed)
        await rig.close()
    }

    @Test("what is not the origin's failure opens nothing", arguments: [200, 404, 500])
    func others(_ status: Int) async throws {
        let rig = try await OriginRig(breaker: Self.policy) { _ in .answer(status, "x") }
        for _ in 0..<10 { #expect(try await rig.get("/a").status == status) }
        #expect(rig.runtime.resilience.breaker(of: rig.origin.url) == .closed)
        await rig.close()
    }

    @Test("no answer at all opens it like the statuses of a gateway")
    func connections() async throws {
        let rig = try await OriginRig(breaker: Self.policy) { _ in .cut }
        for _ in 0..<3 { #expect(try await rig.get("/a").error != nil) }
        guard case .failure(.unavailable) = await rig.start("/a").value else {
            Issue.record("the origin was asked")
            return await rig.close()
        }
        await rig.close()
    }
}
