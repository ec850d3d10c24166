// The metrics of answers to clients, by service, endpoint, outcome, tier and status.

import ProxyServer
import ServiceCore

/// Makes families of what the loops have counted, within a budget of series.
struct AnswerFamilies {
    let names: [RouteNumbers.Name]
    let budget: SeriesBudget

    /// The series that a histogram takes: its buckets, sum and count.
    static let histogram = TimeHistogram.buckets + 2

    func families(_ totals: AnswerTotals) -> [MetricFamily] {
        [requests(totals)] + durations(totals) + [bytes(totals)]
    }

    private struct Kind: Hashable {
        var service: String
        var endpoint: String
        let outcome: CacheOutcome
        let tier: AnswerTier
        let status: Int

        var key: String { "requests \(service) \(endpoint) \(outcome) \(tier) \(status)" }

        var labels: [(name: String, value: String)] {
            [
                ("service", service), ("endpoint", endpoint), ("outcome", outcome.label), ("tier", tier.label),
                ("status", "\(status)xx"),
            ]
        }
    }

    private func requests(_ totals: AnswerTotals) -> MetricFamily {
        var counts: [Kind: UInt64] = [:]
        totals.forEachKind { row, outcome, tier, status, count in
            let name = name(of: row)
            let kind = Kind(
                service: name.service,
                endpoint: name.endpoint,
                outcome: outcome,
                tier: tier,
                status: status
            )
            counts[kind, default: 0] &+= count
        }
        var shown: [Kind: UInt64] = [:]
        // Of what is new the most frequent comes first.
        for (kind, count) in counts.sorted(by: { $0.value > $1.value }) {
            var kind = kind
            if !budget.admits(kind.key, count: 1) {
                (kind.service, kind.endpoint) = (RouteNumbers.Name.other.service, "")
            }
            shown[kind, default: 0] &+= count
        }
        return MetricFamily(
            "drydock_requests_total",
            "Requests of clients that were answered, by what answered them.",
            .counter,
            shown.sorted { $0.key.key < $1.key.key }.map { MetricFamily.Series($0.key.labels, .count($0.value)) }
        )
    }

    private struct Outcome: Hashable {
        let service: String
        let outcome: CacheOutcome
    }

    private func durations(_ totals: AnswerTotals) -> [MetricFamily] {
        var found: [Outcome: (firstByte: TimeHistogram, whole: TimeHistogram)] = [:]
        func add(_ times: (firstByte: TimeHistogram, whole: TimeHistogram), to key: Outcome) {
            found[key, default: (TimeHistogram(), TimeHistogram())].firstByte.add(times.firstByte)
            found[key, default: (TimeHistogram(), TimeHistogram())].whole.add(times.whole)
        }
        for row in totals.services {
            for outcome in CacheOutcome.allCases {
                let times = totals.durations(ofService: row, outcome)
                if !times.whole.isEmpty { add(times, to: Outcome(service: name(of: row).service, outcome: outcome)) }
            }
        }
        let all = found.sorted { $0.value.whole.count > $1.value.whole.count }
        found = [:]
        let exemplars = exemplars(totals)
        for (key, times) in all {
            let isShown = budget.admits("durations \(key.service) \(key.outcome)", count: 2 * Self.histogram)
            add(times, to: isShown ? key : Outcome(service: RouteNumbers.Name.other.service, outcome: key.outcome))
        }
        let sorted = found.sorted { ($0.key.service, $0.key.outcome.label) < ($1.key.service, $1.key.outcome.label) }
        func family(
            _ name: String,
            _ help: String,
            _ part: (TimeHistogram, TimeHistogram) -> TimeHistogram,
            _ exemplars: [Outcome: [Int: Exemplar]] = [:]
        ) -> MetricFamily {
            MetricFamily(
                name,
                help,
                .histogram,
                sorted.map { key, times in
                    MetricFamily.Series(
                        [("service", key.service), ("outcome", key.outcome.label)],
                        .histogram(part(times.firstByte, times.whole)),
                        exemplars: exemplars[key] ?? [:]
                    )
                }
            )
        }
        return [
            family(
                "drydock_first_byte_seconds",
                "The time from the head of a request to the head of its answer.",
                { first, _ in first }
            ),
            family(
                "drydock_request_duration_seconds",
                "The time from the head of a request to the end of its answer.",
                { _, whole in whole },
                exemplars
            ),
        ]
    }

    /// The traced requests that stand for those of a service and an outcome.
    private func exemplars(_ totals: AnswerTotals) -> [Outcome: [Int: Exemplar]] {
        var found: [Outcome: [Int: Exemplar]] = [:]
        for row in totals.services {
            for outcome in CacheOutcome.allCases {
                let buckets = totals.exemplars.buckets(ofService: row, outcome)
                if buckets.isEmpty { continue }
                found[Outcome(service: name(of: row).service, outcome: outcome), default: [:]]
                    .merge(buckets) { $0.time > $1.time ? $0 : $1 }
            }
        }
        return found
    }

    private func bytes(_ totals: AnswerTotals) -> MetricFamily {
        var shown: [String: UInt64] = [:]
        for row in totals.services {
            let name = name(of: row).service
            let isShown = budget.admits("bytes \(name)", count: 1)
            shown[isShown ? name : RouteNumbers.Name.other.service, default: 0] &+= totals.bytes(ofService: row)
        }
        return MetricFamily(
            "drydock_answer_bytes_total",
            "Bytes of content that clients were sent.",
            .counter,
            shown.sorted { $0.key < $1.key }.map { MetricFamily.Series([("service", $0.key)], .count($0.value)) }
        )
    }

    private func name(of row: Int) -> RouteNumbers.Name { row < names.count ? names[row] : .other }
}
