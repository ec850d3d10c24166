// Server-sent events as the content of a demo answer.

import DemoMode
import Trees

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

extension Resolver {
    /// Reads and checks the events of an answer.
    /// - Parameter owner: a section `demo`, or one of its rules.
    mutating func events(_ owner: SectionReader, _ folder: DemoFolder) -> EventsConfiguration? {
        guard let position = owner.position("events"), !broken.contains(position) else { return nil }
        let reader = owner.section("events")
        guard (reader.entry("list") == nil) != (reader.entry("file") == nil) else {
            fail(position, "'demo.events' takes a list or a file, and one of them; write the one that is meant")
            return nil
        }
        var result = EventsConfiguration(
            interval: reader.nanoseconds(always: "every"),
            rounds: reader.always(EventsConfiguration.rounds)
        )
        if let file = demoFile(reader, "file", folder) {
            result.file = file
            // A file that cannot be read has been reported already.
            if let loaded = try? DemoFile.load(path: file), DemoEvents.events(in: loaded.bytes).isEmpty {
                fail(
                    self.position(reader, "file"),
                    file:
                        "the file \(file) has no event; write lines such as 'data: hello', and an empty line behind each event"
                )
            }
            return result
        }
        for value in reader.items("list") where !broken.contains(value.position) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.event)
            let event = DemoEvents.Event(reader)
            if event.data == nil, event.retry == nil {
                fail(
                    value.position,
                    "an event of 'demo.events' has no data, so that no client tells of it; write 'data'"
                )
            }
            result.list.append(event)
        }
        if reader.items("list").isEmpty { fail(position, "'demo.events' is an empty list; write events, or remove it") }
        return result
    }
}

extension DemoEvents.Event {
    /// Reads one event.
    /// - Parameter reader: one of `demo.events`.
    fileprivate init(_ reader: SectionReader) {
        self.init(
            id: reader.text("id"),
            name: reader.text("event"),
            retry: reader.nanoseconds("retry").map { $0 / 1_000_000 }
        )
        guard case .tree(let tree)? = reader.leaf("data")?.scalar else { return }
        if case .string(let text) = tree {
            data = text
        } else {
            data = String(decoding: JSONWriter.bytes(tree), as: UTF8.self)
        }
    }
}

extension EventsConfiguration {
    /// The number of rounds: the inner nil means endlessly, the outer nil an unreadable value.
    fileprivate static func rounds(_ reader: SectionReader) -> Int?? {
        switch reader.leaf("repeat")?.scalar {
        case .none?: .some(nil)
        case .int(let count)?: count
        default: nil
        }
    }
}
