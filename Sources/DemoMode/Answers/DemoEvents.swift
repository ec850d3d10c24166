// Server-sent events of a demo answer: their order, and their bytes.

/// Events in their order, from a list that is played once or several times. Immutable, shared by every loop.
package struct DemoEvents: Sendable, Equatable {
    /// One event (HTML, section "Server-sent events").
    package struct Event: Sendable, Equatable {
        /// The event's id; nil for its number in the stream, from 1.
        package var id: String?
        /// The event's type; nil for the clients' default, which is `message`.
        package var name: String?
        /// The event's data; without it (nil), clients read the other fields and dispatch no event.
        package var data: String?
        /// The milliseconds that a client waits before it connects again.
        package var retry: UInt64?

        package init(id: String? = nil, name: String? = nil, data: String? = nil, retry: UInt64? = nil) {
            self.id = id
            self.name = name
            self.data = data
            self.retry = retry
        }
    }

    /// The events; never empty.
    package let events: [Event]
    /// The nanoseconds from one event to the next.
    package let interval: UInt64
    /// The number of times that the events are played, at least once; nil to repeat them without end.
    package let rounds: Int?

    /// Makes the stream of a list of events.
    /// - Returns: nil if there are no events.
    package init?(_ events: [Event], interval: UInt64, rounds: Int?) {
        if events.isEmpty { return nil }
        self.events = events
        self.interval = interval
        self.rounds = rounds
    }

    /// The media type of an event stream.
    package static let contentType = "text/event-stream"

    // MARK: - Positions

    /// Whether the stream has no event at a position; positions begin at 0.
    package func isEnd(_ position: UInt64) -> Bool {
        rounds.map { position >= UInt64($0).multipliedReportingOverflow(by: UInt64(events.count)).partialValue }
            ?? false
    }

    /// The position of the first event for a client that has received others.
    /// - Parameter lastID: the client's Last-Event-ID; nil if it has received none.
    package func position(behind lastID: String?) -> UInt64 {
        guard let lastID else { return 0 }
        if let found = events.firstIndex(where: { $0.id == lastID }) { return UInt64(found) + 1 }
        // Events without an id are numbered. No stream reaches half of the largest number.
        guard let number = UInt64(lastID), 1...(UInt64.max / 2) ~= number, !isEnd(number - 1),
            event(at: number - 1).id == nil
        else { return 0 }
        return number
    }

    private func event(at position: UInt64) -> Event { events[Int(position % UInt64(events.count))] }

    /// The bytes of the event at a position.
    package func bytes(at position: UInt64) -> [UInt8] {
        let event = event(at: position)
        var text = "id: \(event.id ?? String(position + 1))\n"
        if let name = event.name { text += "event: \(name)\n" }
        if let retry = event.retry { text += "retry: \(retry)\n" }
        if let data = event.data { for line in Self.lines(data) { text += "data: \(line)\n" } }
        return Array((text + "\n").utf8)
    }

    /// The lines of a text, which end in CRLF, LF or CR; Swift takes CRLF for one character.
    private static func lines(_ text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false) { $0 == "\r\n" || $0 == "\n" || $0 == "\r" }
    }

    // MARK: - Files

    /// Reads a stream as a server would send it. Comments and unknown fields are ignored, and the last event need not
    /// have an empty line after it.
    package static func events(in file: [UInt8]) -> [Event] {
        var text = Substring(String(decoding: file, as: UTF8.self))
        if text.first == "\u{FEFF}" { text = text.dropFirst() }
        var events: [Event] = []
        var (event, data) = (Event(), [Substring]())
        for line in lines(String(text)) + [""] {
            guard line.isEmpty else {
                let name = line.prefix { $0 != ":" }
                var value = line.dropFirst(name.count + 1)
                if value.first == " " { value = value.dropFirst() }
                switch name {
                case "id": event.id = String(value)
                case "event": event.name = String(value)
                case "data": data.append(value)
                case "retry": event.retry = UInt64(value)
                default: break
                }
                continue
            }
            if !data.isEmpty { event.data = data.joined(separator: "\n") }
            if event != Event() { events.append(event) }
            (event, data) = (Event(), [])
        }
        return events
    }
}
