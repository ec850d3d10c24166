// The rules in force: names in a table, everything else in a list in the order of its making, both of them bounded.

/// What the rules say about one stored response.
package enum RuleVerdict: Sendable, Equatable {
    case valid
    /// Stale since then (Unix seconds), whatever its lifetime.
    case stale(since: Int64)
    /// Never to be used again.
    case gone
}

/// A value without a lock: `Generations` keeps it under its mutex.
///
/// Rules and fetches draw their numbers from one sequence: a rule concerns what has a smaller number. A hard purge whose
/// responses have all been removed is only kept for fetches that began before it. Past the bound the oldest rules become
/// marks that concern more than they did: that costs checks and fetches, and lets nothing come back to life.
struct RuleSet: Sendable {
    /// When a rule was made.
    struct Mark: Sendable, Equatable {
        var number: UInt64
        /// Unix seconds.
        var time: Int64
    }

    struct Named: Sendable, Equatable {
        var hard: UInt64 = 0
        var soft: Mark?
        /// What the hard rule concerns has been removed.
        var isSwept = false

        var newest: UInt64 { max(hard, soft?.number ?? 0) }
    }

    struct Pattern: Sendable, Equatable {
        let rule: PurgeRule
        let mark: Mark
        var isSwept = false
    }

    /// Names at most.
    static let mostNames = 8192
    /// Bytes of their names at most.
    static let mostBytes = 1 << 20
    /// Patterns at most.
    static let mostPatterns = 1024

    private(set) var named: [InvalidationRule: Named] = [:]
    /// The oldest first.
    private(set) var patterns: [Pattern] = []
    /// Everything of a group with a smaller number is gone.
    private(set) var groupFloor: UInt64 = 0
    /// Everything with a smaller number is stale.
    private(set) var softFloor: Mark?
    /// No fetch that began before this number is stored.
    private(set) var fetchFloor: UInt64 = 0
    /// The number of the latest rule.
    private(set) var newest: UInt64 = 0
    private var bytes = 0

    // MARK: - Asking

    /// Whether a response whose fetch drew this number may be stored now.
    func admits(_ subject: RuleSubject, _ number: UInt64) -> Bool {
        number > fetchFloor && verdict(subject, number) == .valid
    }

    /// What has been swept is held against, too, whoever was found a moment before it was removed.
    /// - Parameter number: of the fetch or check that last brought or confirmed it.
    func verdict(_ subject: RuleSubject, _ number: UInt64) -> RuleVerdict {
        guard newest > number else { return .valid }
        var since: Int64?
        func stale(_ mark: Mark) {
            if mark.number > number { since = min(since ?? .max, mark.time) }
        }
        if !named.isEmpty {
            for name in subject.names + [.url(subject.key.urlBytes)] {
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

    /// Names and patterns, and the marks that stand for those that are gone.
    var count: Int { named.count + patterns.count + (groupFloor == 0 ? 0 : 1) + (softFloor == nil ? 0 : 1) }

    /// Hard purges whose responses have not all been removed yet.
    var unswept: [(rule: PurgeRule, number: UInt64)] {
        let names = named.compactMap { name, found -> (PurgeRule, UInt64)? in
            guard found.hard > 0, !found.isSwept, let target = name.purge else { return nil }
            return (PurgeRule(target), found.hard)
        }
        return names + patterns.filter { !$0.isSwept && !$0.rule.isSoft }.map { ($0.rule, $0.mark.number) }
    }

    // MARK: - Making

    /// Groups that an origin has invalidated.
    mutating func invalidate(_ names: [InvalidationRule], _ number: UInt64) {
        for name in names { update(name) { $0.hard = max($0.hard, number) } }
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
                    // What was stale is gone.
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

    /// What a hard purge concerns has been removed.
    mutating func markSwept(_ rule: PurgeRule, _ number: UInt64) {
        if let name = rule.name {
            guard let found = named[name], found.hard == number else { return }
            named[name]?.isSwept = true
        } else if let place = patterns.firstIndex(where: { $0.mark.number == number && $0.rule == rule }) {
            patterns[place].isSwept = true
        }
    }

    private mutating func update(_ name: InvalidationRule, _ change: (inout Named) -> Void) {
        if named[name] == nil { bytes += name.bytes.count }
        change(&named[name, default: Named()])
    }

    private mutating func remove(_ name: InvalidationRule) {
        if named.removeValue(forKey: name) != nil { bytes -= name.bytes.count }
    }

    // MARK: - Bounds

    private mutating func bound() {
        if patterns.count > Self.mostPatterns { boundPatterns() }
        if named.count > Self.mostNames || bytes > Self.mostBytes { boundNames() }
    }

    private mutating func boundPatterns() {
        let swept = patterns.filter(\.isSwept)
        if let last = swept.prefix((swept.count + 1) / 2).last {
            fetchFloor = max(fetchFloor, last.mark.number)
            patterns.removeAll { $0.isSwept && $0.mark.number <= last.mark.number }
        }
        guard patterns.count > Self.mostPatterns * 3 / 4 else { return }
        // A purge that is not through yet stays: who makes purges waits for that.
        let old = patterns.filter(\.rule.isSoft).prefix(Self.mostPatterns / 2).map(\.mark)
        guard let last = old.last else { return }
        raiseSoftFloor(last)
        patterns.removeAll { $0.rule.isSoft && $0.mark.number <= last.number }
    }

    private mutating func boundNames() {
        let swept = named.filter { $0.value.isSwept && $0.value.soft == nil }.sorted { $0.value.hard < $1.value.hard }
        for (name, found) in swept.prefix((swept.count + 1) / 2) {
            fetchFloor = max(fetchFloor, found.hard)
            remove(name)
        }
        guard named.count > Self.mostNames / 2 || bytes > Self.mostBytes / 2 else { return }
        let byAge = named.sorted { $0.value.newest < $1.value.newest }
        for (name, found) in byAge.prefix((byAge.count + 1) / 2) {
            if let soft = found.soft { raiseSoftFloor(soft) }
            if name.isGroup {
                groupFloor = max(groupFloor, found.hard)
            } else if found.hard > 0, !found.isSwept {
                named[name]?.soft = nil
                continue
            }
            fetchFloor = max(fetchFloor, found.hard)
            remove(name)
        }
    }

    private mutating func raiseSoftFloor(_ mark: Mark) {
        if mark.number > softFloor?.number ?? 0 { softFloor = mark }
    }
}

// MARK: - Records

extension RuleSet {
    /// What has to outlive the process.
    var records: [RuleRecord] {
        var records: [RuleRecord] = []
        for (name, found) in named {
            if found.hard > 0, !found.isSwept {
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

    /// Takes over what an earlier process made.
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
