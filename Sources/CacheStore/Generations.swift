// Invalidation: generations keep a fill that began before its key was invalidated from ever being committed; rules
// invalidate every stored response of a name at once, and are looked at when one of them is found.

import EventLoop
import Glibc
import Synchronization

/// What a fill notes at its start.
package struct GenerationToken: Sendable, Equatable {
    let slot: Int
    let generation: UInt64
    let epoch: UInt64
    /// How many rules had been made.
    let ruleCount: UInt64
    /// Greater than that of every moment before: tells which of two responses was asked for later.
    package let number: UInt64
    /// The rules that concern the response, once its head is known.
    var rules: [InvalidationRule] = []

    /// The same moment, for a response that these rules concern.
    package func concerned(by rules: [InvalidationRule]) -> GenerationToken {
        guard !rules.isEmpty else { return self }
        var token = self
        token.rules = rules
        return token
    }
}

/// Keys share a fixed number of counters: a collision only keeps one fill from being stored. Rules are few; past a bound
/// the older half of them becomes one that concerns every response with a name, which costs fetches and nothing else.
///
/// Sendable: counters and rules are under one mutex, held for a short time; the log has its own.
package final class Generations: Sendable {
    private static let slots = 4096
    /// Rules at most.
    package static let mostRules = 8192
    /// Bytes of their names at most.
    static let mostBytes = 1 << 20

    /// When a rule was made.
    struct Moment: Sendable, Equatable {
        /// Unix seconds.
        var time: Int64
        /// Counted from 1 in this process; 0 for what an earlier process made.
        var number: UInt64
    }

    private struct State {
        var counters = [UInt64](repeating: 0, count: Generations.slots)
        var epoch: UInt64 = 0
        var ruleCount: UInt64 = 0
        var rules: [InvalidationRule: Moment] = [:]
        var bytes = 0
        /// Concerns every response that any rule may concern.
        var floor: Moment?
        /// The latest time of validation that a response with a rule is known to have: what is invalidated after it, is.
        var latest = Int64.min
        var lastNumber: UInt64 = 0

        mutating func nextNumber() -> UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            let now = UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
            lastNumber = max(now, lastNumber &+ 1)
            return lastNumber
        }

        func moments(_ names: [InvalidationRule]) -> [Moment] {
            if names.isEmpty { return [] }
            return names.compactMap { rules[$0] } + (floor.map { [$0] } ?? [])
        }

        func isUnchanged(_ token: GenerationToken) -> Bool {
            counters[token.slot] == token.generation && epoch == token.epoch
                && !moments(token.rules).contains { $0.number > token.ruleCount }
        }
    }

    private let state = Mutex(State())
    private let log: InvalidationLog?

    /// Rules that are forgotten with the process.
    package init() { log = nil }

    /// Rules that a file keeps beside the stored responses; blocks.
    init(path: String, pool: IOPool) {
        let log = InvalidationLog(path: path, pool: pool)
        self.log = log
        let records = log.load()
        state.withLock { state in
            for record in records { Self.make(record.rule, Moment(time: record.time, number: 0), &state) }
            Self.bound(&state)
        }
    }

    // MARK: - Keys

    package func note(_ key: CacheKey) -> GenerationToken {
        let slot = Int(key.hash % UInt64(Self.slots))
        return state.withLock { state in
            GenerationToken(
                slot: slot,
                generation: state.counters[slot],
                epoch: state.epoch,
                ruleCount: state.ruleCount,
                number: state.nextNumber()
            )
        }
    }

    /// A number of its own, later than all before it.
    package func nextNumber() -> UInt64 { state.withLock { $0.nextNumber() } }

    /// What is stored has this number already.
    func advance(past number: UInt64) { state.withLock { $0.lastNumber = max($0.lastNumber, number) } }

    /// Invalidates the fills of `key` that are under way. Call it before the stored responses are removed.
    package func bump(_ key: CacheKey) {
        let slot = Int(key.hash % UInt64(Self.slots))
        state.withLock { $0.counters[slot] &+= 1 }
    }

    /// Invalidates every fill that is under way.
    package func bumpAll() { state.withLock { $0.epoch &+= 1 } }

    package func isUnchanged(_ token: GenerationToken) -> Bool { state.withLock { $0.isUnchanged(token) } }

    /// Runs `body` if the token is still good, and keeps every invalidation waiting meanwhile: short work in memory only.
    /// - Returns: false where the key was invalidated, or a rule made that concerns it, and `body` did not run.
    package func ifUnchanged(_ token: GenerationToken, _ body: () -> Void) -> Bool {
        state.withLock { state in
            guard state.isUnchanged(token) else { return false }
            body()
            return true
        }
    }

    // MARK: - Rules

    /// Invalidates everything that the rules concern, stored or under way.
    /// - Parameter now: Unix seconds.
    package func invalidate(_ rules: [InvalidationRule], now: Int64) {
        guard !rules.isEmpty else { return }
        var time = now
        let isFull = state.withLock { state in
            state.ruleCount += 1
            // Not before what it is to invalidate, whatever the clock says: see ``date(_:_:)``.
            time = max(now, state.latest)
            for rule in rules { Self.make(rule, Moment(time: time, number: state.ruleCount), &state) }
            return Self.bound(&state)
        }
        guard let log else { return }
        if isFull {
            log.rewrite { [self] in records }
        } else {
            log.append(rules.map { [time] in InvalidationRecord(rule: $0, time: time) }) { [self] in records }
        }
    }

    /// Whether a stored response that was last valid at `validatedAt` (Unix seconds) has been invalidated since by one of
    /// the rules that concern it.
    package func isInvalid(_ rules: [InvalidationRule], validatedAt: Int64) -> Bool {
        guard !rules.isEmpty else { return false }
        return state.withLock { state in
            state.latest = max(state.latest, validatedAt)
            return state.moments(rules).contains { validatedAt <= $0.time }
        }
    }

    /// The time of validation, in Unix seconds, of a response that is stored now: late enough that it is not taken for one
    /// that the rules have invalidated. They know seconds, and the clock may have been moved.
    package func date(_ rules: [InvalidationRule], _ validatedAt: Int64) -> Int64 {
        guard !rules.isEmpty else { return validatedAt }
        return state.withLock { state in
            let time = max(validatedAt, state.moments(rules).map { $0.time &+ 1 }.max() ?? .min)
            state.latest = max(state.latest, time)
            return time
        }
    }

    /// Rules in force.
    package var ruleCount: Int { state.withLock { $0.rules.count + ($0.floor == nil ? 0 : 1) } }

    /// Writes what is not in the file yet; blocks.
    func close() { log?.close { records } }

    private var records: [InvalidationRecord] {
        state.withLock { state in
            let floor = state.floor.map { [InvalidationRecord(rule: InvalidationRule(bytes: []), time: $0.time)] } ?? []
            return floor + state.rules.map { InvalidationRecord(rule: $0.key, time: $0.value.time) }
        }
    }

    /// A rule without a name is the floor.
    private static func make(_ rule: InvalidationRule, _ moment: Moment, _ state: inout State) {
        state.latest = max(state.latest, moment.time)
        if rule.bytes.isEmpty {
            state.floor = Moment(
                time: max(moment.time, state.floor?.time ?? .min),
                number: max(moment.number, state.floor?.number ?? 0)
            )
        } else if state.rules.updateValue(moment, forKey: rule) == nil {
            state.bytes += rule.bytes.count
        }
    }

    /// Puts the older half of too many rules into one.
    @discardableResult
    private static func bound(_ state: inout State) -> Bool {
        guard state.rules.count > mostRules || state.bytes > mostBytes else { return false }
        let byAge = state.rules.sorted { ($0.value.number, $0.value.time) < ($1.value.number, $1.value.time) }
        for (rule, moment) in byAge.prefix((byAge.count + 1) / 2) {
            state.rules[rule] = nil
            state.bytes -= rule.bytes.count
            make(InvalidationRule(bytes: []), moment, &state)
        }
        return true
    }
}
