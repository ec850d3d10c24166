// The memory of a service's demo answers from one request to the next, across reloads: counts, the states of scenarios,
// and the ordinals of draw keys.

import EventLoop
package import Matching
import Policies
import Synchronization

/// The memory of a service's demo answers.
///
/// Sendable: the counters and the collections have mutexes of their own; the rest is under `memory`. A counter may be
/// taken under `memory`, and `memory` while a request is counted, never the other way round.
package final class DemoState: Sendable {
    /// The number of each request among those with its key.
    package let ordinals = DrawOrdinals()
    /// The number of requests that have reached a rule, or that it applies to, if an answer depends on it.
    private let counts = DrawOrdinals()
    private let memory: Mutex<Memory>

    /// The collections with the changes of requests.
    package let collections = DemoCollections()

    fileprivate struct Memory {
        /// The scenarios that are not in their initial state.
        var scenarios: [String: String] = [:]
        /// The scenarios of the plan in force.
        var known: Set<String> = []
        /// The time when the daemon was started, or the state was reset, in nanoseconds.
        var began: UInt64
    }

    /// - Parameter began: the monotonic nanoseconds from which outages count.
    package init(began: UInt64 = Monotonic.now()) { memory = Mutex(Memory(began: began)) }

    // MARK: - Which rule answers

    /// A rule that answers a request, and the number of its answers that came before.
    package struct Turn: Sendable {
        package let rule: DemoRule
        /// The number of answers that the rule has given before; nil for the ordinal of its draw.
        package let position: UInt64?

        package init(rule: DemoRule, position: UInt64?) {
            self.rule = rule
            self.position = position
        }
    }

    /// The rule that answers a request; nil if there is none. Counts the request, and changes the scenario of the rule
    /// to its next state, in one step: a request never sees only a part of another one's changes.
    /// - Parameters:
    ///   - key: the bytes that distinguish requests.
    ///   - now: nanoseconds by the same clock as `began`.
    package func take(_ plan: DemoPlan, _ request: RequestParts, key: [UInt8], now: UInt64) -> Turn? {
        // Conditions that depend on the request only need no lock.
        var candidates: [DemoRule] = []
        var isDecided = false
        for (index, rule) in plan.rules.enumerated() {
            if isDecided, index > plan.lastTurn ?? -1 { break }
            // A rule after the one that answers still counts the request.
            if isDecided, rule.gate?.turn.isEmpty ?? true { continue }
            guard rule.condition?.holds(request) ?? true else { continue }
            candidates.append(rule)
            isDecided = isDecided || rule.gate == nil
        }
        guard let first = candidates.first else { return nil }
        guard candidates.count > 1 || first.gate != nil else { return turn(first) }
        let chosen = memory.withLock { memory in
            var chosen: DemoRule?
            for rule in candidates {
                guard let gate = rule.gate else {
                    chosen = chosen ?? rule
                    continue
                }
                if isOpen(gate, of: rule, key, now, memory, isReached: chosen == nil), chosen == nil { chosen = rule }
            }
            if let step = chosen?.gate?.step, let next = step.next {
                memory.scenarios[step.scenario] = next == ScenarioStep.initial ? nil : next
            }
            return chosen
        }
        return chosen.map { turn($0) }
    }

    /// A request that has been counted.
    package struct Counted: Sendable {
        package let turn: Turn
        /// The name of the rule's draw.
        package let name: DrawName
        /// The draws of the endpoint's faults; nil if it has none.
        package let faults: FaultDraws?
    }

    /// Counts a request as by ``take(_:_:key:now:)``, with the ordinals of the rule's draw and of the draws of faults.
    /// No other request of the key is counted meanwhile.
    /// - Parameters:
    ///   - asked: the rule that the request asks for; nil for the first that holds.
    ///   - said: the draw that it asks for; nil for its own.
    package func count(
        _ plan: DemoPlan,
        _ request: RequestParts,
        key: [UInt8],
        now: UInt64,
        asked: Turn? = nil,
        said: DrawName? = nil,
        faults: FaultPlan?
    ) -> Counted? {
        ordinals.withRequest(key) { count in
            guard let turn = asked ?? take(plan, request, key: key, now: now) else { return nil }
            let rule = DrawKey(rule: turn.rule.name, request: key)
            return Counted(
                turn: turn,
                name: said ?? DrawName(rule, ordinal: count.next(rule)),
                faults: faults?.draws(at: .demo, request: key, count)
            )
        }
    }

    private func turn(_ rule: DemoRule) -> Turn {
        guard case .sequence = rule.choice, rule.counting == .rule else { return Turn(rule: rule, position: nil) }
        return Turn(rule: rule, position: counts.next(DrawKey(rule: rule.name, request: Self.answers)))
    }

    /// Whether a gate is open; counts the request.
    /// - Parameter isReached: whether no rule before it answers: an outage counts only such requests, a turn all of
    ///   them.
    private func isOpen(
        _ gate: RuleGate,
        of rule: DemoRule,
        _ key: [UInt8],
        _ now: UInt64,
        _ memory: Memory,
        isReached: Bool
    ) -> Bool {
        if let step = gate.step, memory.state(of: step.scenario) != step.state { return false }
        if let outage = gate.outage {
            guard outage.isOpen(elapsed: memory.elapsed(now)) else { return false }
            if outage.countsRequests {
                let key = Self.outageKey(rule)
                guard outage.isOpen(request: isReached ? counts.next(key) : counts.count(key)) else { return false }
            }
        }
        return gate.turn.isEmpty || gate.turn.holds(counts.next(Self.turnKey(rule, key)))
    }

    /// The keys of a rule's counters, by kind. They differ from the bytes of every request, which begin with a method.
    private static let answers = Array("\0answers".utf8)
    private static let counted = Array("\0counted".utf8)
    private static func outageKey(_ rule: DemoRule) -> DrawKey {
        DrawKey(rule: rule.name, request: Array("\0outage".utf8))
    }
    private static func turnKey(_ rule: DemoRule, _ key: [UInt8]) -> DrawKey {
        DrawKey(rule: rule.name, request: Array("\0turn ".utf8) + (rule.counting == .request ? key : []))
    }

    /// The number of this answer among those of a rule, from 1; for templates that use it. Any thread.
    package func countAnswer(of rule: String) -> UInt64 {
        counts.next(DrawKey(rule: rule, request: Self.counted)) + 1
    }

    // MARK: - Why a rule does not answer

    /// The reasons why a rule does not answer a request now; empty if it does. Changes nothing.
    package func differences(_ rule: DemoRule, _ request: RequestParts, key: [UInt8], now: UInt64) -> [String] {
        var found = rule.condition?.differences(request) ?? []
        guard let gate = rule.gate else { return found }
        memory.withLock { memory in
            if let step = gate.step {
                let state = memory.state(of: step.scenario)
                if state != step.state { found.append("scenario \(step.scenario) is '\(state)', not '\(step.state)'") }
            }
            if let outage = gate.outage {
                if !outage.isOpen(elapsed: memory.elapsed(now)) { found.append("its outage is not now") }
                let count = counts.count(Self.outageKey(rule))
                if outage.countsRequests, !outage.isOpen(request: count) {
                    found.append("its outage is not with request \(count + 1)")
                }
            }
            let count = counts.count(Self.turnKey(rule, key))
            if !gate.turn.holds(count) { found.append("request \(count + 1) is not \(gate.turn.description)") }
        }
        return found
    }

    /// The rules that came closest to answering a request that none of them answers, the closest first.
    package func nearMisses(_ plan: DemoPlan, _ request: RequestParts, key: [UInt8], now: UInt64) -> [DemoNearMiss] {
        // A rule that only a count, a scenario or an outage holds back is the closest possible.
        let distances = plan.rules.enumerated().map { ($1.condition?.distance(request) ?? 0, $0) }
        // The earlier one of two equally close rules comes first.
        return distances.sorted(by: <).prefix(DemoNearMiss.most).map { _, index in
            let rule = plan.rules[index]
            return DemoNearMiss(rule: rule.label ?? "", differences: differences(rule, request, key: key, now: now))
        }
    }

    // MARK: - What commands see and change

    /// The state of every scenario of the plan in force, by name. Any thread.
    package var scenarios: [String: String] {
        memory.withLock { memory in
            Dictionary(uniqueKeysWithValues: memory.known.map { ($0, memory.state(of: $0)) })
        }
    }

    /// Puts a scenario into a state. Any thread.
    /// - Returns: false if the plan in force has no such scenario.
    package func set(_ scenario: String, to state: String) -> Bool {
        memory.withLock { memory in
            guard memory.known.contains(scenario) else { return false }
            memory.scenarios[scenario] = state == ScenarioStep.initial ? nil : state
            return true
        }
    }

    /// Resets everything: counts begin at 0, scenarios are in their initial state, collections have the items of their
    /// files, and outages count from now. Any thread.
    package func reset(now: UInt64) {
        ordinals.reset()
        counts.reset()
        collections.reset()
        let forgotten = memory.withLock { memory in
            memory.began = now
            return exchange(&memory.scenarios, [:])
        }
        _ = forgotten
    }

    /// Keeps the states of these scenarios, those of a plan that takes effect, and of no others. Any thread.
    package func keep(_ scenarios: Set<String>) {
        let forgotten = memory.withLock { memory in
            memory.known = scenarios
            let kept = memory.scenarios.filter { scenarios.contains($0.key) }
            return exchange(&memory.scenarios, kept)
        }
        _ = forgotten
    }
}

/// Exchanges a value, so that the former one is released by the caller and not under a lock.
private func exchange<Value>(_ value: inout Value, _ other: Value) -> Value {
    let old = value
    value = other
    return old
}

extension DemoState.Memory {
    fileprivate func state(of scenario: String) -> String { scenarios[scenario] ?? ScenarioStep.initial }

    /// The nanoseconds since the beginning; 0 if the clock was set back before it.
    fileprivate func elapsed(_ now: UInt64) -> UInt64 { now > began ? now - began : 0 }
}

// MARK: - The requests of each draw key

/// The ordinals of one service's demo requests: the first request of a key is 0, the next 1, whatever loop it is on.
///
/// Shared by every loop; each shard's state is under that shard's `Mutex`, held for one dictionary access. A gate's
/// mutex is held while one request is counted, and shards are locked under it, never the other way round.
///
/// Memory is bounded: at most `maximumKeys` keys have a counter of their own. A key that comes when its shard is full
/// is counted in one of the shard's 256 common counters, chosen by its digest, and stays there: nothing is dropped, so
/// no key ever starts again at 0. Draws still depend only on key and ordinal, and each (key, ordinal) is drawn at most
/// once. Beyond the bound only density is lost: keys that share a common counter see gaps in their ordinals, so the
/// same requests *in the same order* repeat exactly, while requests that race may take each other's ordinals. A service
/// without draws has no counters: the first request that is counted makes them.
package final class DrawOrdinals: Sendable {
    private static let shardCount = 16
    private static let commonCount = 256

    private final class Shard: Sendable {
        struct State {
            var own: [UInt64: UInt64] = [:]
            /// The common counters; empty until the shard is full.
            var common: [UInt64] = []
        }

        let state = Mutex(State())
    }

    /// A gate that is held while one request is counted with several keys.
    private final class Gate: Sendable {
        let mutex = Mutex(())
    }

    private final class Counters: Sendable {
        let gates = (0..<DrawOrdinals.shardCount).map { _ in Gate() }
        let shards = (0..<DrawOrdinals.shardCount).map { _ in Shard() }
    }

    private let made = AtomicLazyReference<Counters>()
    private let keysPerShard: Int

    /// - Parameter maximumKeys: the number of keys that are counted one by one, default 65,536 (about 3 MiB when full);
    ///   it is divided evenly over 16 shards, so a shard may be full a little earlier.
    package init(maximumKeys: Int = 65_536) {
        keysPerShard = max(0, maximumKeys / Self.shardCount)
    }

    private var counters: Counters { made.load() ?? made.storeIfNil(Counters()) }

    /// True if nothing has been counted yet. Any thread.
    package var isUnused: Bool { made.load() == nil }

    /// The next ordinal of `key`; every call takes one. Any thread.
    package func next(_ key: DrawKey) -> UInt64 {
        counters.shards[Int(key.digest % UInt64(Self.shardCount))].state.withLock { state in
            // The index is kept, so that the key is looked up once.
            if let index = state.own.index(forKey: key.digest) {
                defer { state.own.values[index] &+= 1 }
                return state.own.values[index]
            }
            if state.own.count < keysPerShard {
                state.own[key.digest] = 1
                return 0
            }
            if state.common.isEmpty { state.common = [UInt64](repeating: 0, count: Self.commonCount) }
            let slot = Int(key.digest >> 56)
            defer { state.common[slot] &+= 1 }
            return state.common[slot]
        }
    }

    /// Counts a request with several keys. Of two requests with the same bytes, one has every lower ordinal: the
    /// combination of ordinals does not depend on how they race. Any thread.
    /// - Parameter act: must not wait for another request.
    package func withRequest<Result: Sendable>(_ request: [UInt8], _ act: (RequestCount) -> Result) -> Result {
        let gate = request.withUnsafeBytes { fingerprint($0) } % UInt64(Self.shardCount)
        return counters.gates[Int(gate)].mutex.withLock { _ in act(RequestCount(self)) }
    }

    /// The number of ordinals of `key` that were taken; takes none. Any thread.
    package func count(_ key: DrawKey) -> UInt64 {
        guard let counters = made.load() else { return 0 }
        return counters.shards[Int(key.digest % UInt64(Self.shardCount))].state.withLock { state in
            if let count = state.own[key.digest] { return count }
            return state.common.isEmpty ? 0 : state.common[Int(key.digest >> 56)]
        }
    }

    /// Resets every key to 0. Any thread; a request that comes meanwhile is counted before or after it.
    package func reset() {
        for shard in made.load()?.shards ?? [] {
            var fresh = Shard.State()
            shard.state.withLock { state in swap(&state, &fresh) }
        }
    }

    /// The number of keys that have a counter of their own now. Any thread.
    package var ownKeys: Int {
        (made.load()?.shards ?? []).reduce(0) { sum, shard in sum + shard.state.withLock { $0.own.count } }
    }
}

/// Counts one request, during the call that it is passed to: meanwhile no other request of the same bytes is counted.
package struct RequestCount {
    private let ordinals: DrawOrdinals

    fileprivate init(_ ordinals: DrawOrdinals) { self.ordinals = ordinals }

    /// The next ordinal of a key, see ``DrawOrdinals/next(_:)``.
    package func next(_ key: DrawKey) -> UInt64 { ordinals.next(key) }
}
