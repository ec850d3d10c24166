// The metrics of requests to origins, by service.

import ProxyServer
import ServiceCore

/// Makes families of what services have counted of their origins, within a budget of series.
struct OriginFamilies {
    let budget: SeriesBudget

    /// - Parameter services: the names of services, and their figures.
    func families(_ services: [(name: String, values: OriginFigures.Values)]) -> [MetricFamily] {
        var results: [String: [OriginResult: UInt64]] = [:]
        var bytes: [String: UInt64] = [:]
        var times: [String: (connecting: TimeHistogram, firstByte: TimeHistogram)] = [:]
        let other = RouteNumbers.Name.other.service
        for (name, values) in services where values.began > 0 {
            for (result, count) in values.results {
                let isShown = budget.admits("origins \(name) \(result)", count: 1)
                results[isShown ? name : other, default: [:]][result, default: 0] &+= count
            }
            bytes[budget.admits("origin bytes \(name)", count: 1) ? name : other, default: 0] &+= values.bytes
            let isTimed = budget.admits("origin times \(name)", count: 2 * AnswerFamilies.histogram)
            var sum = times[isTimed ? name : other] ?? (TimeHistogram(), TimeHistogram())
            sum.connecting.add(values.connecting)
            sum.firstByte.add(values.firstByte)
            times[isTimed ? name : other] = sum
        }
        func label(_ service: String) -> [(name: String, value: String)] { [("service", service)] }
        let timed = times.sorted { $0.key < $1.key }
        return [
            MetricFamily(
                "drydock_origin_requests_total",
                "Requests to origins that have ended, by what they came to.",
                .counter,
                results.sorted { $0.key < $1.key }.flatMap { service, counts in
                    counts.sorted { $0.key.label < $1.key.label }.map { result, count in
                        MetricFamily.Series(label(service) + [("result", result.label)], .count(count))
                    }
                }
            ),
            MetricFamily(
                "drydock_origin_bytes_total",
                "Bytes of content that origins have sent.",
                .counter,
                bytes.sorted { $0.key < $1.key }.map { MetricFamily.Series(label($0.key), .count($0.value)) }
            ),
            MetricFamily(
                "drydock_origin_connect_seconds",
                "The time until a request to an origin had a new connection: look-up, dialling and TLS.",
                .histogram,
                timed.map { MetricFamily.Series(label($0.key), .histogram($0.value.connecting)) }
            ),
            MetricFamily(
                "drydock_origin_first_byte_seconds",
                "The time from the beginning of a request to an origin to the head of the response.",
                .histogram,
                timed.map { MetricFamily.Series(label($0.key), .histogram($0.value.firstByte)) }
            ),
        ]
    }
}
