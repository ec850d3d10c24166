// What demo answers get wrong on purpose, and which entries make no sense.

import Policies

extension Resolver {
    /// - Parameter reader: of a section `demo`, or of one of its rules.
    /// - Returns: nil where the section does not say.
    mutating func misbehaviours(_ reader: SectionReader) -> [Misbehaviour]? {
        guard reader.entry("misbehave") != nil else { return nil }
        var result: [Misbehaviour] = []
        for value in reader.items("misbehave") where !broken.contains(value.place) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.misbehaviour)
            guard let one = misbehaviour(reader, value.place) else { continue }
            if result.contains(where: { $0.kind == one.kind }) {
                fail(
                    value.place,
                    "'demo.misbehave' has '\(one.kind.rawValue)' twice, which would draw the same numbers; keep one of them"
                )
            }
            result.append(one)
        }
        return result
    }

    private mutating func misbehaviour(_ reader: SectionReader, _ place: SourcePosition) -> Misbehaviour? {
        let named = ["kind", "date", "age"].filter { reader.entry($0) != nil }
        guard named.count == 1, let key = named.first else {
            fail(place, "an entry of 'demo.misbehave' takes one of kind, date and age; write one of them")
            return nil
        }
        guard let kind = Misbehaviour.Kind(rawValue: reader.text("kind") ?? key) else { return nil }
        var result = Misbehaviour(kind, every: reader.int("every"))
        if let chance = reader.share("chance") { result.chance = chance }
        switch kind {
        case .date:
            guard case .shift(let seconds)? = reader.leaf("date")?.scalar else { return nil }
            if seconds == 0 {
                fail(place, "'demo.misbehave.date' is nothing, and Date would be right; write -1h or 1h")
            }
            result.seconds = seconds
        case .age: result.seconds = reader.seconds("age") ?? 0
        default: break
        }
        return result
    }
}
