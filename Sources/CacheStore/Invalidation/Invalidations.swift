// Invalidation: generation counters keep a fetch that began before its key was invalidated from being stored; rules
// invalidate all stored responses of a name or a pattern at once, and are checked when such a response is found.

package import EventLoop
import Glibc
package import HTTPCaching
import Synchronization

/// The state of invalidation at the start of a fetch.
package struct InvalidationToken: Sendable {
    package let key: CacheKey
    let slot: Int
    let generation: UInt64
    let epoch: UInt64
    /// A number that is greater than every earlier one. It orders fetches and rules: which of two responses was
    /// requested later, and which rules are newer than a response.
    package let number: UInt64
    /// The rules that affect the response, once its head is known.
    var rules: [InvalidationRule] = []
    /// The arrival in Unix seconds of a response that was stored before.
    var arrivedAt = Int64.max

    /// The same token, for a response that these rules match.
    /// - Parameter arrivedAt: the arrival in Unix seconds of a response that was stored before; purges by age do not
    ///   apply to others.
    package func concerned(by rules: [InvalidationRule], arrivedAt: Int64 = .max) -> InvalidationToken {
        var token = self
        if !rules.isEmpty { token.rules = rules }
        token.arrivedAt = arrivedAt
        return token
    }
}

/// The invalidation rules and generation counters. Keys share a fixed number of counters: a collision only keeps one
/// shared fetch from being stored.
///
/// Sendable: counters and rules are under one mutex, held for a short time; the log has its own.
package final class Invalidations: Sendable {
    private static let slots = 4096

    private struct State {
        var counters = [UInt64](repeating: 0, count: Invalidations.slots)
        var epoch: UInt64 = 0
        var rules = RuleSet()
        /// Purges whose responses are still to be counted: no sweep removes them before.
        var uncounted: Set<UInt64> = []
        var lastNumber: UInt64 = 0
        /// The first number of this process. Responses of earlier processes have smaller ones, unless the clock was set
        /// back since.
        var firstNumber: UInt64 = 0
        /// Whether this process has made hard rules or purges.
        var hasRules = false

        mutating func nextNumber() -> UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            let now = UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
            lastNumber = max(now, lastNumber &+ 1)
            return lastNumber
        }
    }

    private let state = Mutex(State())
    /// The number of the latest rule; read without the mutex.
    private let newestRule = Atomic<UInt64>(0)
    private let log: RuleLog?
    /// The pins, which rules about age spare.
    package let pins: Pins
    /// The reason why everything that was stored before is stale, as a part of a sentence: not all rules could be read.
    /// Nil if all could.
    package let loss: String?

    /// Makes rules and pins in memory only.
    package init(pins: Pins = Pins()) {
        log = nil
        loss = nil
        self.pins = pins
    }

    /// Makes rules and pins that files keep beside the stored responses; blocks. If rules cannot be read, all stored
    /// responses are stale, because the lost rules may affect any of them.
    /// - Parameters:
    ///   - isExpected: whether something was stored before, so that there must be a file of rules.
    ///   - isOurs: returns whether the folder is still the locked one; blocks.
    package init(
        path: String,
        pins: Pins,
        pool: IOPool,
        isExpected: Bool = false,
        isOurs: @escaping @Sendable () -> Bool = { true }
    ) {
        let log = RuleLog(path: path, pool: pool, isOurs: isOurs)
        self.log = log
        self.pins = pins
        let (records, loss) = log.load(isExpected: isExpected)
        self.loss = loss
        let newest = state.withLock { state in
            state.rules.restore(records)
            // Fetches from now on get greater numbers than every rule, independently of the clock.
            state.lastNumber = state.rules.newest
            state.firstNumber = state.nextNumber()
            guard loss != nil else { return state.rules.newest }
            state.rules.makeAllStale(RuleSet.Mark(number: state.nextNumber(), time: Int64(time(nil))))
            // Responses that were stored while the clock was ahead are affected, too.
            state.hasRules = true
            return state.rules.newest
        }
        newestRule.store(newest, ordering: .releasing)
        // From now on a missing file is a loss. If it cannot be written, the next start finds it missing.
        try? log.persist([]) { self.records }
    }

    // MARK: - Keys

    package func token(for key: CacheKey) -> InvalidationToken {
        let slot = Int(key.hash % UInt64(Self.slots))
        return state.withLock { state in
            InvalidationToken(
                key: key,
                slot: slot,
                generation: state.counters[slot],
                epoch: state.epoch,
                number: state.nextNumber()
            )
        }
    }

    /// A new number, greater than all before it.
    package func nextNumber() -> UInt64 { state.withLock { $0.nextNumber() } }

    /// Records the number of a stored response, so that later numbers are greater.
    package func advance(past number: UInt64) { state.withLock { $0.lastNumber = max($0.lastNumber, number) } }

    /// Invalidates the shared fetches of `key` that are under way. Call it before the stored responses are removed.
    package func invalidate(_ key: CacheKey) {
        let slot = Int(key.hash % UInt64(Self.slots))
        state.withLock { $0.counters[slot] &+= 1 }
    }

    /// Invalidates every shared fetch that is under way.
    package func invalidateAll() { state.withLock { $0.epoch &+= 1 } }

    package func isUnchanged(_ token: InvalidationToken) -> Bool { state.withLock { isUnchanged(token, $0) } }

    /// Runs `body` if the token is still valid, while every invalidation waits: for short work in memory only.
    /// - Returns: false if the key was invalidated, or a rule made that affects it, in which case `body` did not run.
    package func ifUnchanged(_ token: InvalidationToken, _ body: () -> Void) -> Bool {
        state.withLock { state in
            guard isUnchanged(token, state) else { return false }
            body()
            return true
        }
    }

    private func isUnchanged(_ token: InvalidationToken, _ state: State) -> Bool {
        guard state.counters[token.slot] == token.generation, state.epoch == token.epoch else { return false }
        return state.rules.admits(subject(token.key, token.rules, token.arrivedAt), token.number)
    }

    // MARK: - Rules

    /// Invalidates everything that the rules affect, stored or under way. A restart may forget it before
    /// ``keep(_:number:)`` has returned.
    /// - Returns: the number of the rules.
    @discardableResult
    package func invalidate(_ rules: [InvalidationRule]) -> UInt64 {
        guard !rules.isEmpty else { return 0 }
        return state.withLock { state in
            let number = state.nextNumber()
            state.rules.invalidate(rules, number, isSwept: log == nil)
            state.hasRules = true
            newestRule.store(number, ordering: .releasing)
            return number
        }
    }

    /// Returns when the rules in force are on the disk.
    /// - Parameter number: the result of ``invalidate(_:)``.
    /// - Throws: `SystemError` if they cannot be written.
    package func keep(_ rules: [InvalidationRule], number: UInt64) async throws(SystemError) {
        let mark = RuleSet.Mark(number: number, time: 0)
        try await log?.append(rules.map { RuleRecord(.name($0), mark) }) { [self] in records }
    }

    /// Puts purges in force, for stored responses and for fetches under way. They do not survive a restart before
    /// ``persist(_:)`` has returned.
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - isCountedFirst: whether the responses are to be counted before a sweep removes any of them:
    ///     ``endCount(_:)`` lets it begin.
    package func purge(_ rules: [PurgeRule], now: Int64, isCountedFirst: Bool = false) -> UInt64 {
        state.withLock { state in
            let mark = RuleSet.Mark(number: state.nextNumber(), time: now)
            if isCountedFirst { state.uncounted.insert(mark.number) }
            for rule in rules { state.rules.add(rule, mark) }
            state.hasRules = true
            newestRule.store(mark.number, ordering: .releasing)
            return mark.number
        }
    }

    /// The responses of a purge have been counted, or never will be: a sweep may remove them.
    /// - Parameter number: the result of ``purge(_:now:isCountedFirst:)``.
    package func endCount(_ number: UInt64) { state.withLock { _ = $0.uncounted.remove(number) } }

    /// Returns when the rules in force have reached the disk; blocks.
    /// - Throws: `SystemError` if they have not: a restart may forget some of them.
    package func persist(_ rules: [PurgeRule], number: UInt64, now: Int64) throws(SystemError) {
        let mark = RuleSet.Mark(number: number, time: now)
        let records = rules.map { rule in
            RuleRecord(rule.name.map { .name($0) } ?? .pattern(rule), mark, isSoft: rule.isSoft)
        }
        try log?.persist(records) { self.records }
    }

    /// The verdict of the rules on a stored response; any thread.
    package func verdict(_ response: StoredResponse) -> RuleVerdict {
        let newest = newestRule.load(ordering: .acquiring)
        let known: RuleVerdict = response.head.staleSince.map { .stale(since: $0) } ?? .valid
        // No rule has been made since the response was checked.
        if response.rulesSeen.load(ordering: .relaxed) >= newest { return known }
        let verdict = verdict(response.head, response.key, response.rules)
        guard case .valid = verdict else { return known == .valid || verdict == .gone ? verdict : known }
        response.noteRules(upTo: newest)
        return known
    }

    /// The verdict of the rules on a head that is stored under a key.
    package func verdict(_ head: StoredHead, _ key: CacheKey, _ rules: [InvalidationRule]) -> RuleVerdict {
        if newestRule.load(ordering: .acquiring) < head.number { return .valid }
        return state.withLock { $0.rules.verdict(subject(key, rules, head.responseTime), head.number) }
    }

    /// Whether a purge has removed a response that is still in use, for example during its validation.
    package func isGone(_ response: StoredResponse) -> Bool {
        if newestRule.load(ordering: .acquiring) < response.head.number { return false }
        return state.withLock { state in
            let subject = subject(response.key, response.rules, response.head.responseTime)
            return state.rules.verdict(subject, response.head.number) == .gone
        }
    }

    /// Whether the rules have removed a response of the memory tier.
    func isGone(_ response: ResidentResponse) -> Bool {
        if newest < response.headNumber { return false }
        let subject = RuleSubject(response, pins)
        return state.withLock { $0.rules.verdict(subject, response.headNumber) == .gone }
    }

    private func subject(_ key: CacheKey, _ rules: [InvalidationRule], _ arrivedAt: Int64) -> RuleSubject {
        RuleSubject(key: key, names: rules, arrivedAt: arrivedAt) { [pins] in pins.contains(key) }
    }

    /// A file of an earlier process with a greater number was written while the clock was ahead. Its number then does
    /// not show whether rules of this process match it. The maximum if there are no such rules.
    package var suspectNumber: UInt64 { state.withLock { $0.hasRules ? $0.firstNumber : .max } }

    /// Whether rules of this process match a file of an earlier process, regardless of its number.
    package func isConcerned(_ head: StoredHead, _ key: CacheKey, _ rules: [InvalidationRule]) -> Bool {
        state.withLock { state in
            let subject = subject(key, rules, head.responseTime)
            return state.rules.verdict(subject, min(head.number, state.firstNumber)) != .valid
        }
    }

    /// The number of rules in force.
    package var ruleCount: Int { state.withLock { $0.rules.count } }

    /// The number of hard rules whose responses have not all been deleted yet.
    package var unsweptCount: Int {
        state.withLock { state in
            state.rules.unsweptNames + state.rules.patterns.count { !$0.isSwept && !$0.rule.isSoft }
        }
    }

    /// Whether there are so many rules that spent ones should be dropped: see ``forgetSpent(upTo:)``.
    package var isCrowded: Bool { state.withLock { $0.rules.isCrowded } }

    /// The number of the latest rule.
    package var newest: UInt64 { newestRule.load(ordering: .acquiring) }

    /// Hard rules whose responses have not all been removed yet, and need not be counted any more; the files of groups
    /// take longer to be found, and are looked for where there are many rules.
    package var unswept: [UnsweptRule] {
        state.withLock { state in
            state.rules.unswept(hasGroups: state.rules.isCrowded).filter { !state.uncounted.contains($0.number) }
        }
    }

    /// Records that the responses of these hard purges are removed from every tier, so that the file can forget them.
    package func markSwept(_ rules: [(rule: PurgeRule, number: UInt64)]) {
        sweep { set in
            for (rule, number) in rules { set.markSwept(rule, number) }
        }
    }

    /// Records that the responses of these hard rules are removed from the disk, so that the file can forget them.
    package func markSwept(_ rules: [UnsweptRule]) {
        sweep { set in
            for rule in rules { set.markSwept(rule) }
        }
    }

    private func sweep(_ mark: (inout RuleSet) -> Void) {
        let count = state.withLock { state in
            mark(&state.rules)
            return state.rules.recordCount
        }
        log?.shrink(to: count) { [self] in records }
    }

    /// Records that memory has no response that rules up to this number affect, so that some of those are forgotten of
    /// which the disk has none either.
    package func forgetSpent(upTo number: UInt64) { state.withLock { $0.rules.forgetSpent(upTo: number) } }

    /// Writes all rules in force again, in the background, after the file was removed.
    package func rewrite() { log?.rewrite { [self] in records } }

    /// Writes the rules in force again if they could not be written; blocks.
    package func repeatFailed() { log?.repeatFailed { records } }

    /// Sets whether the folder of the rules and pins belongs to another owner now, so that nothing is written into it;
    /// blocks.
    package func setAway(_ isAway: Bool) {
        log?.setAway(isAway)
        pins.setAway(isAway)
    }

    /// Writes the records that are not in the file yet; blocks.
    package func close() { log?.close { records } }

    private var records: [RuleRecord] { state.withLock { $0.rules.records } }
}
