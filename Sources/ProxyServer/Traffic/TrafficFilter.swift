// Which answers a reader of the traffic wants to be told of.

import HTTPWire

/// Members that are nil admit everything.
package struct TrafficFilter: Sendable, Equatable {
    /// The name of a service, `forward` or `connect`.
    package var service: String?
    /// A status, or the first digit of a class.
    package var status: ClosedRange<Int>?
    package var outcome: CacheOutcome?
    /// The address of the client, without a port.
    package var client: String?
    /// A part of the request's target.
    package var url: String?

    package init() {}

    func admits(_ entry: AccessEntry, _ kind: AnswerKind) -> Bool {
        if let service, service != entry.route { return false }
        if let status, !status.contains(entry.status) { return false }
        if let outcome, outcome != kind.outcome { return false }
        if let client, client != entry.client { return false }
        guard let url else { return true }
        return entry.target.withBytes { String(decoding: $0, as: UTF8.self).contains(url) }
    }
}
