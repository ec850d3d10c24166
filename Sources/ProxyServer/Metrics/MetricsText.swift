// The text that `GET /metrics` answers.

import ServiceCore

/// The formats of the text.
package enum MetricsFormat: Sendable {
    /// Prometheus' text format 0.0.4.
    case text
    /// OpenMetrics 1.0.
    case openMetrics

    /// The format for a client: OpenMetrics if it takes it (RFC 9110 section 12.5.1), as Prometheus does.
    /// - Parameter accept: the value of Accept; nil if there is none.
    package init(accept: String?) {
        let takes = accept?.split(separator: ",").contains { range in
            let parts = range.split(separator: ";").map { part in
                part.filter { $0 != " " && $0 != "\t" && $0 != "\"" }.lowercased()
            }
            guard parts.first == "application/openmetrics-text" else { return false }
            let isOther = parts.contains {
                $0.hasPrefix("version=") && !["version=1.0.0", "version=0.0.1"].contains($0)
            }
            let isRefused = parts.contains { $0.hasPrefix("q=") && (Double($0.dropFirst(2)) ?? 0) <= 0 }
            return !isOther && !isRefused
        }
        self = takes == true ? .openMetrics : .text
    }

    /// The value of Content-Type.
    package var type: String {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }
}

/// Writes families of metrics.
package struct MetricsText {
    private let format: MetricsFormat
    private var text = ""

    package static func render(_ families: [MetricFamily], _ format: MetricsFormat) -> String {
        var writer = MetricsText(format: format)
        for family in families where !family.series.isEmpty { writer.write(family) }
        if format == .openMetrics { writer.text += "# EOF\n" }
        return writer.text
    }

    private init(format: MetricsFormat) { self.format = format }

    private mutating func write(_ family: MetricFamily) {
        var name = family.name
        // A counter's family has no suffix in OpenMetrics, its series have.
        if format == .openMetrics, family.kind == .counter, name.hasSuffix("_total") { name.removeLast(6) }
        text += "# HELP \(name) \(Self.escaped(family.help, quote: format == .openMetrics))\n"
        text += "# TYPE \(name) \(family.kind.rawValue)\n"
        for series in family.series { write(series, family.name) }
    }

    private mutating func write(_ series: MetricFamily.Series, _ name: String) {
        let labels = series.labels.map { "\($0.name)=\"\(Self.escaped($0.value, quote: true))\"" }
        func named(_ suffix: String, _ more: [String] = []) -> String {
            let all = (labels + more).joined(separator: ",")
            return name + suffix + (all.isEmpty ? "" : "{\(all)}")
        }
        switch series.value {
        case .count(let value): text += "\(named("")) \(value)\n"
        case .integer(let value): text += "\(named("")) \(value)\n"
        case .number(let value): text += "\(named("")) \(value)\n"
        case .histogram(let histogram):
            var sum: UInt64 = 0
            for (index, count) in histogram.counts.enumerated() {
                sum &+= count
                let bound = index < TimeHistogram.bounds.count ? "\(Double(TimeHistogram.bounds[index]) / 1e9)" : "+Inf"
                text += "\(named("_bucket", ["le=\"\(bound)\""])) \(sum)\(exemplar(series.exemplars[index]))\n"
            }
            text += "\(named("_sum")) \(Double(histogram.sum) / 1e9)\n\(named("_count")) \(sum)\n"
        }
    }

    /// What follows the count of a bucket; the format of Prometheus has no exemplars.
    private func exemplar(_ exemplar: Exemplar?) -> String {
        guard format == .openMetrics, let exemplar else { return "" }
        let (value, time) = (Double(exemplar.duration) / 1e9, exemplar.time / 1_000_000)
        let milliseconds = "\(1000 + time % 1000)".dropFirst()
        return " # {trace_id=\"\(exemplar.trace)\"} \(value) \(time / 1000).\(milliseconds)"
    }

    private static func escaped(_ value: String, quote: Bool) -> String {
        guard value.utf8.contains(where: { [0x22, 0x5C, 0x0A].contains($0) }) else { return value }
        var result = ""
        for character in value {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quote: result += "\\\""
            default: result.append(character)
            }
        }
        return result
    }
}
