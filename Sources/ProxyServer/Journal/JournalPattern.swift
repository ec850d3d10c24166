// Which requests of the journal are meant, and what is different about others.

package import AdminAPI
import Configuration
import Content

/// What `POST /v1/verify` says of a request. A pure function of an entry.
package struct JournalPattern: Sendable {
    /// What became of a comparison.
    package enum Match: Sendable, Equatable {
        case same
        case differs([String])
        /// Of what the journal has, nothing differs; it does not have all of the body.
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

    /// - Parameter redacted: the fields that the journal has no values of, in lower case.
    /// - Throws: a 400 where the body is no JSON text, or where a field is one of these.
    package init(_ wanted: AdminVerification, redacted: Set<String>) throws(Problem) {
        method = wanted.method?.uppercased()
        // A query that stands behind the path means its items.
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

    package func compare(_ entry: JournalEntry) -> Match {
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
        // Bodies are long: they are compared where nothing else differs.
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

    /// - Returns: false where more of the body would have to be known.
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

    /// What of `wanted` is not so in `found`; members that `wanted` does not name may be anything.
    private static func difference(_ wanted: ContentTree, _ found: ContentTree, at place: String) -> String? {
        switch (wanted, found) {
        case (.object(let members), .object):
            for member in members {
                let place = "\(place).\(member.name)"
                guard let value = found[member.name] else { return "the body has no \(place)" }
                if let difference = difference(member.value, value, at: place) { return difference }
            }
            return nil
        case (.array(let elements), .array(let others)) where elements.count == others.count:
            for (index, pair) in zip(elements, others).enumerated() {
                if let difference = difference(pair.0, pair.1, at: "\(place)[\(index)]") { return difference }
            }
            return nil
        case (.number(let first), .number(let second)) where DecimalNumber(first) == DecimalNumber(second): return nil
        default:
            if wanted == found { return nil }
            let text = String(decoding: JSONWriter.bytes(found), as: UTF8.self)
            let shown = text.utf8.count > 60 ? "\(text.prefix(60))…" : text
            return "the body's \(place.isEmpty ? "value" : place) is \(shown)"
        }
    }

    /// Whether a text is of a form in which `*` stands for any characters. The time is bounded by the product of both.
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
