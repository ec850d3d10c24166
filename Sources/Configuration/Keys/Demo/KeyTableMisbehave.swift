// The table of keys: what demo answers get wrong on purpose.

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
