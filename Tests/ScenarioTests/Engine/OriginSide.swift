// The origin of one way: answers as the running scenario says, and remembers what it was asked.

import Foundation
import TestSupport

/// Sendable: its state is under its monitor; the threads of the origin's connections come here.
final class OriginSide: Sendable {
    /// A block of the script with its templates filled in, from the moment it was read.
    struct Block: Sendable {
        var script: OriginScript
        var body: [UInt8]
        let gate = Gate()

        var holds: Bool { script.holds || script.holdsBody != nil }
    }

    /// A request that came.
    struct Asked: Sendable {
        var request: OriginRequest
        /// Without the scenario's own path.
        var path: String
        /// It is idempotent and was dropped on a connection that had served before, so that it may come once more
        /// (RFC 9112 section 9.3.1): the two count as one.
        var mayComeAgain = false
    }

    struct State: Sendable {
        /// The running scenario's own path.
        var base = "/"
        var blocks: [String: Block] = [:]
        var asked: [Asked] = []
        /// Requests for which the script has no answer.
        var unexpected: [String] = []
        /// The daemon's clock is so many seconds ahead.
        var ahead: Int64 = 0
        /// Of blocks that hold and have not been released, of one that another has replaced, too.
        var shut: [(path: String, gate: Gate)] = []
    }

    let state: Monitor<State>
    private let server: ScriptedOrigin

    init(_ clock: StillClock) throws {
        let state = Monitor(State())
        self.state = state
        server = try ScriptedOrigin { request in OriginSide.reply(to: request, state, clock) }
    }

    var authority: String { server.authority }
    var url: String { server.url }

    /// Forgets the scenario before, and lets go of what still waits in it.
    func begin(_ base: String, ahead: Int64) {
        server.forgetRequests()
        state.update { state in
            for (_, gate) in state.shut { gate.open() }
            state = State(base: base, ahead: ahead)
        }
    }

    /// Takes a block over: it answers from now on.
    func install(_ script: OriginScript, scope: ScriptScope) throws {
        var script = script
        for index in script.fields.indices {
            script.fields[index].value = try scope.expand(script.fields[index].value)
        }
        let body: [UInt8]
        switch script.body {
        case .bytes(let bytes): body = bytes
        case .pattern(let count): body = Pattern.bytes(0..<count)
        }
        let block = Block(script: script, body: body)
        state.update { state in
            if block.holds { state.shut.append((script.path, block.gate)) }
            for method in script.method.map({ [$0] }) ?? ["GET", "HEAD"] {
                state.blocks["\(method) \(script.path)"] = block
            }
        }
    }

    /// Lets everything go that waits at a block of this path; says whether something could wait there.
    func release(_ path: String) -> Bool {
        state.update { state in
            let waits = state.shut.filter { $0.path == path }
            for (_, gate) in waits { gate.open() }
            state.shut.removeAll { $0.path == path }
            return !waits.isEmpty
        }
    }

    /// Whether something may wait for a release.
    var isHolding: Bool { state.read { !$0.shut.isEmpty } }

    /// Lets everything go that waits, at whatever path.
    func releaseAll() {
        state.update { state in
            for (_, gate) in state.shut { gate.open() }
            state.shut = []
        }
    }

    /// What came since the last call, once it is `count` requests, or where they do not come.
    func takeAsked(_ count: Int) -> [Asked] {
        state.wait(ScriptFiles.patience) { $0.asked.count >= count }
        return state.update { state in
            defer { state.asked = [] }
            return state.asked
        }
    }

    /// RFC 9110 section 9.2.2.
    private static let idempotent: Set<String> = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]

    private static func reply(
        to request: OriginRequest,
        _ state: Monitor<State>,
        _ clock: StillClock
    ) -> OriginReply {
        let found = state.update { state -> (Block, Int64)? in
            var path = request.target
            if path != "*" {
                // What is late and belongs to a scenario that is over concerns nobody.
                guard path.hasPrefix(state.base + "/") else { return nil }
                path.removeFirst(state.base.count)
            }
            let block = state.blocks["\(request.method) \(path)"]
            var asked = Asked(request: request, path: path)
            asked.mayComeAgain =
                block?.script.drops == true && request.ordinal > 1 && idempotent.contains(request.method)
            if let last = state.asked.last, last.mayComeAgain, request.ordinal == 1, last.path == path,
                last.request.method == request.method
            {
                state.asked.removeLast()
            }
            state.asked.append(asked)
            if block == nil { state.unexpected.append("\(request.method) \(path)") }
            return block.map { ($0, clock.second + state.ahead) }
        }
        guard let (block, now) = found else {
            return .answer(404, to: request, fields: [("Cache-Control", "no-store")], "no script")
        }
        return OriginAnswer(block: block, request: request, now: now).reply
    }
}
