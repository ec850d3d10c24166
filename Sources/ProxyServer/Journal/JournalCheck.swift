// Counts the requests of the journal that are meant, and says whether that is what was expected.

package import AdminAPI
import Configuration
import ServiceCore

/// How many requests are expected.
package struct JournalExpectation: Sendable, Equatable {
    package let range: ClosedRange<Int>

    /// - Throws: a 400 where the numbers exclude each other.
    package init(_ wanted: AdminVerification) throws(Problem) {
        let bounds = [wanted.times, wanted.atLeast, wanted.atMost].compactMap { $0 }
        guard bounds.allSatisfy({ $0 >= 0 }) else { throw .badQuery("a number of requests is not negative") }
        if let times = wanted.times {
            guard bounds.count == 1 else { throw .badQuery("give either times, or at_least and at_most") }
            range = times...times
            return
        }
        let (least, most) = (wanted.atLeast ?? (wanted.atMost == nil ? 1 : 0), wanted.atMost ?? Int.max)
        guard least <= most else { throw .badQuery("at_least is more than at_most") }
        range = least...most
    }

    /// `exactly 2`, `at least 1`, `none`.
    package var text: String {
        switch (range.lowerBound, range.upperBound) {
        case (0, 0): "none"
        case (let least, let most) where least == most: "exactly \(least)"
        case (let least, Int.max): "at least \(least)"
        case (0, let most): "at most \(most)"
        case (let least, let most): "\(least) to \(most)"
        }
    }
}

/// One look through the whole journal.
package struct JournalCheck {
    /// Entries that are told as the closest, at most.
    private static let told = 3

    private let pattern: JournalPattern
    private let expectation: JournalExpectation
    /// In nanoseconds since 1970; 0: all.
    private let since: UInt64

    /// - Parameter now: in nanoseconds since 1970.
    /// - Throws: a 400 that says what is wrong with the question.
    package init(_ wanted: AdminVerification, redacted: Set<String>, now: UInt64) throws(Problem) {
        pattern = try JournalPattern(wanted, redacted: redacted)
        expectation = try JournalExpectation(wanted)
        guard let text = wanted.since else {
            since = 0
            return
        }
        do throws(Lifetimes.Malformed) {
            let back = UInt64(clamping: try Lifetimes.seconds(text)).multipliedReportingOverflow(by: 1_000_000_000)
            since = back.overflow || back.partialValue > now ? 0 : now - back.partialValue
        } catch {
            throw .badQuery("since: \(error)")
        }
    }

    /// Reads the journal to its end; not on a loop.
    package func run(_ journal: Journal) -> AdminVerdict {
        var (count, unknown) = (0, 0)
        var near: [(entry: NumberedEntry, differences: [String])] = []
        var cursor = journal.start
        while case let entries = journal.page(&cursor), !entries.isEmpty {
            for numbered in entries where numbered.entry.time >= since {
                switch pattern.compare(numbered.entry) {
                case .same:
                    count += 1
                    // What came too often is what a reader wants to see.
                    keep(numbered, [], in: &near)
                case .unknown: unknown += 1
                case .differs(let differences): keep(numbered, differences, in: &near)
                }
            }
        }
        let extent = journal.extent
        let hasGap = extent.dropped > 0 && extent.droppedUntil >= since
        let wasOff = extent.offUntil > since
        let reason = reason(count, unknown: unknown, dropped: hasGap ? extent.dropped : 0, wasOff: wasOff)
        let isTooMany = count > expectation.range.upperBound
        let closest = near.filter { isTooMany == $0.differences.isEmpty }
        return AdminVerdict(
            isMet: reason == nil,
            count: count,
            expected: expectation.text,
            reason: reason,
            closest: reason == nil
                ? []
                : closest.map { AdminVerdict.Near(entry: AdminJournalEntry($0.entry), differences: $0.differences) }
        )
    }

    /// Keeps those with the fewest differences, the youngest of these: three that differ, and three that do not.
    private func keep(
        _ entry: NumberedEntry,
        _ differences: [String],
        in near: inout [(entry: NumberedEntry, differences: [String])]
    ) {
        near.append((entry, differences))
        for isSame in [true, false] {
            let group = near.indices.filter { near[$0].differences.isEmpty == isSame }
            guard group.count > Self.told else { continue }
            // The oldest of those with the most differences goes.
            var worst = group[0]
            for index in group where near[index].differences.count > near[worst].differences.count { worst = index }
            near.remove(at: worst)
        }
    }

    /// Nil where it is as expected, and that is certain.
    private func reason(_ count: Int, unknown: Int, dropped: UInt64, wasOff: Bool) -> String? {
        let range = expectation.range
        let came = "\(count) came, \(expectation.text) expected"
        if count > range.upperBound { return came }
        // More may have come.
        let isOpen = range.upperBound != Int.max
        if dropped > 0, isOpen || count < range.lowerBound {
            return
                "\(came); but the journal has dropped \(dropped) older entries, so that nobody can say how many there were; make 'journal.size' larger, clear the journal before the test ('drydock journal --clear'), or ask --since a later time"
        }
        if wasOff, isOpen || count < range.lowerBound {
            return
                "\(came); but the journal was off before, so that nobody can say how many there were; clear the journal before the test ('drydock journal --clear'), or ask --since a later time"
        }
        if unknown > 0, isOpen || count < range.lowerBound {
            return
                "\(came); but of \(unknown) more the journal has only the beginning of the body; make 'journal.bodies' larger"
        }
        return count < range.lowerBound ? came : nil
    }
}
