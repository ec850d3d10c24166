// The verification of requests: counts the journal's entries that match, and compares the count with what is expected.

import Configuration
import ProxyServer
import ServiceCore
import Trees

/// The number of requests that are expected.
struct JournalExpectation: Sendable, Equatable {
    let range: ClosedRange<Int>

    /// Takes the numbers of a question.
    /// - Throws: a 400 if they exclude each other.
    init(_ wanted: AdminVerification) throws(Problem) {
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

    /// The expectation in words: `exactly 2`, `at least 1`, `none`.
    var text: String {
        switch (range.lowerBound, range.upperBound) {
        case (0, 0): "none"
        case (let least, let most) where least == most: "exactly \(least)"
        case (let least, Int.max): "at least \(least)"
        case (0, let most): "at most \(most)"
        case (let least, let most): "\(least) to \(most)"
        }
    }
}

/// One verification, in one pass through the whole journal.
struct JournalCheck {
    /// The number of closest entries that are shown at most.
    private static let told = 3

    private let pattern: JournalPattern
    private let expectation: JournalExpectation
    /// The time from which entries count, in nanoseconds since 1970; 0 counts all.
    private let since: UInt64

    /// - Parameter now: nanoseconds since 1970.
    /// - Throws: a 400 that names the mistake in the question.
    init(_ wanted: AdminVerification, redacted: Set<String>, now: UInt64) throws(Problem) {
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

    /// Reads the journal to its end. Not on a loop.
    func run(_ journal: Journal) -> AdminVerdict {
        var (count, unknown) = (0, 0)
        var near: [(entry: NumberedEntry, differences: [String])] = []
        var cursor = journal.start
        while case let entries = journal.page(&cursor), !entries.isEmpty {
            for numbered in entries where numbered.entry.time >= since {
                switch pattern.compare(numbered.entry) {
                case .same:
                    count += 1
                    // Matching entries are kept too: if there are too many of them, they are what a reader wants to
                    // see.
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

    /// Keeps the entries with the fewest differences, and the youngest of equals: ``told`` that differ, and ``told``
    /// that match.
    private func keep(
        _ entry: NumberedEntry,
        _ differences: [String],
        in near: inout [(entry: NumberedEntry, differences: [String])]
    ) {
        near.append((entry, differences))
        for isSame in [true, false] {
            let group = near.indices.filter { near[$0].differences.isEmpty == isSame }
            guard group.count > Self.told else { continue }
            // The entry with the most differences is dropped, and the oldest of equals.
            var worst = group[0]
            for index in group where near[index].differences.count > near[worst].differences.count { worst = index }
            near.remove(at: worst)
        }
    }

    /// The reason why the expectation is not met, or not certainly met; nil if it certainly is.
    private func reason(_ count: Int, unknown: Int, dropped: UInt64, wasOff: Bool) -> String? {
        let range = expectation.range
        let came = "\(count) came, \(expectation.text) expected"
        if count > range.upperBound { return came }
        // With an upper bound, requests that are missing in the journal could be too many.
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

/// The conditions of `POST /v1/verify` on a request, compared with entries of the journal. Pure.
struct JournalPattern: Sendable {
    /// The outcome of comparing an entry with the conditions.
    enum Match: Sendable, Equatable {
        case same
        case differs([String])
        /// Nothing that the journal has differs, but it does not have all of the body.
        case unknown
    }

    private let method: String?
    private let path: String?
    private let query: [AdminVerification.Item]
    private let fields: [AdminVerification.Item]
    private let json: ContentTree?
    private let text: [UInt8]?
    private let service: String?
    private let endpoint: String?

    /// - Parameter redacted: the names of the fields whose values the journal hides, in lower case.
    /// - Throws: a 400 if the expected body is not JSON, or if a condition is on a hidden field.
    init(_ wanted: AdminVerification, redacted: Set<String>) throws(Problem) {
        method = wanted.method?.uppercased()
        // A query in the path stands for conditions on its items.
        let parts = wanted.path?.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = parts.map { String($0[0]) }
        let items = parts.flatMap { $0.count > 1 ? JournalEntry.items("?" + $0[1]) : nil } ?? []
        query = items.map { AdminVerification.Item(name: $0.name, value: $0.value) } + (wanted.query ?? [])
        fields = wanted.fields ?? []
        if let hidden = fields.first(where: { redacted.contains($0.name.lowercased()) }) {
            throw .badQuery(
                "the journal hides the values of \(hidden.name); take it out of 'journal.redact', or leave it out here"
            )
        }
        text = wanted.bodyContains.map { Array($0.utf8) }
        service = wanted.service
        endpoint = wanted.endpoint
        guard let given = wanted.bodyJson else {
            json = nil
            return
        }
        do throws(TreeError) { json = try JSONReader.read(Array(given.utf8)) } catch {
            throw .badQuery("the body that is expected is no JSON text: \(error)")
        }
    }

    func compare(_ entry: JournalEntry) -> Match {
        var differences: [String] = []
        func differ(_ what: String, _ wanted: String?, _ found: String) {
            guard let wanted, wanted != found else { return }
            differences.append(found.isEmpty ? "it has no \(what)" : "the \(what) is \(found)")
        }
        differ("method", method, entry.method)
        if let path, !Self.glob(Array(path.utf8), Array(entry.path.utf8)) {
            differences.append("the path is \(entry.path)")
        }
        differ("service", service, entry.service)
        differ("endpoint", endpoint, entry.endpoint)
        for item in query {
            compare(item, entry.query.filter { $0.name == item.name }.map(\.value), "query item", &differences)
        }
        for item in fields {
            let name = item.name.lowercased()
            compare(item, entry.fields.filter { $0.name.lowercased() == name }.map(\.value), "field", &differences)
        }
        // Bodies are long, so they are compared only if nothing else differs.
        let isKnown = !differences.isEmpty || compare(body: entry, &differences)
        return differences.isEmpty ? isKnown ? .same : .unknown : .differs(differences)
    }

    private func compare(
        _ wanted: AdminVerification.Item,
        _ found: [String],
        _ kind: String,
        _ differences: inout [String]
    ) {
        if found.contains(wanted.value) { return }
        let has = found.map { "'\($0)'" }.joined(separator: " and ")
        differences.append(found.isEmpty ? "it has no \(kind) \(wanted.name)" : "the \(kind) \(wanted.name) is \(has)")
    }

    /// Compares the body with the conditions on it.
    /// - Returns: false if more of the body would have to be known.
    private func compare(body entry: JournalEntry, _ differences: inout [String]) -> Bool {
        var isKnown = true
        if let text, !entry.body.contains(text) {
            if entry.isBodyCut { isKnown = false } else { differences.append("the body does not contain the text") }
        }
        guard let json else { return isKnown }
        if entry.isBodyCut { return false }
        do throws(TreeError) {
            let body = try JSONReader.read(entry.body)
            if let difference = Self.difference(json, body, at: "") { differences.append(difference) }
        } catch {
            differences.append(entry.body.isEmpty ? "it has no body" : "the body is no JSON text")
        }
        return isKnown
    }

    // MARK: - Comparisons

    /// The first difference between the expected and the found JSON value; members that the expectation does not name
    /// are ignored.
    private static func difference(_ wanted: ContentTree, _ found: ContentTree, at path: String) -> String? {
        switch (wanted, found) {
        case (.object(let members), .object):
            for member in members {
                let path = "\(path).\(member.name)"
                guard let value = found[member.name] else { return "the body has no \(path)" }
                if let difference = difference(member.value, value, at: path) { return difference }
            }
            return nil
        case (.array(let elements), .array(let others)) where elements.count == others.count:
            for (index, pair) in zip(elements, others).enumerated() {
                if let difference = difference(pair.0, pair.1, at: "\(path)[\(index)]") { return difference }
            }
            return nil
        case (.number(let first), .number(let second)) where DecimalNumber(first) == DecimalNumber(second): return nil
        default:
            if wanted == found { return nil }
            let text = String(decoding: JSONWriter.bytes(found), as: UTF8.self)
            let shown = text.utf8.count > 60 ? "\(text.prefix(60))…" : text
            return "the body's \(path.isEmpty ? "value" : path) is \(shown)"
        }
    }

    /// True if the text matches the pattern, in which `*` stands for any characters. The time is at most the product of
    /// both lengths.
    static func glob(_ pattern: [UInt8], _ text: [UInt8]) -> Bool {
        let star = UInt8(ascii: "*")
        var (p, t, lastStar, mark) = (0, 0, -1, 0)
        while t < text.count {
            if p < pattern.count, pattern[p] == star {
                (lastStar, mark) = (p, t)
                p += 1
            } else if p < pattern.count, pattern[p] == text[t] {
                p += 1
                t += 1
            } else if lastStar >= 0 {
                mark += 1
                (p, t) = (lastStar + 1, mark)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == star }
    }
}
