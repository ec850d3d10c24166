// The families of metrics that the counters of the loops are.

import Policies

extension CounterValues {
    private struct Family {
        let name: String
        let help: String
        let label: String
        let series: [(value: String, counter: Counter)]

        init(_ name: String, _ help: String, _ counter: Counter) {
            (self.name, self.help, label) = (name, help, "")
            series = [("", counter)]
        }

        init(_ name: String, _ help: String, label: String, _ series: [(String, Counter)]) {
            (self.name, self.help, self.label) = (name, help, label)
            self.series = series.map { ($0.0, $0.1) }
        }
    }

    private static let families: [Family] = [
        Family("drydock_received_bytes_total", "Bytes read from clients.", .bytesIn),
        Family("drydock_sent_bytes_total", "Bytes written to clients.", .bytesOut),
        Family(
            "drydock_spliced_bytes_total",
            "Bytes that went from an origin's socket to a client's without a copy.",
            .bytesSpliced
        ),
        Family("drydock_connections_total", "Client connections accepted.", .connectionsAccepted),
        Family("drydock_tunnels_total", "Tunnels opened by CONNECT or Upgrade.", .tunnelsOpened),
        Family(
            "drydock_upstream_requests_total",
            "Old name, until 0.3.0: see drydock_origin_requests_total.",
            .upstreamRequests
        ),
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

    /// All counters, and what follows from them.
    package var families: [MetricFamily] {
        Self.families.map { family in
            MetricFamily(
                family.name,
                family.help,
                .counter,
                family.series.map { value, counter in
                    MetricFamily.Series(family.label.isEmpty ? [] : [(family.label, value)], .count(self[counter]))
                }
            )
        } + [
            MetricFamily(
                "drydock_answers_total",
                "Old name, until 0.3.0: see drydock_requests_total.",
                .counter,
                (1...5).map { digit in
                    MetricFamily.Series([("class", "\(digit)xx")], .count(answers.answers(ofClass: digit)))
                }
            ),
            MetricFamily(
                "drydock_cache_total",
                "Old name, until 0.3.0: see drydock_requests_total.",
                .counter,
                CacheOutcome.allCases.map { outcome in
                    MetricFamily.Series([("outcome", outcome.label)], .count(answers[outcome]))
                }
            ),
            MetricFamily("drydock_connections", "Client connections that are open.", .gauge, .count(connections)),
            MetricFamily(
                "drydock_tunnels",
                "Tunnels that are open.",
                .gauge,
                .count(self[.tunnelsOpened] &- self[.tunnelsClosed])
            ),
        ]
    }
}
