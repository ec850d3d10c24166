// The rules in force: names in a table, everything else in a list in the order of its making, both of them bounded.

/// The verdict of the rules on one stored response.
package enum RuleVerdict: Sendable, Equatable {
    case valid
    /// Stale since this time (Unix seconds), regardless of its freshness lifetime.
    case stale(since: Int64)
    /// The response must never be used again.
    case gone
}

/// A hard rule whose responses have not all been removed yet.
package struct UnsweptRule: Sendable {
    /// The purge that finds the files of the rule.
    package let rule: PurgeRule
    package let number: UInt64
    /// The name that the rule invalidates; nil for patterns.
    let name: InvalidationRule?
    /// Whether `rule` also finds files that it does not affect.
    package var needsLook: Bool { name?.needsLook ?? false }
}

/// The rules in force, a value without a lock: `Invalidations` keeps it under its mutex.
///
/// Rules and fetches draw their numbers from one sequence: a rule applies to smaller numbers. A hard rule whose
/// responses have all been removed is kept only for fetches that began before it, and is dropped first. Beyond the
/// bound, the names of one origin become one rule for the origin: that costs extra fetches there, and never makes an
/// invalidated response valid again.
struct RuleSet: Sendable {
    /// The moment of a rule: its number and its time.
    struct Mark: Sendable, Equatable {
        var number: UInt64
        /// The time in Unix seconds.
        var time: Int64
    }

    struct Named: Sendable, Equatable {
        var hard: UInt64 = 0
        var soft: Mark?
        /// Whether the responses of the hard rule have been removed from the disk.
        var isSwept = false
        /// Responses of the hard rule may still be in the memory tier, where they are checked before they answer.
        var mayBeInMemory = false

        var isUnswept: Bool { hard > 0 && !isSwept }
        /// Whether the rule affects no stored response any more.
        var isSpent: Bool { isSwept && !mayBeInMemory && soft == nil }
    }

    struct Pattern: Sendable, Equatable {
        let rule: PurgeRule
        let mark: Mark
        var isSwept = false
    }

    /// The most names.
    static let maximumNames = 65536
    /// The most bytes of all names.
    static let maximumBytes = 8 << 20
    /// The most patterns.
    static let maximumPatterns = 1024

    private(set) var named: [InvalidationRule: Named] = [:]
    /// The patterns, the oldest first.
    private(set) var patterns: [Pattern] = []
    /// The number below which every response of a group is gone.
    private(set) var groupFloor: UInt64 = 0
    /// The number below which every response is stale, with its time; nil for none.
    private(set) var softFloor: Mark?
    /// The number below which no fetch is stored.
    private(set) var fetchFloor: UInt64 = 0
    /// The number of the latest rule.
    private(set) var newest: UInt64 = 0
    private var bytes = 0
    /// The number of names whose hard rules have not been swept.
    private(set) var unsweptNames = 0
    /// The number of wide names, which replace others, or match many hosts.
    private var wideNames = 0

    // MARK: - Asking

    /// Whether a response whose fetch drew this number may be stored now.
    func admits(_ subject: RuleSubject, _ number: UInt64) -> Bool {
        number > fetchFloor && verdict(subject, number) == .valid
    }

    /// The verdict on a response. Swept rules count, too, because the response may have been found just before the
    /// sweep removed it.
    /// - Parameter number: the number of the fetch or validation that last brought or confirmed the response.
    func verdict(_ subject: RuleSubject, _ number: UInt64) -> RuleVerdict {
        guard newest > number else { return .valid }
        var since: Int64?
        func stale(_ mark: Mark) {
            if mark.number > number { since = min(since ?? .max, mark.time) }
        }
        if !named.isEmpty {
            var names = subject.names + [.url(of: subject.key)]
            if wideNames > 0 {
                names += [.origin(of: subject.key), .anyHost(of: subject.key)]
                if names.contains(where: \.isOfGroups) { names.append(.groups(of: subject.key)) }
            }
            for name in names {
                guard let found = named[name] else { continue }
                if found.hard > number { return .gone }
                if let soft = found.soft { stale(soft) }
            }
        }
        if groupFloor > number, subject.names.contains(where: \.isGroup) { return .gone }
        if let softFloor { stale(softFloor) }
        for pattern in patterns[firstPattern(after: number)...] where pattern.rule.concerns(subject) {
            if !pattern.rule.isSoft { return .gone }
            stale(pattern.mark)
        }
        return since.map { .stale(since: $0) } ?? .valid
    }

    private func firstPattern(after number: UInt64) -> Int {
        var (low, high) = (0, patterns.count)
        while low < high {
            let middle = (low + high) / 2
            if patterns[middle].mark.number > number { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// The number of names, patterns, and marks for dropped rules.
    var count: Int { named.count + patterns.count + (groupFloor == 0 ? 0 : 1) + (softFloor == nil ? 0 : 1) }

    /// The hard rules whose responses have not all been deleted yet.
    /// - Parameter hasGroups: whether groups are included, whose files take longer to find.
    func unswept(hasGroups: Bool = false) -> [UnsweptRule] {
        let names = named.compactMap { name, found -> UnsweptRule? in
            guard found.isUnswept, hasGroups || !name.isOfGroups, let rule = name.purge else { return nil }
            return UnsweptRule(rule: rule, number: found.hard, name: name)
        }
        return names
            + patterns.filter { !$0.isSwept && !$0.rule.isSoft }.map {
                UnsweptRule(rule: $0.rule, number: $0.mark.number, name: nil)
            }
    }

    /// Whether more than half of the limits is used, so that spent rules should be dropped.
    var isCrowded: Bool { named.count > Self.maximumNames / 2 || bytes > Self.maximumBytes / 2 }

    // MARK: - Making

    /// Adds hard rules for names that an origin has invalidated.
    /// - Parameter isSwept: true if there is no disk tier.
    mutating func invalidate(_ names: [InvalidationRule], _ number: UInt64, isSwept: Bool = false) {
        for name in names {
            update(name) { found in
                found.hard = max(found.hard, number)
                (found.isSwept, found.mayBeInMemory) = (isSwept, true)
            }
        }
        newest = max(newest, number)
        bound()
    }

    mutating func add(_ rule: PurgeRule, _ mark: Mark) {
        if let name = rule.name {
            update(name) { found in
                if rule.isSoft {
                    found.soft = mark
                } else {
                    (found.hard, found.isSwept) = (mark.number, false)
                    // A hard rule replaces the soft one.
                    found.soft = nil
                }
            }
        } else {
            patterns.removeAll { rule.covers($0.rule) }
            patterns.append(Pattern(rule: rule, mark: mark))
        }
        newest = max(newest, mark.number)
        bound()
    }

    /// Marks a hard purge whose responses have all been removed.
    mutating func markSwept(_ rule: PurgeRule, _ number: UInt64) {
        if let name = rule.name {
            markSwept(name, number)
        } else if let index = patterns.firstIndex(where: { $0.mark.number == number && $0.rule == rule }) {
            patterns[index].isSwept = true
        }
    }

    mutating func markSwept(_ swept: UnsweptRule) {
        if let name = swept.name { markSwept(name, swept.number) } else { markSwept(swept.rule, swept.number) }
    }

    private mutating func markSwept(_ name: InvalidationRule, _ number: UInt64) {
        guard let found = named[name], found.hard == number else { return }
        update(name) { $0.isSwept = true }
    }

    /// Drops the older half of the spent rules. The caller has removed all responses from memory that rules up to this
    /// number match. Fetches that began before the dropped rules can no longer be stored.
    mutating func forgetSpent(upTo number: UInt64) {
        for (name, found) in named where found.mayBeInMemory && found.hard <= number {
            update(name) { $0.mayBeInMemory = false }
        }
        let spent = named.filter(\.value.isSpent).sorted { $0.value.hard < $1.value.hard }
        for (name, found) in spent.prefix((spent.count + 1) / 2) {
            fetchFloor = max(fetchFloor, found.hard)
            remove(name)
        }
    }

    private mutating func update(_ name: InvalidationRule, _ change: (inout Named) -> Void) {
        let before = named[name]
        if before == nil {
            bytes += name.bytes.count
            if name.isWide { wideNames += 1 }
        }
        var found = before ?? Named()
        change(&found)
        named[name] = found
        unsweptNames += (found.isUnswept ? 1 : 0) - (before?.isUnswept == true ? 1 : 0)
    }

    private mutating func remove(_ name: InvalidationRule) {
        guard let found = named.removeValue(forKey: name) else { return }
        bytes -= name.bytes.count
        if name.isWide { wideNames -= 1 }
        if found.isUnswept { unsweptNames -= 1 }
    }

    // MARK: - Bounds

    private mutating func bound() {
        if patterns.count > Self.maximumPatterns { boundPatterns() }
        if named.count > Self.maximumNames || bytes > Self.maximumBytes { boundNames() }
    }

    private mutating func boundPatterns() {
        let swept = patterns.filter(\.isSwept)
        if let last = swept.prefix((swept.count + 1) / 2).last {
            fetchFloor = max(fetchFloor, last.mark.number)
            patterns.removeAll { $0.isSwept && $0.mark.number <= last.mark.number }
        }
        guard patterns.count > Self.maximumPatterns * 3 / 4 else { return }
        // An unfinished purge stays, because its caller waits for it.
        let old = patterns.filter(\.rule.isSoft).prefix(Self.maximumPatterns / 2).map(\.mark)
        guard let last = old.last else { return }
        raiseSoftFloor(last)
        patterns.removeAll { $0.rule.isSoft && $0.mark.number <= last.number }
    }

    private mutating func boundNames() {
        for (name, found) in named where found.isSpent {
            fetchFloor = max(fetchFloor, found.hard)
            remove(name)
        }
        if isCrowded { mergeByOrigin() }
        if isCrowded { mergeSoft() }
        if named.count > Self.maximumNames || bytes > Self.maximumBytes { mergeAll() }
    }

    /// Joins the hard rules of one origin, beginning with the origin that has most of them.
    private mutating func mergeByOrigin() {
        var origins: [InvalidationRule: [InvalidationRule]] = [:]
        for (name, found) in named where found.hard > 0 {
            if let wider = name.wider { origins[wider, default: []].append(name) }
        }
        for (origin, names) in origins.sorted(by: { $0.value.count > $1.value.count }) where names.count > 1 {
            let number = names.reduce(0) { max($0, named[$1]?.hard ?? 0) }
            for name in names { removeHard(name) }
            update(origin) { found in
                found.hard = max(found.hard, number)
                (found.isSwept, found.mayBeInMemory) = (false, true)
            }
            if !isCrowded { return }
        }
    }

    /// Merges the older half of the soft rules into one mark: every response stored before it is stale.
    private mutating func mergeSoft() {
        let soft = named.compactMap { name, found in found.soft.map { (name: name, mark: $0) } }
            .sorted { $0.mark.number < $1.mark.number }
        for (name, mark) in soft.prefix((soft.count + 1) / 2) {
            raiseSoftFloor(mark)
            update(name) { $0.soft = nil }
            if named[name]?.hard == 0 { remove(name) }
        }
    }

    /// Merges the older half of the names of all origins into one rule for everything, if there are too many names.
    private mutating func mergeAll() {
        let hard = named.filter { $0.value.hard > 0 && ($0.key.isWide || $0.key.wider != nil) }
            .sorted { $0.value.hard < $1.value.hard }
        guard let last = hard.prefix((hard.count + 1) / 2).last else { return }
        for (name, _) in hard.prefix((hard.count + 1) / 2) { removeHard(name) }
        patterns.append(Pattern(rule: PurgeRule(.all), mark: Mark(number: last.value.hard, time: 0)))
        patterns.sort { $0.mark.number < $1.mark.number }
    }

    /// Removes the hard rule of a name; its soft rule stays.
    private mutating func removeHard(_ name: InvalidationRule) {
        update(name) { found in (found.hard, found.isSwept, found.mayBeInMemory) = (0, false, false) }
        if named[name]?.soft == nil { remove(name) }
    }

    /// Makes every response with a smaller number stale, because rules about it cannot be read.
    mutating func makeAllStale(_ mark: Mark) {
        raiseSoftFloor(mark)
        newest = max(newest, mark.number)
    }

    private mutating func raiseSoftFloor(_ mark: Mark) {
        if mark.number > softFloor?.number ?? 0 { softFloor = mark }
    }
}

// MARK: - Records

extension RuleSet {
    /// The number of records.
    var recordCount: Int {
        let names = named.values.reduce(0) { $0 + ($1.isUnswept ? 1 : 0) + ($1.soft == nil ? 0 : 1) }
        return names + patterns.count { !$0.isSwept } + (groupFloor > 0 ? 1 : 0) + (softFloor == nil ? 0 : 1)
    }

    /// The records that must survive the process.
    var records: [RuleRecord] {
        var records: [RuleRecord] = []
        for (name, found) in named {
            if found.isUnswept {
                records.append(RuleRecord(.name(name), Mark(number: found.hard, time: 0)))
            }
            if let soft = found.soft { records.append(RuleRecord(.name(name), soft, isSoft: true)) }
        }
        for pattern in patterns where !pattern.isSwept {
            records.append(RuleRecord(.pattern(pattern.rule), pattern.mark, isSoft: pattern.rule.isSoft))
        }
        if groupFloor > 0 { records.append(RuleRecord(.floor, Mark(number: groupFloor, time: 0))) }
        if let softFloor { records.append(RuleRecord(.floor, softFloor, isSoft: true)) }
        return records
    }

    /// Restores the rules of an earlier process.
    mutating func restore(_ records: [RuleRecord]) {
        for record in records {
            newest = max(newest, record.mark.number)
            switch record.what {
            case .name(let name):
                update(name) { found in
                    if record.isSoft {
                        if record.mark.number > found.soft?.number ?? 0 { found.soft = record.mark }
                    } else {
                        found.hard = max(found.hard, record.mark.number)
                    }
                }
            case .pattern(let rule):
                patterns.removeAll { rule.covers($0.rule) }
                patterns.append(Pattern(rule: rule, mark: record.mark))
            case .floor:
                if record.isSoft {
                    raiseSoftFloor(record.mark)
                } else {
                    groupFloor = max(groupFloor, record.mark.number)
                }
            }
        }
        patterns.sort { $0.mark.number < $1.mark.number }
        bound()
    }
}
