// The admin API's stream of events: how the calls of services go on.

import Glibc
import HTTPWire
import Plans
import ProxyServer
import ServiceCore

/// Answers requests for the stream of events.
///
/// Sendable: it has no mutable state of its own.
final class EventFeed: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var gauges: [Gauge] {
        let hub = hub
        return [
            Gauge("drydock_event_listeners", "Clients that listen to events at present.", read: { hub.readerCount }),
            Gauge(
                "drydock_events_lost_total",
                "Events that clients missed, since they read too slowly.",
                isCounter: true,
                read: { hub.lostCount }
            ),
        ]
    }

    func events(_ filter: EventFilter) async throws(Problem) -> EventReader {
        let plan = context.plan
        var names = plan.services.map(\.plan.name)
        if plan.forward != nil { names.append("forward") }
        if let name = filter.service {
            guard names.contains(name) else { throw .unknown(service: name, among: names) }
        }
        if let name = filter.endpoint {
            let meant = plan.services.filter { filter.service == nil || filter.service == $0.plan.name }
            let endpoints = meant.flatMap { $0.plan.endpoints.map(\.name) }
            guard endpoints.contains(name) else { throw .unknown(endpoint: name, among: endpoints) }
        }
        if let reader = await hub.listen(filter, services: names) { return reader }
        let isEnding = context.isStopping
        throw Problem(
            status: 503,
            title: isEnding ? "Ending" : "Too many listeners",
            detail: isEnding
                ? "the daemon is ending, and tells of no calls any more"
                : "\(EventHub.maximumReaders) listen to events already; end one of them first"
        )
    }

    private var hub: EventHub { context.parts.compiler.registry.services.events }
}

extension EventFeed {
    var routes: [AdminRoute] {
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
    /// Parses the query of a listener.
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

/// An answer that goes on as long as its client reads: each event as a JSON line.
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

enum EventLine {
    /// Appends an event as one line with its newline. Members without a value are left out.
    static func write(_ event: CallEvent, to bytes: inout [UInt8]) {
        var json = JSONText()
        json.beginObject()
        json.member("time", time(event.time))
        json.member("event", event.kind.rawValue)
        switch event.subject {
        case .call(let facts): write(facts, event.kind, &json)
        case .service(let name, let calls):
            json.member("service", name)
            if event.kind == .state { json.member("state", calls > 0 ? "busy" : "idle") }
            json.member("calls", calls)
        case .reader(let lost): json.member("count", lost)
        }
        json.endObject()
        bytes += json.bytes
        bytes.append(0x0A)
    }

    private static func write(_ facts: CallFacts, _ kind: CallEventKind, _ json: inout JSONText) {
        if kind == .state { json.member("state", facts.phase.rawValue) }
        json.member("call", Int(clamping: facts.number))
        json.member("service", facts.service)
        if !facts.endpoint.isEmpty { json.member("endpoint", facts.endpoint) }
        json.member("method", facts.method)
        json.member("url", facts.url)
        json.member("attempt", facts.attempt)
        if let status = facts.status { json.member("status", status) }
        json.member("received", Int(clamping: facts.received))
        if let expected = facts.expected { json.member("expected", Int(clamping: expected)) }
        if facts.sent > 0 || facts.toSend != nil { json.member("sent", Int(clamping: facts.sent)) }
        if let toSend = facts.toSend { json.member("to_send", Int(clamping: toSend)) }
        if let waits = facts.waits { json.member("waits", Int(clamping: waits / 1_000_000)) }
        switch kind {
        case .finished: json.member("outcome", "done")
        case .failed, .cancelled: json.member("outcome", kind.rawValue)
        default: break
        }
        if let error = facts.error { json.member("error", error) }
        if let reason = facts.reason { json.member("reason", reason) }
    }

    /// A time as `2026-01-31T12:00:00.123Z`, from nanoseconds since 1970.
    static func time(_ nanoseconds: UInt64) -> String {
        var seconds = time_t(clamping: nanoseconds / 1_000_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int32, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date = "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
        let time = "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
        return "\(date)T\(time).\(padded(Int32(nanoseconds / 1_000_000 % 1000), 3))Z"
    }
}
