// Deliberate mistakes of demo answers, for tests of caches.

import Policies

extension KeyTable {
    static let misbehaviour = SectionDescriptor(
        name: "misbehave[]",
        keys: [
            KeyDescriptor(
                "kind",
                .choice(Misbehaviour.Kind.allCases.filter { !$0.takesTime }.map(\.rawValue)),
                "What is wrong; the word alone is short for a mapping of it."
            ),
            KeyDescriptor("date", .shift, "In place of kind: by how much Date is ahead, or with a minus sign behind."),
            KeyDescriptor("age", .lifetime, "In place of kind: what Age says."),
            KeyDescriptor("chance", .share, "The share of answers that have it; without it, all."),
            KeyDescriptor(
                "every",
                .integer(1...1_000_000),
                "Each so-many-th answer to one method and target has it; without it, all."
            ),
        ]
    )
}

extension Resolver {
    /// Reads and checks the deliberate mistakes of answers.
    /// - Parameter reader: a section `demo`, or one of its rules.
    /// - Returns: nil if the section has no `misbehave`.
    mutating func misbehaviours(_ reader: SectionReader) -> [Misbehaviour]? {
        guard reader.entry("misbehave") != nil else { return nil }
        var result: [Misbehaviour] = []
        for value in reader.items("misbehave") where !broken.contains(value.position) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.misbehaviour)
            guard let one = misbehaviour(reader, value.position) else { continue }
            if result.contains(where: { $0.kind == one.kind }) {
                fail(
                    value.position,
                    "'demo.misbehave' has '\(one.kind.rawValue)' twice, which would draw the same numbers; keep one of them"
                )
            }
            result.append(one)
        }
        return result
    }

    private mutating func misbehaviour(_ reader: SectionReader, _ position: SourcePosition) -> Misbehaviour? {
        let named = ["kind", "date", "age"].filter { reader.entry($0) != nil }
        guard named.count == 1, let key = named.first else {
            fail(position, "an entry of 'demo.misbehave' takes one of kind, date and age; write one of them")
            return nil
        }
        guard let kind = Misbehaviour.Kind(rawValue: reader.text("kind") ?? key) else { return nil }
        var result = Misbehaviour(kind, every: reader.int("every"))
        if let chance = reader.share("chance") { result.chance = chance }
        switch kind {
        case .date:
            guard case .shift(let seconds)? = reader.leaf("date")?.scalar else { return nil }
            if seconds == 0 {
                fail(position, "'demo.misbehave.date' is nothing, and Date would be right; write -1h or 1h")
            }
            result.seconds = seconds
        case .age: result.seconds = reader.seconds("age") ?? 0
        default: break
        }
        return result
    }
}
