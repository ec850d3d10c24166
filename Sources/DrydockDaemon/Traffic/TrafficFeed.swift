// The admin API's view of the traffic: sums by service, and the stream of answers.

import CacheStore
import DownloadCore
import EventLoop
import HTTPWire
import Plans
import ProxyServer
import ServiceCore

/// Answers requests for the traffic.
///
/// Sendable: it has no mutable state of its own.
final class TrafficFeed: DaemonFeature {
    private let context: DaemonContext
    private let startedAt = Monotonic.now()

    init(_ context: DaemonContext) { self.context = context }

    var gauges: [Gauge] {
        [
            Gauge("drydock_traffic_readers", "Clients that watch the traffic at present.") { [context] in
                context.server?.traffic.readerCount ?? 0
            },
            Gauge(
                "drydock_traffic_lost_total",
                "Lines that clients missed who watch the traffic, since they read too slowly.",
                isCounter: true
            ) { [context] in
                context.server?.traffic.lostCount ?? 0
            },
        ]
    }

    var routes: [AdminRoute] {
        [
            AdminRoute(.get, .traffic) { request async throws(Problem) in
                let query = try TrafficQuery(members: request.queryItems)
                guard query.follows else { return try .json(await self.sums()) }
                var answer = AdminAnswer(
                    type: query.isText ? "text/plain; charset=utf-8" : "application/jsonl",
                    body: []
                )
                answer.stream = TrafficStream(reader: try self.listen(query))
                return answer
            }
        ]
    }

    private func listen(_ query: TrafficQuery) throws(Problem) -> TrafficReader {
        if let name = query.filter.service {
            let plan = context.plan
            let names = plan.services.map(\.plan.name) + (plan.forward == nil ? [] : ["forward", "connect"])
            guard names.contains(name) else { throw .unknown(service: name, among: names) }
        }
        if let reader = context.server?.traffic.listen(query.filter, isText: query.isText) { return reader }
        let isEnding = context.isStopping
        throw Problem(
            status: 503,
            title: isEnding ? "Ending" : "Too many readers",
            detail: isEnding
                ? "the daemon is ending, and answers nothing any more"
                : "\(TrafficHub.maximumReaders) watch the traffic already; end one of them first"
        )
    }

    /// What all loops and services have counted.
    private func sums() async -> AdminTraffic {
        let counters = await context.server?.counters() ?? CounterValues()
        let (core, plan) = (context.parts.core, context.plan)
        let services = context.parts.compiler.registry.services
        let names = services.numbers.names
        var sums: [String: AdminTraffic.Service] = [:]
        counters.answers.forEachKind { row, outcome, _, status, count in
            let name = row < names.count ? names[row].service : RouteNumbers.Name.other.service
            sums[name, default: AdminTraffic.Service(name: name)].count(outcome, status, Int(clamping: count))
        }
        for row in counters.answers.services where row < names.count {
            let name = names[row].service
            sums[name]?.bytes += Int(clamping: counters.answers.bytes(ofService: row))
            for outcome in CacheOutcome.allCases {
                let times = counters.answers.durations(ofService: row, outcome)
                sums[name]?.add(firstByte: times.firstByte, whole: times.whole)
            }
        }
        for runtime in services.all {
            sums[runtime.label, default: AdminTraffic.Service(name: runtime.label)].add(runtime)
        }
        for route in plan.services {
            if let state = route.breakerState, state != .closed { sums[route.plan.name]?.breaker = state.name }
        }
        let stored = core.store.statistics
        return AdminTraffic(
            uptime: Double((Monotonic.now() - startedAt) / 1_000_000) / 1_000,
            bounds: TimeHistogram.bounds.map { Double($0) / 1e9 },
            services: sums.values.sorted { $0.name < $1.name },
            connections: Int(clamping: counters.connections),
            fills: core.fillCount,
            memory: stored.memory.bytes,
            memoryLimit: stored.memory.limit,
            disk: stored[.disk].map { Int(clamping: $0.bytes) },
            diskLimit: stored[.disk].map { Int(clamping: $0.limit) },
            isOffline: core.isOffline
        )
    }
}

/// A stream of lines that goes on as long as its client reads.
private struct TrafficStream: AdminStream {
    let reader: TrafficReader

    func next() async -> [UInt8]? { await reader.next() }

    func close() { reader.close() }
}

/// The query of `GET /v1/traffic`.
struct TrafficQuery: Equatable {
    var follows = false
    var isText = false
    var filter = TrafficFilter()

    /// Parses `follow`, `as=text` and the members of the filter, each at most once.
    init(members: [(name: String, value: String)]) throws(Problem) {
        var seen: Set<String> = []
        for (name, value) in members {
            guard seen.insert(name).inserted else { throw .badQuery("\(name) is there twice; give it once") }
            switch name {
            case "follow" where value.isEmpty: follows = true
            case "as" where value == "text": isText = true
            case "service" where !value.isEmpty: filter.service = value
            case "client":
                guard value == "unix" || AddressBytes.parse(value) != nil else {
                    throw .badQuery("client is \(value); give the IP address of a client, or unix for unix sockets")
                }
                filter.client = value
            case "url" where !value.isEmpty: filter.url = value
            case "status":
                guard let range = Self.statuses(value) else {
                    throw .badQuery("status is \(value); give a status such as 404, or a class such as 5xx")
                }
                filter.status = range
            case "outcome":
                guard let outcome = CacheOutcome.allCases.first(where: { $0.label == value }) else {
                    let names = CacheOutcome.allCases.map(\.label).joined(separator: ", ")
                    throw .badQuery("there is no outcome \(value); there are \(names)")
                }
                filter.outcome = outcome
            default:
                throw .badQuery(
                    "give follow with as=text, service=NAME, status=404 or 5xx, outcome=NAME, client=ADDRESS and url=PART, or nothing"
                )
            }
        }
        if !follows, !seen.isEmpty { throw .badQuery("a filter is for the stream; add follow") }
    }

    private static func statuses(_ text: String) -> ClosedRange<Int>? {
        if let status = Int(text), 100...599 ~= status { return status...status }
        guard text.count == 3, text.hasSuffix("xx"), let digit = text.first?.wholeNumberValue, 1...5 ~= digit else {
            return nil
        }
        return digit * 100...digit * 100 + 99
    }
}
