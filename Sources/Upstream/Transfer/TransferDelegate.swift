// The two sides of a transfer: who is told of the response, and where the request's body comes from.

package import EventLoop
package import HTTPWire

/// Whether more bytes are wanted.
package enum TransferFlow: Sendable, Equatable {
    case `continue`
    /// No bytes come until `Transfer.resume()`; the transfer's deadlines stand still until then.
    case pause
}

/// Told of a response; loop-bound. Called on the loop and outside libcurl, so that every method of ``Transfer`` and
/// ``UpstreamClient`` may be called from here; but see ``takesBytesAtOnce``. Held by the transfer until its end.
///
/// The order is: interim heads, the final head, bytes, and then exactly one of `transferFinished` and `failed`. A request that asks for
/// another protocol may end with `switched` instead, right after its interim heads. After `Transfer.cancel()` nothing comes any more.
package protocol TransferDelegate: AnyObject {
    /// Bytes may come while libcurl is on the stack, which saves a copy of them: then the delegate may cancel, resume or
    /// allow silence, and begin no other transfer. False unless it says otherwise.
    var takesBytesAtOnce: Bool { get }
    /// Bytes that should come at a time, at most; over libcurl that is for libcurl to say. No limit unless it says otherwise.
    var mostAtOnce: Int { get }
    /// A 1xx head; never 101.
    func transfer(_ transfer: Transfer, received interim: ResponseHead)
    /// The final head. Its fields are as the origin sent them, hop-by-hop fields included.
    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming)
    /// Content without its chunked coding; the buffer is valid during the call.
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow
    /// Whether ``transfer(_:moves:from:)`` may ever answer. False unless it says otherwise.
    var movesContent: Bool { get }
    /// Content waits in a socket: the delegate may take at most `count` bytes of it from there by itself, without a copy through
    /// this process. Nil, as unless it says otherwise: not now, so that they are read and come as bytes.
    func transfer(_ transfer: Transfer, moves count: Int, from socket: Int32) -> MovedContent?
    /// The message is complete by the framing it declared; but see `Transfer.isEndProven`.
    func transferFinished(_ transfer: Transfer, trailers: Fields)
    /// A 101, to a request that is an upgrade: the connection is the delegate's from here on, and is closed where it is not taken, as unless
    /// the delegate says otherwise.
    func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection)
    /// The message did not come, or not to its end: what came of it must not pass as complete.
    func transfer(_ transfer: Transfer, failed error: UpstreamError)
}

extension TransferDelegate {
    package var takesBytesAtOnce: Bool { false }
    package var mostAtOnce: Int { .max }
    package var movesContent: Bool { false }
    package func transfer(_ transfer: Transfer, moves count: Int, from socket: Int32) -> MovedContent? { nil }
    package func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection) {}
}

/// What came of a try to take content out of a socket.
package struct MovedContent {
    /// How that ended: bytes count as taken, also with `.pause`.
    package var result: IOResult
    package var flow: TransferFlow

    package init(_ result: IOResult, _ flow: TransferFlow) {
        self.result = result
        self.flow = flow
    }
}

/// What a source of a request body has to give.
package enum BodyRead: Sendable, Equatable {
    /// So many bytes were written into the buffer; more than none.
    case bytes(Int)
    /// Nothing yet: `Transfer.bodyAvailable()` will be called.
    case wait
    case end
    /// The client went away: the request is given up.
    case failed
}

/// Gives the bytes of a request body; loop-bound. Held by the transfer until its end.
package protocol RequestBodySource: AnyObject {
    /// Fills the buffer from its start. Called on the loop, perhaps from within libcurl: it must not wait; `Transfer`'s methods may
    /// be called, and take effect afterwards.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead
}
