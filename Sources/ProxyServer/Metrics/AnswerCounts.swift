// What a loop counts of the answers to its clients: by route, outcome, tier and class of status, and how long they took.

package import ServiceCore

/// What an answer is counted as.
package struct AnswerKind: Sendable, Hashable {
    package var number: RouteNumber
    package var outcome: CacheOutcome
    package var tier: AnswerTier
    package var status: Int

    package init(number: RouteNumber, outcome: CacheOutcome, tier: AnswerTier, status: Int) {
        (self.number, self.outcome, self.tier, self.status) = (number, outcome, tier, status)
    }

    /// The first digit of the status, 1 to 5.
    var statusClass: Int {
        switch status {
        case ..<200: 1
        case ..<300: 2
        case ..<400: 3
        case ..<500: 4
        default: 5
        }
    }
}

/// The answers of one loop. Loop-bound; nothing is allocated but at the first answer of a route. It is a part of
/// ``LoopCounters``, and no object of its own, since a hit would pay for each reference to one.
struct AnswerCounts {
    /// The kinds of answers of one route: outcome, then tier, then class of status.
    // Computed, so that a use is a number in the code and no look at whether it is known yet.
    static var kinds: Int { outcomes * tiers * 5 }
    static var outcomes: Int { 12 }
    static var tiers: Int { 4 }
    /// The buckets of a histogram, and the sum of its durations.
    static var histogram: Int { 13 }
    /// The histograms of one outcome: answers that went out in one call, the times to the first byte of others, and
    /// the whole times of those.
    static var histograms: Int { 3 }
    /// The histograms of all outcomes of a service; behind them, its bytes.
    static var times: Int { outcomes * histograms * histogram }

    private struct Row {
        var kinds: UnsafeMutablePointer<UInt64>?
        /// Those of the route's service.
        var times: UnsafeMutablePointer<UInt64>?
        /// Whether this row is the one of the service, which frees the times.
        var ownsTimes = false
    }

    // One row for each number that a route can have; rows and what they point to belong to the counters of the loop,
    // whose end frees them by `free`.
    private let rows: UnsafeMutablePointer<Row>

    init() {
        rows = .allocate(capacity: RouteNumbers.most)
        rows.initialize(repeating: Row(), count: RouteNumbers.most)
    }

    func free() {
        for index in 0..<RouteNumbers.most {
            rows[index].kinds?.deallocate()
            if rows[index].ownsTimes { rows[index].times?.deallocate() }
        }
        rows.deallocate()
    }

    /// Counts an answer that went out in one call.
    /// - Parameter took: the nanoseconds from the head of the request to the last byte of the answer.
    func addWhole(_ kind: AnswerKind, bytes: Int, took: UInt64) {
        guard let times = count(kind, bytes: bytes) else { return }
        Self.add(took, to: times + Self.index(kind.outcome, 0))
    }

    /// Counts any other answer.
    /// - Parameters:
    ///   - firstByte: the nanoseconds to the head of the answer; nil if none was sent.
    ///   - took: the nanoseconds to its end.
    func add(_ kind: AnswerKind, bytes: Int, firstByte: UInt64?, took: UInt64) {
        guard let times = count(kind, bytes: bytes) else { return }
        if let firstByte { Self.add(firstByte, to: times + Self.index(kind.outcome, 1)) }
        Self.add(took, to: times + Self.index(kind.outcome, 2))
    }

    private static func index(_ outcome: CacheOutcome, _ which: Int) -> Int {
        (outcome.rawValue * histograms + which) * histogram
    }

    private static func index(_ kind: AnswerKind) -> Int {
        (kind.outcome.rawValue * tiers + kind.tier.rawValue) * 5 + kind.statusClass - 1
    }

    // The pointer leads to the words of a histogram.
    private static func add(_ duration: UInt64, to words: UnsafeMutablePointer<UInt64>) {
        // Nearly all are hits, which are in the first bucket.
        words[duration <= 500_000 ? 0 : TimeHistogram.bucket(of: duration)] &+= 1
        words[histogram - 1] &+= duration
    }

    /// - Returns: the histograms of the service.
    @inline(__always) private func count(_ kind: AnswerKind, bytes: Int) -> UnsafeMutablePointer<UInt64>? {
        let row = rows + kind.number.row
        if row.pointee.kinds == nil { make(kind.number) }
        guard let kinds = row.pointee.kinds, let times = row.pointee.times else { return nil }
        kinds[Self.index(kind)] &+= 1
        times[Self.times] &+= UInt64(truncatingIfNeeded: bytes)
        return times
    }

    @inline(never) private func make(_ number: RouteNumber) {
        if rows[number.service].times == nil {
            let times = UnsafeMutablePointer<UInt64>.allocate(capacity: Self.times + 1)
            times.initialize(repeating: 0, count: Self.times + 1)
            rows[number.service].times = times
            rows[number.service].ownsTimes = true
        }
        let kinds = UnsafeMutablePointer<UInt64>.allocate(capacity: Self.kinds)
        kinds.initialize(repeating: 0, count: Self.kinds)
        rows[number.row].kinds = kinds
        rows[number.row].times = rows[number.service].times
    }

    /// What has been counted, row by row; routes without an answer have none.
    var totals: AnswerTotals {
        var totals = AnswerTotals()
        for index in 0..<RouteNumbers.most {
            if let kinds = rows[index].kinds {
                totals.kinds[index] = Array(UnsafeBufferPointer(start: kinds, count: Self.kinds))
            }
            if rows[index].ownsTimes, let times = rows[index].times {
                totals.times[index] = Array(UnsafeBufferPointer(start: times, count: Self.times + 1))
            }
        }
        return totals
    }
}

@available(*, unavailable) extension AnswerCounts: Sendable {}

/// The answers of one loop, or of several, at one moment.
package struct AnswerTotals: Sendable, Equatable {
    /// The counts of all kinds, by the rows of routes.
    fileprivate var kinds: [Int: [UInt64]] = [:]
    /// The histograms and bytes, by the rows of services.
    fileprivate var times: [Int: [UInt64]] = [:]
    package internal(set) var exemplars = Exemplars()

    package init() {}

    package mutating func add(_ other: AnswerTotals) {
        kinds.merge(other.kinds) { zip($0, $1).map { $0 &+ $1 } }
        times.merge(other.times) { zip($0, $1).map { $0 &+ $1 } }
        exemplars.add(other.exemplars)
    }

    /// Calls the function with each kind of answer that there was: the row of its route, and how many there were.
    package func forEachKind(
        _ body: (_ row: Int, _ outcome: CacheOutcome, _ tier: AnswerTier, _ status: Int, _ count: UInt64) -> Void
    ) {
        for (row, counts) in kinds {
            var index = 0
            for outcome in CacheOutcome.allCases {
                for tier in AnswerTier.allCases {
                    for status in 1...5 {
                        if counts[index] > 0 { body(row, outcome, tier, status, counts[index]) }
                        index += 1
                    }
                }
            }
        }
    }

    /// The rows of services that have answered.
    package var services: [Int] { times.keys.sorted() }

    /// The bytes of content that went to clients, those that were still queued at an early end among them.
    package func bytes(ofService row: Int) -> UInt64 { times[row]?.last ?? 0 }

    /// The times to the first byte, and the whole times, of the answers of a service with one outcome.
    package func durations(
        ofService row: Int,
        _ outcome: CacheOutcome
    ) -> (firstByte: TimeHistogram, whole: TimeHistogram) {
        var (firstByte, whole) = (TimeHistogram(), TimeHistogram())
        guard let words = times[row] else { return (firstByte, whole) }
        func part(_ which: Int) -> ArraySlice<UInt64> {
            words.dropFirst((outcome.rawValue * AnswerCounts.histograms + which) * AnswerCounts.histogram)
        }
        firstByte.add(words: part(0))
        firstByte.add(words: part(1))
        whole.add(words: part(0))
        whole.add(words: part(2))
        return (firstByte, whole)
    }

    /// The number of answers with one outcome.
    package subscript(_ outcome: CacheOutcome) -> UInt64 {
        let length = AnswerTier.allCases.count * 5
        return kinds.values.reduce(0) { sum, counts in
            counts[outcome.rawValue * length..<(outcome.rawValue + 1) * length].reduce(sum, &+)
        }
    }

    /// The number of answers of one class of status, 1 to 5.
    package func answers(ofClass status: Int) -> UInt64 {
        var sum: UInt64 = 0
        for counts in kinds.values {
            for index in stride(from: status - 1, to: counts.count, by: 5) { sum &+= counts[index] }
        }
        return sum
    }

    /// The part of the answers that needed no origin, of those that have to do with one; nil if there were none.
    package var hitRatio: Double? { CacheOutcome.hitRatio { Int(clamping: self[$0]) } }

    /// The number of all answers.
    package var count: UInt64 { kinds.values.reduce(0) { $1.reduce($0, &+) } }
}
