// The seam between client connections and the cores: who answers requests.

package import EventLoop
internal import HTTPWire
import ServiceCore

/// Answers requests; loop-bound, one per loop and listener role.
package protocol ExchangeHandler: AnyObject {
    /// The hot path: synchronous, from the read callback, without a task or an allocation.
    ///
    /// Answers now through `sender` and returns what that came to, or returns `.notMine` and leaves the request to
    /// ``answer(_:on:)``. Asked only for requests without a body that expect nothing and upgrade nothing.
    func answerAtOnce(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer

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

/// Passes an origin's answer on to the client; loop-bound, and held by the exchange until its end.
package protocol ExchangeRelay: AnyObject {
    /// The client has taken so much that there is room for more.
    func roomMade()
    /// The client has left, or was cut off, before the answer was complete.
    func clientLeft()
}
