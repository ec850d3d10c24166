// The counters of a loop: plain integers that no other thread touches.

import Policies

/// The counters of a loop.
package enum Counter: Int, CaseIterable, Sendable {
    case bytesIn, bytesOut, bytesSpliced
    case connectionsAccepted, connectionsClosed, tunnelsOpened, tunnelsClosed
    case upstreamRequests
    case errorWire, errorTimeout, errorAborted, errorRefused, errorUpstream, errorInternal
    case faultLatency, faultStatus, faultPace, faultReset, faultEmpty, faultClose, faultBadChunk, faultStalledHead,
        faultStalledBody, faultSlowClose, faultGarbage, faultWrongLength
    case undescribedRequests

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
    let answers = AnswerCounts()
    /// The traced answers that stand for others.
    private var exemplars = Exemplars()

    package init() {
        values = .allocate(capacity: Counter.allCases.count)
        values.initialize(repeating: 0)
    }

    deinit {
        values.deallocate()
        answers.free()
    }

    package func add(_ counter: Counter, _ amount: UInt64 = 1) { values[counter.rawValue] &+= amount }

    /// Notes that an answer, which is counted, was traced.
    func note(_ kind: AnswerKind, _ exemplar: Exemplar) { exemplars.note(kind, exemplar) }

    package var snapshot: CounterValues {
        var answers = answers.totals
        answers.exemplars = exemplars
        return CounterValues(Array(values), answers)
    }
}

@available(*, unavailable) extension LoopCounters: Sendable {}

/// The values of the counters of one loop, or of several, at one moment.
package struct CounterValues: Sendable, Equatable {
    private var values: [UInt64]
    package private(set) var answers = AnswerTotals()

    package init() { values = [UInt64](repeating: 0, count: Counter.allCases.count) }

    init(_ values: [UInt64], _ answers: AnswerTotals) { (self.values, self.answers) = (values, answers) }

    package subscript(_ counter: Counter) -> UInt64 { values[counter.rawValue] }

    package mutating func add(_ other: CounterValues) {
        for index in values.indices { values[index] &+= other.values[index] }
        answers.add(other.answers)
    }

    /// The number of open connections.
    package var connections: UInt64 { self[.connectionsAccepted] &- self[.connectionsClosed] }
}
