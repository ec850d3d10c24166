// One run of one scenario in one way: its steps, in order, up to the first that does not hold.

import Foundation
import TestSupport

final class ScenarioRun {
    private let rig: WayRig
    private let daemon: Daemon
    private let client: ClientSide
    private let admin: AdminSide
    private let base: String
    private var started: [String: SentRequest] = [:]
    private var isOffline = false
    private var failures: [ScenarioFailure] = []

    init(rig: WayRig, daemon: Daemon, client: ClientSide, admin: AdminSide, base: String) {
        self.rig = rig
        self.daemon = daemon
        self.client = client
        self.admin = admin
        self.base = base
    }

    private var way: Way { rig.way }
    private var clientBase: String { way.mode == .reverse ? "/s\(base)" : base }
    private var clientAuthority: String {
        way.mode == .reverse ? "127.0.0.1:\(daemon.port)" : rig.origin.authority
    }
    private var originScope: ScriptScope {
        ScriptScope(now: rig.now, authority: rig.origin.authority, path: base)
    }
    private var clientScope: ScriptScope {
        ScriptScope(now: rig.now, authority: clientAuthority, path: clientBase)
    }

    func run(_ scenario: Scenario) -> [ScenarioFailure] {
        defer {
            // Best effort: a daemon that does not answer any more fails the next scenario with its reason.
            if isOffline { try? admin.setOffline(false) }
        }
        for step in scenario.steps {
            do {
                try run(step)
            } catch let error as ScriptTextError {
                fail(step.position, error.message)
            } catch {
                fail(step.position, "\(error)")
            }
            let unexpected = rig.origin.state.read { $0.unexpected }
            if !unexpected.isEmpty {
                fail(step.position, "the origin was asked what the script has no answer for: \(unexpected)")
            }
            if !failures.isEmpty { break }
        }
        if failures.isEmpty, let name = started.keys.sorted().first {
            fail(scenario.position, "\(name) was started and never finished")
        }
        if failures.isEmpty { checkRest(of: scenario) }
        return failures
    }

    private func fail(_ position: ScriptPosition, _ message: String) {
        failures.append(ScenarioFailure(position: position, way: way, message: message))
    }

    private func run(_ step: ScriptStep) throws {
        switch step.action {
        case .origin(let script): try rig.origin.install(script, scope: originScope)
        case .ask(let request, let expectations):
            try check(client.read(try send(request)), expectations, at: step.position)
        case .start(let name, let request):
            guard started[name] == nil else { return fail(step.position, "\(name) is under way already") }
            started[name] = try send(request)
            try admin.waitUntilSeen()
        case .finish(let name, let expectations):
            guard let sent = started.removeValue(forKey: name) else {
                return fail(step.position, "\(name) was not started")
            }
            try check(client.read(sent), expectations, at: step.position)
        case .release(let path):
            if !rig.origin.release(path) { fail(step.position, "nothing of the origin's script waits at \(path)") }
        case .settle:
            try settle(at: step.position)
        case .asked(let expected): try checkAsked(expected, at: step.position)
        case .clock(let seconds): try rig.advance(seconds, admin)
        case .offline(let on):
            try admin.setOffline(on)
            isOffline = on
        case .explain(let request, let lines): try explain(request, lines, at: step.position)
        }
    }

    private func settle(at position: ScriptPosition) throws {
        if try !admin.waitUntilSettled() { fail(position, "a fetch is still under way") }
    }

    private func send(_ request: RequestScript) throws -> SentRequest {
        guard request.path.hasPrefix("//") else {
            let target = way.target(request.path == "*" ? "*" : base + request.path, origin: rig.origin.authority)
            return try client.send(request, target: target, authority: clientAuthority, scope: clientScope)
        }
        guard way.mode == .forward else { throw ScriptTextError("a path behind “//HOST” takes “only forward”") }
        // The same server by another name is another origin (RFC 9110 section 4.3.1).
        let host = request.path.dropFirst(2).prefix { $0 != "/" }
        let authority = "\(host):\(rig.origin.authority.drop { $0 != ":" }.dropFirst())"
        let target = way.target(base + request.path.dropFirst(2 + host.count), origin: authority)
        return try client.send(request, target: target, authority: authority, scope: clientScope)
    }

    private func check(_ response: RawResponse, _ expectations: [Expectation], at position: ScriptPosition) throws {
        let comparison = try ResponseComparison(response, expectations, scope: clientScope)
        for (index, mismatch) in comparison.mismatches.enumerated() {
            let isLast = index == comparison.mismatches.count - 1
            fail(mismatch.position ?? position, mismatch.message + (isLast ? "\n" + comparison.summary : ""))
        }
    }

    private func explain(_ request: RequestScript, _ lines: [ScriptLine], at position: ScriptPosition) throws {
        let scope = clientScope
        let fields = try request.fields.map { ($0.name, try scope.expand($0.value)) }
        let result = try admin.explain(scope.url + request.path, fields: fields)
        guard result.succeeded else { return fail(position, "explain failed: \(result.report)") }
        for line in lines {
            let expected = try scope.expand(line.text)
            if expected.hasPrefix("!~ ") {
                if result.output.contains(expected.dropFirst(3)) { fail(line.position, "is in: \(result.report)") }
            } else if !result.output.contains(expected) {
                fail(line.position, "expected “\(expected)” in: \(result.report)")
            }
        }
    }

    // MARK: - What the origin was asked

    private func checkAsked(_ scripts: [AskedScript], at position: ScriptPosition) throws {
        // One request too many may come a moment later. What is held or not read yet does not settle.
        if !rig.origin.isHolding, started.isEmpty { try settle(at: position) }
        let expected = scripts.compactMap { script -> AskedScript? in
            var script = script
            if script.method == "REFETCH" {
                if way.check == .conditional { return nil }
                script.method = "GET"
            } else if script.method == "CHECK" {
                script.method = way.check == .head ? "HEAD" : "GET"
            }
            return script
        }
        let asked = rig.origin.takeAsked(expected.count)
        let got = asked.map { "\($0.request.method) \($0.path)" }
        let wanted = expected.map { "\($0.method) \($0.path)" }
        guard got == wanted else {
            return fail(position, "the origin was asked\n  expected \(wanted)\n  got \(got)\n\(asked.map(describe))")
        }
        for (script, asked) in zip(expected, asked) { compare(script, asked.request) }
    }

    /// A scenario that says what the origin was asked says all of it: nothing more comes after its last `asked`.
    private func checkRest(of scenario: Scenario) {
        guard let last = scenario.steps.last, scenario.saysWhatIsAsked else { return }
        rig.origin.releaseAll()
        do {
            try settle(at: last.position)
        } catch {
            fail(last.position, "\(error)")
        }
        let asked = rig.origin.takeAsked(0)
        if !asked.isEmpty {
            let got = asked.map { "\($0.request.method) \($0.path)" }
            fail(last.position, "after its last “asked” the origin was asked\n  got \(got)\n\(asked.map(describe))")
        }
    }

    private func compare(_ script: AskedScript, _ request: OriginRequest) {
        for field in script.fields {
            let values = request.all(field.name)
            do {
                let joined = values.isEmpty ? nil : values.joined(separator: ", ")
                if let mismatch = try field.test.mismatch(field.name, joined, originScope) {
                    fail(field.position, "asked \(mismatch)\n  in \(script.method) \(script.path) \(request.fields)")
                }
            } catch {
                fail(field.position, error.message)
            }
        }
        if let body = script.body, ClientSide.bytes(body) != request.body {
            let (expected, got) = (excerpt(ClientSide.bytes(body)), excerpt(request.body))
            fail(script.position, "the origin received the body\n  expected \(expected)\n  got \(got)")
        }
    }

    private func describe(_ asked: OriginSide.Asked) -> String {
        "\(asked.request.method) \(asked.path) \(asked.request.fields.map { "\($0.name): \($0.value)" })"
    }
}
