// The metrics of the daemon as values: families of series, and gauges that are read when they are asked for.

package import ServiceCore

/// The metrics of one name.
package struct MetricFamily: Sendable {
    package enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    /// The value of one series.
    package enum Value: Sendable, Equatable {
        case count(UInt64)
        case integer(Int)
        case number(Double)
        /// Durations in seconds.
        case histogram(TimeHistogram)
    }

    /// One series: labels in their order, and the value.
    package struct Series: Sendable {
        package let labels: [(name: String, value: String)]
        package let value: Value
        /// Of the buckets of a histogram, by their numbers.
        package let exemplars: [Int: Exemplar]

        package init(
            _ labels: [(name: String, value: String)] = [],
            _ value: Value,
            exemplars: [Int: Exemplar] = [:]
        ) {
            (self.labels, self.value, self.exemplars) = (labels, value, exemplars)
        }
    }

    /// The name in Prometheus spelling; that of a counter ends with `_total`.
    package let name: String
    package let help: String
    package let kind: Kind
    package var series: [Series]

    package init(_ name: String, _ help: String, _ kind: Kind, _ series: [Series] = []) {
        (self.name, self.help, self.kind, self.series) = (name, help, kind, series)
    }

    /// A family of one series without labels.
    package init(_ name: String, _ help: String, _ kind: Kind, _ value: Value) {
        self.init(name, help, kind, [Series([], value)])
    }
}

/// A value that is read when the metrics are requested, such as the bytes of a tier.
package struct Gauge: Sendable {
    /// The name in Prometheus spelling, such as `drydock_memory_bytes`.
    package let name: String
    package let help: String
    package let isCounter: Bool
    /// The label and its value; nil if the metric has one series. Gauges of one name follow one another.
    package let label: (name: String, value: String)?
    package let read: @Sendable () -> Int

    /// - Parameter read: returns the value; called on any thread.
    package init(
        _ name: String,
        _ help: String,
        isCounter: Bool = false,
        label: (name: String, value: String)? = nil,
        read: @escaping @Sendable () -> Int
    ) {
        self.name = name
        self.label = label
        self.help = help
        self.isCounter = isCounter
        self.read = read
    }

    /// The families of gauges, with the values that they have now.
    package static func families(_ gauges: [Gauge]) -> [MetricFamily] {
        var families: [MetricFamily] = []
        for gauge in gauges {
            let series = MetricFamily.Series(gauge.label.map { [$0] } ?? [], .integer(gauge.read()))
            if families.last?.name == gauge.name {
                families[families.count - 1].series.append(series)
            } else {
                families.append(MetricFamily(gauge.name, gauge.help, gauge.isCounter ? .counter : .gauge, [series]))
            }
        }
        return families
    }
}
