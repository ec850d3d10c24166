// The daemon's metrics: counters as plain integers on each loop, gauges, and the text that shows both.

import Policies

/// The counters of a loop.
package enum Counter: Int, CaseIterable, Sendable {
    case answers1xx, answers2xx, answers3xx, answers4xx, answers5xx
    case cacheHit, cacheMiss, cacheRevalidated, cacheStale, cachePlaceholder, cacheFallback, cacheBypass,
        cacheCollapsed, cacheDemo, cacheNone
    case bytesIn, bytesOut, bytesSpliced
    case connectionsAccepted, connectionsClosed, tunnelsOpened, tunnelsClosed
    case upstreamRequests
    case errorWire, errorTimeout, errorAborted, errorRefused, errorUpstream, errorInternal
    case faultLatency, faultStatus, faultPace, faultReset, faultEmpty, faultClose, faultBadChunk, faultStalledHead,
        faultStalledBody, faultSlowClose, faultGarbage, faultWrongLength
    case undescribedRequests

    static func answers(_ status: Int) -> Counter {
        switch status {
        case ..<200: .answers1xx
        case ..<300: .answers2xx
        case ..<400: .answers3xx
        case ..<500: .answers4xx
        default: .answers5xx
        }
    }

    static func cache(_ outcome: CacheOutcome) -> Counter {
        switch outcome {
        case .hit: .cacheHit
        case .miss: .cacheMiss
        case .revalidated: .cacheRevalidated
        case .stale: .cacheStale
        case .placeholder: .cachePlaceholder
        case .fallback: .cacheFallback
        case .bypass: .cacheBypass
        case .collapsed: .cacheCollapsed
        case .demo: .cacheDemo
        case .none: .cacheNone
        }
    }

    static func fault(_ kind: WireFault.Kind) -> Counter {
        switch kind {
        case .reset: .faultReset
        case .empty: .faultEmpty
        case .close: .faultClose
        case .badChunk: .faultBadChunk
        case .stalledHead: .faultStalledHead
        case .stalledBody: .faultStalledBody
        case .slowClose: .faultSlowClose
        case .garbage: .faultGarbage
        case .wrongLength: .faultWrongLength
        }
    }
}

/// The counters of one loop. Loop-bound.
package final class LoopCounters {
    // The buffer has one integer for each case of `Counter`; it belongs to this object, and is freed in deinit.
    private let values: UnsafeMutableBufferPointer<UInt64>

    package init() {
        values = .allocate(capacity: Counter.allCases.count)
        values.initialize(repeating: 0)
    }

    deinit { values.deallocate() }

    package func add(_ counter: Counter, _ amount: UInt64 = 1) { values[counter.rawValue] &+= amount }

    package var snapshot: CounterValues { CounterValues(Array(values)) }
}

@available(*, unavailable) extension LoopCounters: Sendable {}

/// The values of the counters of one loop, or of several, at one moment.
package struct CounterValues: Sendable, Equatable {
    private var values: [UInt64]

    package init() { values = [UInt64](repeating: 0, count: Counter.allCases.count) }

    init(_ values: [UInt64]) { self.values = values }

    package subscript(_ counter: Counter) -> UInt64 { values[counter.rawValue] }

    package mutating func add(_ other: CounterValues) {
        for index in values.indices { values[index] &+= other.values[index] }
    }

    /// The number of open connections.
    package var connections: UInt64 { self[.connectionsAccepted] &- self[.connectionsClosed] }
    /// The number of answers of every status.
    package var answers: UInt64 {
        self[.answers1xx] &+ self[.answers2xx] &+ self[.answers3xx] &+ self[.answers4xx] &+ self[.answers5xx]
    }
}

/// A value that is read when the metrics are requested, such as the bytes of a tier.
package struct Gauge: Sendable {
    /// The name in Prometheus spelling, such as `drydock_memory_bytes`.
    package let name: String
    package let help: String
    package let isCounter: Bool
    /// The labels in Prometheus spelling, such as `{class="client"}`; empty if the metric has one series. Gauges of one
    /// name follow one another.
    package let labels: String
    package let read: @Sendable () -> Int

    /// - Parameter read: returns the value; called on any thread.
    package init(
        _ name: String,
        _ help: String,
        isCounter: Bool = false,
        labels: String = "",
        read: @escaping @Sendable () -> Int
    ) {
        self.name = name
        self.labels = labels
        self.help = help
        self.isCounter = isCounter
        self.read = read
    }
}

/// The text that `GET /metrics` answers (Prometheus text format 0.0.4).
package enum MetricsText {
    private struct Family {
        let name: String
        let help: String
        let series: [(labels: String, counter: Counter)]

        init(_ name: String, _ help: String, _ counter: Counter) {
            self.name = name
            self.help = help
            series = [("", counter)]
        }

        init(_ name: String, _ help: String, label: String, _ series: [(String, Counter)]) {
            self.name = name
            self.help = help
            self.series = series.map { ("{\(label)=\"\($0.0)\"}", $0.1) }
        }
    }

    private static let families: [Family] = [
        Family(
            "drydock_answers_total",
            "Answers sent to clients, by class of status.",
            label: "class",
            [
                ("1xx", .answers1xx), ("2xx", .answers2xx), ("3xx", .answers3xx), ("4xx", .answers4xx),
                ("5xx", .answers5xx),
            ]
        ),
        Family(
            "drydock_cache_total",
            "Answers sent to clients, by what the cache did.",
            label: "outcome",
            CacheOutcome.allCases.map { ($0.label, .cache($0)) }
        ),
        Family("drydock_received_bytes_total", "Bytes read from clients.", .bytesIn),
        Family("drydock_sent_bytes_total", "Bytes written to clients.", .bytesOut),
        Family(
            "drydock_spliced_bytes_total",
            "Bytes that went from an origin's socket to a client's without a copy.",
            .bytesSpliced
        ),
        Family("drydock_connections_total", "Client connections accepted.", .connectionsAccepted),
        Family("drydock_tunnels_total", "Tunnels opened by CONNECT or Upgrade.", .tunnelsOpened),
        Family("drydock_upstream_requests_total", "Requests sent to origins.", .upstreamRequests),
        Family(
            "drydock_errors_total",
            "Errors, by kind.",
            label: "kind",
            [
                ("wire", .errorWire), ("timeout", .errorTimeout), ("aborted", .errorAborted),
                ("refused", .errorRefused), ("upstream", .errorUpstream), ("internal", .errorInternal),
            ]
        ),
        Family(
            "drydock_faults_total",
            "Answers that a fault of the configuration changed, by what it did.",
            label: "fault",
            [("latency", .faultLatency), ("status", .faultStatus), ("pace", .faultPace)]
                + WireFault.Kind.allCases.map { ($0.rawValue, .fault($0)) }
        ),
        Family(
            "drydock_openapi_violations_total",
            "Requests that were not as the document of their service says.",
            .undescribedRequests
        ),
    ]

    /// - Parameter values: the counters of all loops; nil leaves them out, since a stalled loop does not report them.
    package static func render(_ values: CounterValues?, gauges: [Gauge]) -> String {
        var text = values.map { counted($0) } ?? ""
        var last = ""
        for gauge in gauges {
            if gauge.name != last { describe(gauge.name, gauge.help, isCounter: gauge.isCounter, &text) }
            last = gauge.name
            text += "\(gauge.name)\(gauge.labels) \(gauge.read())\n"
        }
        return text
    }

    private static func counted(_ values: CounterValues) -> String {
        var text = ""
        for family in families {
            describe(family.name, family.help, isCounter: true, &text)
            for series in family.series { text += "\(family.name)\(series.labels) \(values[series.counter])\n" }
        }
        describe("drydock_connections", "Client connections that are open.", isCounter: false, &text)
        text += "drydock_connections \(values.connections)\n"
        describe("drydock_tunnels", "Tunnels that are open.", isCounter: false, &text)
        text += "drydock_tunnels \(values[.tunnelsOpened] &- values[.tunnelsClosed])\n"
        return text
    }

    private static func describe(_ name: String, _ help: String, isCounter: Bool, _ text: inout String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(isCounter ? "counter" : "gauge")\n"
    }
}
