// The exchanges that the end of the daemon waits for, and those that it cuts off.

import EventLoop
import Synchronization

/// An exchange whose client has not got all of its answer, or a tunnel.
package struct WaitedFor: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable, CaseIterable {
        case request, tunnel
        /// A request to the admin API.
        case command
    }

    package let kind: Kind
    /// The address of the client; `unix` for a unix socket.
    package let client: String
    /// The method and target of the request; nil if its head is not complete.
    package var request: String?
    /// The time at which the exchange began, in monotonic nanoseconds.
    package var since: UInt64
    /// The number of body bytes that the kernel has taken.
    package var sent = 0

    package init(kind: Kind, client: String, since: UInt64) {
        self.kind = kind
        self.client = client
        self.since = since
    }

    /// The exchange in a log line: `127.0.0.1 GET /files/a, 12 s, 4096 bytes sent`.
    package var description: String {
        let now = Monotonic.now()
        let seconds = now > since ? (now - since) / 1_000_000_000 : 0
        let bytes = sent == 1 ? "1 byte" : "\(sent) bytes"
        return "\(client) \(request ?? "with a request that has not come whole"), \(seconds) s, \(bytes) sent"
    }

    /// The method and the target for a log line: without the query, which may have secrets in it, and cut to 200
    /// characters.
    static func text(_ method: String, _ target: LogText) -> String {
        let path = target.withBytes { bytes in
            bytes.prefix { $0 != UInt8(ascii: "?") }.prefix(200).map { 0x21..<0x7F ~= $0 ? $0 : UInt8(ascii: ".") }
        }
        return "\(method) \(String(decoding: path, as: UTF8.self))"
    }

    /// The numbers of all kinds in a log line: `2 requests and 1 tunnel`.
    package static func summary(_ all: [WaitedFor]) -> String {
        let parts = Kind.allCases.compactMap { kind -> String? in
            let count = all.count { $0.kind == kind }
            return count == 0 ? nil : "\(count) \(kind.rawValue)\(count == 1 ? "" : "s")"
        }
        return parts.count < 2
            ? parts.joined() : parts.dropLast().joined(separator: ", ") + " and " + (parts.last ?? "")
    }
}

/// Collects the exchanges that the loops wait for, and reports them once.
///
/// Sendable: its state is under its own mutex.
final class WaitedForTally: Sendable {
    private struct State {
        var left: Int
        var all: [WaitedFor] = []
    }

    private let state: Mutex<State>
    private let told: @Sendable ([WaitedFor]) -> Void

    init(loops: Int, told: @escaping @Sendable ([WaitedFor]) -> Void) {
        state = Mutex(State(left: loops))
        self.told = told
    }

    /// Adds the exchanges of a loop, once for each loop; the last call reports them.
    func add(_ found: [WaitedFor]) {
        let all: [WaitedFor]? = state.withLock { state in
            state.left -= 1
            state.all += found
            return state.left == 0 ? state.all : nil
        }
        if let all { told(all) }
    }
}
