// A service's origin as a source of fetches: what its requests carry on the wire, and its slots.

import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import ServiceCore
import TestSupport
import Testing
import Upstream

private struct Heard: Sendable {
    var status = 0
    var body: [UInt8] = []
    var error: FetchError?
    var isOver = false
}

/// Writes down what a fetch came to; loop-bound.
private final class Sink: FetchSink {
    let heard: Monitor<Heard>

    init(_ heard: Monitor<Heard>) { self.heard = heard }

    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) { heard.update { $0.status = head.status } }
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        heard.update { $0.body += Array(bytes) }
        return .continue
    }
    func finished(trailers: Fields) { heard.update { $0.isOver = true } }
    func failed(_ error: FetchError) {
        heard.update {
            $0.error = error
            $0.isOver = true
        }
    }
}

@available(*, unavailable) extension Sink: Sendable {}

/// What lives on the loop.
private final class Inside: @unchecked Sendable {  // used on the loop only
    var client: UpstreamClient?
    var handles: [any FetchHandle] = []
}

/// A service over a real origin on loopback.
private final class Rig: Sendable {
    let loop: EventLoop
    let pool: IOPool
    let origin: ScriptedOrigin
    let runtime: ServiceRuntime
    private let limits: AdmissionLimits
    private let inside = Inside()

    init(_ limits: AdmissionLimits = AdmissionLimits(), _ handler: @escaping ScriptedOrigin.Handler) async throws {
        loop = try EventLoop.start()
        pool = try IOPool(threads: 2)
        origin = try ScriptedOrigin(handler)
        runtime = ServiceRuntime(name: "s", limits: limits)
        self.limits = limits
        let (inside, pool) = (inside, pool)
        await begin(on: loop) { loop in
            let resolver = Resolver(pool: pool, lookup: { SystemResolver.lookup($0, port: $1) })
            inside.client = UpstreamClient(on: loop, resolver: resolver)
        }.value
    }

    /// Starts a fetch; throws what the source throws.
    func start(
        _ path: String = "/",
        _ fields: [(String, String)] = [],
        clientHost: String? = nil,
        rules: FieldRules = FieldRules(),
        authorization: String? = nil,
        preservesHost: Bool = false
    ) async -> Task<Result<Monitor<Heard>, FetchError>, Never> {
        let address = OriginAddress(scheme: "http", host: "127.0.0.1", port: UInt16(origin.port), basePath: "")
        let plan = RequestPlan(rules: rules)
        let service = ServicePlan(
            name: "s",
            origin: address,
            preservesHost: preservesHost,
            request: plan,
            authorization: authorization,
            admission: limits
        )
        let (inside, runtime) = (inside, runtime)
        return await begin(on: loop) { loop in
            guard let client = inside.client else { return .failure(.cancelled) }
            let source = OriginSource(service: service, origin: address, plan: plan, runtime: runtime, client: client)
            let request = FetchRequest(method: .get, path: path, fields: Fields(fields), clientHost: clientHost)
            let heard = Monitor(Heard())
            do throws(FetchError) {
                inside.handles.append(try await source.start(request, sink: Sink(heard), on: loop))
                return .success(heard)
            } catch {
                return .failure(error)
            }
        }
    }

    /// Runs a fetch to its end.
    func get(
        _ path: String = "/",
        _ fields: [(String, String)] = [],
        clientHost: String? = nil,
        rules: FieldRules = FieldRules(),
        authorization: String? = nil,
        preservesHost: Bool = false
    ) async throws -> Heard {
        let task = await start(
            path,
            fields,
            clientHost: clientHost,
            rules: rules,
            authorization: authorization,
            preservesHost: preservesHost
        )
        let heard = try await task.value.get()
        #expect(await eventually { heard.read { $0.isOver } })
        return heard.read { $0 }
    }

    func cancelAll() async {
        await begin(on: loop) { [inside] _ in
            for handle in inside.handles { handle.cancel() }
        }.value
    }

    func close() async {
        await begin(on: loop) { [inside] _ in
            inside.client?.shutdown()
            inside.client = nil
            inside.handles = []
        }.value
        origin.stop()
        loop.stop()
        pool.stop()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct OriginSourceTests {
    @Test("Host is the base URL's, the client's where the service preserves it, or what the rules say: always one")
    func host() async throws {
        let rig = try await Rig { _ in .answer("ok") }
        let client = [("Host", "proxy.test"), ("X-A", "1")]
        #expect(try await rig.get("/1", client, clientHost: "proxy.test").status == 200)
        _ = try await rig.get("/2", client, clientHost: "proxy.test", preservesHost: true)
        _ = try await rig.get("/3", client, rules: FieldRules(set: [("host", "set.test")]))
        _ = try await rig.get("/4", client, rules: FieldRules(add: [("Host", "add.test")]))
        _ = try await rig.get("/5", client, rules: FieldRules(remove: ["Host"]))
        _ = try await rig.get("/6", client, preservesHost: true)
        let hosts = rig.origin.log.map { $0.all("Host") }
        let own = [rig.origin.authority]
        #expect(hosts == [own, ["proxy.test"], ["set.test"], ["add.test"], own, own])
        #expect(rig.runtime.fetchCount == 6 && rig.runtime.admission.running == 0)
        await rig.close()
    }

    @Test("rules apply in their order, and the service's Authorization replaces the client's and the rules'")
    func rules() async throws {
        let rig = try await Rig { _ in .answer("ok") }
        let rules = FieldRules(
            remove: ["X-Gone"],
            set: [("X-Set", "set"), ("Authorization", "Basic rules")],
            add: [("X-Set", "added")]
        )
        let client = [("X-Gone", "1"), ("x-set", "client"), ("Authorization", "Basic client"), ("X-Kept", "k")]
        _ = try await rig.get("/p?q=%41", client, rules: rules, authorization: "Bearer service")
        _ = try await rig.get("/q", client, rules: rules)
        _ = try await rig.get("/r", client)
        let log = rig.origin.log
        #expect(log[0].target == "/p?q=%41")
        #expect(
            log[0].all("X-Gone").isEmpty && log[0].all("X-Set") == ["set", "added"] && log[0].all("X-Kept") == ["k"]
        )
        #expect(log.map { $0.all("Authorization") } == [["Bearer service"], ["Basic rules"], ["Basic client"]])
        await rig.close()
    }

    @Test("a slot is taken for a fetch, and comes back at its end, its failure and its cancellation")
    func slots() async throws {
        let gate = Gate()
        defer { gate.open() }
        let limits = AdmissionLimits(concurrent: 1, queueLength: 1, wait: 60_000_000_000)
        let rig = try await Rig(limits) { request in
            if request.target == "/cut" { return .cut }
            if request.target == "/held" { _ = gate.wait(seconds: 200) }
            return .answer("ok")
        }
        let admission = rig.runtime.admission
        #expect(try await rig.get("/").status == 200)
        #expect(admission.running == 0)
        #expect(try await rig.get("/cut").error != nil)
        #expect(admission.running == 0)
        guard case .success(let held) = await rig.start("/held").value else {
            Issue.record("not admitted")
            return await rig.close()
        }
        #expect(admission.running == 1)
        let waiting = await rig.start("/waits")
        #expect(await eventually { admission.waiting == 1 })
        guard case .failure(.notAdmitted(let detail)) = await rig.start("/full").value else {
            Issue.record("admitted past the queue")
            return await rig.close()
        }
        #expect(detail.contains("1 fetches under way and 1 waiting") && detail.contains("max_concurrent"))
        await rig.cancelAll()
        guard case .success(let next) = await waiting.value else {
            Issue.record("the slot of a cancelled fetch was not given to the next")
            return await rig.close()
        }
        #expect(await eventually { next.read { $0.isOver } })
        #expect(next.read { $0.status } == 200 && !held.read { $0.isOver }, "a cancelled fetch says nothing more")
        gate.open()
        #expect(await eventually { admission.running == 0 && admission.waiting == 0 })
        await rig.close()
        #expect(admission.running == 0)
    }

    @Test("who waits too long for a slot is told what to change, and who leaves is forgotten")
    func refusals() async throws {
        let gate = Gate()
        defer { gate.open() }
        let limits = AdmissionLimits(concurrent: 1, queueLength: 5, wait: 20_000_000)
        let rig = try await Rig(limits) { _ in
            _ = gate.wait(seconds: 200)
            return .answer("ok")
        }
        _ = await rig.start("/held").value
        guard case .failure(.notAdmitted(let detail)) = await rig.start("/late").value else {
            Issue.record("admitted past the limit")
            return await rig.close()
        }
        #expect(detail.contains("within 20 ms") && detail.contains("max_queue.wait"))
        rig.runtime.admission.update(AdmissionLimits(concurrent: 1, queueLength: 5, wait: 60_000_000_000))
        let leaving = await rig.start("/leaves")
        leaving.cancel()
        guard case .failure(.cancelled) = await leaving.value else {
            Issue.record("a cancelled wait was admitted")
            return await rig.close()
        }
        #expect(rig.origin.requests(target: "/late") + rig.origin.requests(target: "/leaves") == 0)
        gate.open()
        await rig.close()
        #expect(rig.runtime.admission.running == 0 && rig.runtime.admission.waiting == 0)
    }
}
