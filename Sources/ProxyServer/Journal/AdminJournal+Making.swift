// How entries of the journal become documents.

package import AdminAPI
import HTTPWire

extension AdminJournalEntry {
    package init(_ numbered: NumberedEntry) {
        let entry = numbered.entry
        self.init(
            number: numbered.number,
            time: EventLine.time(entry.time),
            method: entry.method,
            target: entry.target,
            fields: entry.fields.map { Field(name: $0.name, value: $0.value) },
            status: entry.status,
            source: entry.source,
            durationMs: Double(entry.duration / 1000) / 1000
        )
        func said(_ text: String) -> String? { text.isEmpty ? nil : text }
        (service, endpoint) = (said(entry.service), said(entry.endpoint))
        (cacheStatus, demo) = (said(entry.cacheStatus), said(entry.demo))
        violations = said(entry.violations)
        isBodyCut = entry.isBodyCut ? true : nil
        isAborted = entry.isAborted ? true : nil
        guard !entry.body.isEmpty else { return }
        // A cut may be within a character, which is then left out.
        let text = entry.isBodyCut ? entry.body.withoutPartialCharacter : entry.body[...]
        body = String(validating: text, as: UTF8.self)
        if body == nil { bodyBase64 = Base64.encode(entry.body) }
    }
}

extension [UInt8] {
    /// Without the first bytes of a character whose last bytes are missing.
    fileprivate var withoutPartialCharacter: ArraySlice<UInt8> {
        for length in 1...3 where length <= count {
            let byte = self[count - length]
            if byte & 0xC0 == 0x80 { continue }
            let needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return needed > length ? dropLast(length) : self[...]
        }
        return self[...]
    }
}
