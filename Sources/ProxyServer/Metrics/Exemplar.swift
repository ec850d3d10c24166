// Traced requests that stand for others in histograms.

import ServiceCore

/// The last traced request of a bucket, as OpenMetrics names one.
package struct Exemplar: Sendable, Equatable {
    /// The trace, in 32 hexadecimal digits.
    package let trace: String
    /// What the request took, in nanoseconds.
    package let duration: UInt64
    /// The end of the request, in nanoseconds since 1970.
    package let time: UInt64

    package init(trace: String, duration: UInt64, time: UInt64) {
        self.trace = trace
        self.duration = duration
        self.time = time
    }
}

/// The exemplars of whole times: one for each service, outcome and bucket at most.
package struct Exemplars: Sendable, Equatable {
    /// The most exemplars; where there are so many, buckets without one get none.
    static let limit = 1024

    private struct Key: Hashable {
        let service: Int
        let outcome: CacheOutcome
        let bucket: Int
    }

    private var last: [Key: Exemplar] = [:]

    package init() {}

    /// Notes a traced request.
    package mutating func note(_ kind: AnswerKind, _ exemplar: Exemplar) {
        let bucket = TimeHistogram.bucket(of: exemplar.duration)
        let key = Key(service: kind.number.service, outcome: kind.outcome, bucket: bucket)
        if last.count < Self.limit || last[key] != nil { last[key] = exemplar }
    }

    /// Takes over the exemplars of another loop where they are later.
    mutating func add(_ other: Exemplars) { last.merge(other.last) { $0.time > $1.time ? $0 : $1 } }

    /// The exemplars of a service's answers with one outcome, by their buckets.
    package func buckets(ofService row: Int, _ outcome: CacheOutcome) -> [Int: Exemplar] {
        var found: [Int: Exemplar] = [:]
        for bucket in 0..<TimeHistogram.buckets {
            found[bucket] = last[Key(service: row, outcome: outcome, bucket: bucket)]
        }
        return found
    }
}
