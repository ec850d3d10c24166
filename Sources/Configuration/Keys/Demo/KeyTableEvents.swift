// The table of keys: server-sent events as the content of a demo answer.

extension KeyTable {
    static func eventsKey(inherited inheritance: Inheritance = .none) -> KeyDescriptor {
        KeyDescriptor(
            "events",
            .shorthand(events, key: "list"),
            "Server-sent events in place of a body, one after the other: a list, or a mapping.",
            inherited: inheritance
        )
    }

    static let events = SectionDescriptor(
        name: "demo.events",
        keys: [
            KeyDescriptor("list", .sections(event), "The events."),
            KeyDescriptor("file", .demoFile, "A file with the events as text/event-stream, relative to files."),
            KeyDescriptor("every", .duration, default: "1s", "The time from one event to the next."),
            KeyDescriptor(
                "repeat",
                .word("forever", or: .integer(1...1_000_000_000)),
                default: "1",
                "How often the events are sent, one round after the other."
            ),
        ],
        replaces: true
    )

    static let event = SectionDescriptor(
        name: "demo.events.list[]",
        keys: [
            KeyDescriptor(
                "id",
                .text(.fieldValue),
                "What a client names in Last-Event-ID; without it, the event's number in the stream."
            ),
            KeyDescriptor("event", .text(.fieldValue), "The type of the event; without it, clients call it message."),
            KeyDescriptor("data", .tree, "A text, or another value, which is sent as JSON."),
            KeyDescriptor("retry", .duration, "How long a client waits before it connects again."),
        ]
    )
}
