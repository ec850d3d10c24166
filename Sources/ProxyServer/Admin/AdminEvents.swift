// `GET /v1/events`: what becomes of calls, line by line while it happens.

import AdminAPI
import HTTPWire
package import ServiceCore

/// Implemented where the daemon is put together.
package protocol EventActions: Sendable {
    /// Begins to listen.
    /// - Throws: a problem if there is no such service or endpoint, as many listen as may, or the daemon is ending.
    func events(_ filter: EventFilter) async throws(Problem) -> EventReader
}

extension EventActions {
    package var eventRoutes: [AdminRoute] {
        [
            AdminRoute(.get, .events) { request async throws(Problem) in
                let filter = try EventFilter(members: request.queryItems)
                var answer = AdminAnswer(type: "application/jsonl", body: [])
                answer.stream = EventStream(reader: try await self.events(filter))
                return answer
            }
        ]
    }
}

extension EventFilter {
    /// - Throws: a 400 for anything but `service=` and `endpoint=`, each at most once.
    init(members: [(name: String, value: String)]) throws(Problem) {
        self.init()
        for (name, value) in members {
            switch name {
            case "service" where !value.isEmpty && service == nil: service = value
            case "endpoint" where !value.isEmpty && endpoint == nil: endpoint = value
            default: throw .badQuery("give service=NAME, endpoint=NAME, both or nothing")
            }
        }
    }
}

/// Events as JSON lines.
struct EventStream: AdminStream {
    let reader: EventReader

    func next() async -> [UInt8]? {
        guard let events = await reader.next() else { return nil }
        var lines: [UInt8] = []
        for event in events { EventLine.write(event, to: &lines) }
        return lines
    }

    func close() { reader.close() }
}
