// The seam between client connections and the cores: who answers requests, and with what facts.

package import EventLoop
package import HTTPWire
import ServiceCore

/// Answers requests; loop-bound, one per loop and listener role.
package protocol ExchangeHandler: AnyObject {
    /// The hot path: synchronous, from the read callback, without a task or an allocation.
    ///
    /// Answers now through ``Connection/sendAtOnce(prepared:dynamic:body:owner:record:)`` and returns true, or
    /// returns false and leaves the request to ``answer(_:on:)``. Asked only for requests without a body that expect
    /// nothing and upgrade nothing.
    func answerAtOnce(_ request: borrowing HotRequest, on connection: Connection) -> Bool

    /// The direct way: synchronous, where a request only has to be passed on. True: an ``ExchangeRelay`` ends the exchange,
    /// now or later; false leaves it to ``answer(_:on:)``.
    func passOn(_ exchange: Exchange) -> Bool

    /// The waiting path: runs as a task on the loop and ends the exchange by `finish`, `fail`, `problem` or `takeOver`.
    /// The task is cancelled when the client leaves. An exchange that it leaves open is answered 500, or cut.
    func answer(_ exchange: Exchange, on loop: isolated EventLoop) async

    /// The loop's connections have ended; nothing is asked any more.
    func shutdown()
}

extension ExchangeHandler {
    package func shutdown() {}

    package func passOn(_ exchange: Exchange) -> Bool { false }
}

/// Answers an exchange without a task; loop-bound, and held by the exchange until its end.
package protocol ExchangeRelay: AnyObject {
    /// The client has taken so much that there is room for more.
    func roomMade()
    /// The client has left, or was cut off, before the answer was complete.
    func clientLeft()
}

/// A request head in the read buffer, for the length of ``ExchangeHandler/answerAtOnce(_:on:)``.
package struct HotRequest: ~Copyable {
    /// The method is GET.
    package let isGet: Bool
    package let version: HTTPVersion
    // Target and host lie in the connection's own read buffer, which stays as it is during the call.
    /// The target exactly as received.
    package let target: UnsafeRawBufferPointer
    /// The value of Host without surrounding whitespace.
    package let host: UnsafeRawBufferPointer?
    /// The known fields that occur.
    package let present: FieldSet
    package let keepAlive: Bool
    /// Without a body, expecting nothing, upgrading nothing, its target as it is matched.
    let isBare: Bool

    init(_ parser: inout RequestParser, buffer: UnsafeRawBufferPointer) {
        isGet = if case .get = parser.method { true } else { false }
        version = parser.version
        target = buffer.part(parser.targetRange)
        (host, present) = parser.hostAndFields(in: buffer)
        keepAlive = parser.keepAlive
        isBare =
            switch parser.framing {
            case .none, .length(0): parser.isOrdinary
            case .length, .chunked, .untilClose: false
            }
    }
}

/// What a listener is for.
package enum ListenerRole: Sendable, Hashable {
    /// Reverse and forward mode.
    case proxy
    /// The admin API: outside caps, access log and request counters.
    case admin
}

/// Where a connection came in.
package final class ListenerFacts: Sendable {
    package let role: ListenerRole
    package let address: SocketAddress

    package init(role: ListenerRole, address: SocketAddress) {
        self.role = role
        self.address = address
    }
}

/// How long the body of an answer is.
package enum AnswerLength: Sendable, Equatable {
    /// No body.
    case none
    /// So many bytes; fewer cut the connection, more are dropped.
    case known(Int64)
    /// Chunked to HTTP/1.1 clients, up to the end of the connection to HTTP/1.0 clients.
    case unknown
}

extension Exchange {
    /// How the body goes out.
    enum Coding {
        /// HEAD, 204, 304 and the like: what is sent is dropped.
        case none
        case length(left: Int64)
        case chunked
        case untilClose
    }
}

/// The client has left, or the answer was cut: nothing more can be sent.
package struct ClientGone: Error, Sendable, Equatable {
    package init() {}
}

/// What the cache made of a request, for the counters.
package enum CacheOutcome: Int, Sendable, CaseIterable {
    case hit, miss, revalidated, stale, placeholder, fallback, bypass, collapsed, demo, none

    /// The value of the metric's label.
    package var label: String { "\(self)" }
}

/// What the handler tells the access log and the counters about an answer.
package struct ExchangeOutcome: Sendable {
    /// The service's name, `forward`, or empty.
    package var route = ""
    /// The value of Cache-Status, or empty.
    package var cacheStatus = ""
    package var cache = CacheOutcome.none
    /// The status that the origin answered with.
    package var upstreamStatus: Int?
    /// From the request to the origin to its head, in nanoseconds.
    package var upstreamTime: UInt64?
    /// Why there was no answer, or why it ended early; empty where all went well.
    package var error = ""

    package init() {}
}

/// What the access log and the counters need to know of an answer on the hot path. For the length of one call.
package struct HotRecord {
    package var status: Int
    package var route: HotRoute
    /// The value of Cache-Status.
    package var cacheStatus: UnsafeRawBufferPointer
    package var cache: CacheOutcome

    package init(
        status: Int = 200,
        route: HotRoute = HotRoute(""),
        cacheStatus: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        cache: CacheOutcome = .hit
    ) {
        self.status = status
        self.route = route
        self.cacheStatus = cacheStatus
        self.cache = cache
    }
}

/// Whose answer it is. For the length of one call: no text is made for an answer that is not logged.
package struct HotRoute {
    // Held by the plan in force, or by the host that it was found by: neither changes while a request is answered at once.
    private unowned(unsafe) let service: ServiceRoute?
    private let text: StaticString

    /// Of what is no service.
    package init(_ text: StaticString) {
        service = nil
        self.text = text
    }

    init(_ service: ServiceRoute) {
        self.service = service
        text = ""
    }

    /// The service's name, `forward`, or empty.
    var name: String { service?.plan.name ?? text.description }
}
