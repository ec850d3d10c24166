// A service's origin as a source of fetches: what its requests carry on the wire, and its slots.

import DownloadCore
import EventLoop
import HTTPWire
import ServiceCore
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct OriginSourceTests {
    @Test("Host is the base URL's, the client's where the service preserves it, or what the rules say: always one")
    func host() async throws {
        let rig = try await OriginRig { _ in .answer("ok") }
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
        let rig = try await OriginRig { _ in .answer("ok") }
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
        let limits = AdmissionLimits(concurrent: 1, queueLength: 1, wait: 600_000_000_000)
        let rig = try await OriginRig(limits) { request in
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
        let rig = try await OriginRig(limits) { _ in
            _ = gate.wait(seconds: 200)
            return .answer("ok")
        }
        _ = await rig.start("/held").value
        guard case .failure(.notAdmitted(let detail)) = await rig.start("/late").value else {
            Issue.record("admitted past the limit")
            return await rig.close()
        }
        #expect(detail.contains("within 20 ms") && detail.contains("max_queue.wait"))
        rig.runtime.admission.update(AdmissionLimits(concurrent: 1, queueLength: 5, wait: 600_000_000_000))
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
