// The two sides of a transfer: the delegate that gets the response, and the source of the request's body.

package import EventLoop
package import HTTPWire

/// Whether more bytes are wanted.
package enum TransferFlow: Sendable, Equatable {
    case `continue`
    /// No bytes are delivered until `Transfer.resume()`; the transfer's deadlines are suspended until then.
    case pause
}

/// Receives a response; loop-bound. Called on the loop and outside libcurl, so that every method of ``Transfer`` and
/// ``UpstreamClient`` may be called from here; but see ``acceptsReentrantBytes``. Held by the transfer until its end.
///
/// The order is: interim heads, the final head, bytes, and then exactly one of `transferFinished` and `failed`. A
/// request that asks for another protocol may end with `switched` instead, right after its interim heads. After
/// `Transfer.cancel()` there are no more calls.
package protocol TransferDelegate: AnyObject {
    /// Whether bytes may come while libcurl is on the stack, which saves a copy of them: then the delegate may cancel,
    /// resume or allow silence, and begin no other transfer. Default false.
    var acceptsReentrantBytes: Bool { get }
    /// The most bytes that should come at a time; over libcurl, libcurl decides. By default there is no limit.
    var maximumAtOnce: Int { get }
    /// Receives a 1xx head; never 101.
    func transfer(_ transfer: Transfer, received interim: ResponseHead)
    /// Receives the final head. Its fields are as the origin sent them, hop-by-hop fields included.
    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming)
    /// Receives content without its chunked coding; the buffer is valid during the call.
    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow
    /// Whether ``transfer(_:moves:from:)`` may ever answer. Default false.
    var supportsSplice: Bool { get }
    /// Splices at most `count` bytes of content from their source, without a copy through this process. Nil, the default,
    /// declines: then the bytes are read and delivered.
    func transfer(_ transfer: Transfer, moves count: Int, from source: SpliceSource) -> SplicedContent?
    /// Receives the end of a message that is complete by the framing it declared; but see `Transfer.isEndProven`.
    func transferFinished(_ transfer: Transfer, trailers: Fields)
    /// Receives a 101 to an upgrade request: the connection now belongs to the delegate. If the delegate does not take
    /// it, as by default, it is closed.
    func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection)
    /// Receives the failure of a response: the received part must not be taken for complete.
    func transfer(_ transfer: Transfer, failed error: UpstreamError)
}

extension TransferDelegate {
    package var acceptsReentrantBytes: Bool { false }
    package var maximumAtOnce: Int { .max }
    package var supportsSplice: Bool { false }
    package func transfer(_ transfer: Transfer, moves count: Int, from source: SpliceSource) -> SplicedContent? { nil }
    package func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection) {}
}

/// The result of an attempt to splice content from a socket.
package struct SplicedContent {
    /// The result of writing to the socket; its bytes count as taken, also with `.pause`.
    package var result: IOResult
    package var flow: TransferFlow

    package init(_ result: IOResult, _ flow: TransferFlow) {
        self.result = result
        self.flow = flow
    }
}

/// The result of reading from the source of a request body.
package enum BodyRead: Sendable, Equatable {
    /// The count of bytes written into the buffer; at least one.
    case bytes(Int)
    /// There are no bytes yet: `Transfer.bodyAvailable()` will be called.
    case wait
    case end
    /// The client is gone: the request is given up.
    case failed
}

/// Gives the bytes of a request body; loop-bound. Held by the transfer until its end.
package protocol RequestBodySource: AnyObject {
    /// Fills the buffer from its start. Called on the loop, perhaps from within libcurl: it must not wait; `Transfer`'s
    /// methods may be called, and take effect afterwards.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead

    /// A source of the same bytes from their start, however many of this one were read; nil, the default, if they can
    /// be read only once.
    var again: (any RequestBodySource)? { get }
}

extension RequestBodySource {
    package var again: (any RequestBodySource)? { nil }
}
