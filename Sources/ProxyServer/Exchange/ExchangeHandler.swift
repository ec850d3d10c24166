// The seam between client connections and the cores: the protocol of a handler that answers requests.

package import EventLoop
import HTTPWire
import ServiceCore

/// Answers requests; loop-bound, one per loop and listener role.
package protocol ExchangeHandler: AnyObject {
    /// The hot path: synchronous, from the read callback, without a task or an allocation.
    ///
    /// Answers now through `sender` and returns what that came to, or returns `.notMine` and leaves the request to
    /// ``answer(_:on:)``. Asked only for requests without a body that expect nothing and upgrade nothing.
    func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer

    /// Pass-through: forwards a request synchronously, if nothing but its origin can answer it. True: a
    /// ``SynchronousResponder`` ends the exchange, now or later; false leaves it to ``answer(_:on:)``.
    func passThrough(_ exchange: Exchange) -> Bool

    /// The waiting path: runs as a task on the loop and ends the exchange by `finish`, `fail`, `problem` or `detach`.
    /// The task is cancelled when the client leaves. An exchange that it leaves open is answered 500, or cut.
    func answer(_ exchange: Exchange, on loop: isolated EventLoop) async

    /// Called when all connections of the loop have ended; no requests follow.
    func shutdown()
}

extension SynchronousResponder {
    package var beginsTask: Bool { false }
}

extension ExchangeHandler {
    package func shutdown() {}

    package func passThrough(_ exchange: Exchange) -> Bool { false }
}

/// Passes an origin's answer on to the client; loop-bound, and held by the exchange until its end.
package protocol SynchronousResponder: AnyObject {
    /// It leaves the exchange to a task later, so that it is not over when one has returned. Default: false.
    var beginsTask: Bool { get }
    /// The client has taken so much that there is room for more.
    func roomMade()
    /// The client has left, or was cut off, before the answer was complete.
    func clientLeft()
}
