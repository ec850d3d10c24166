// What the download core asks for a resource, and how the answer comes back: the seam below which services, retries and limits act.

package import EventLoop
package import HTTPWire
package import Upstream

/// One request to an origin. Loop-bound, because its body is.
package struct FetchRequest {
    package var method: Method
    /// Path and query on the origin; the source adds the secret items of its service.
    package var path: String
    /// End-to-end fields; the source adds Host and what its service says.
    package var fields: Fields
    /// The Host field of the client's request, for services that preserve it.
    package var clientHost: String?
    package var framing: BodyFraming
    package var body: (any RequestBodySource)?
    /// Registers whom to call when the body has bytes again after it said `.wait`.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)?

    package init(
        method: Method,
        path: String,
        fields: Fields,
        clientHost: String? = nil,
        framing: BodyFraming = .none,
        body: (any RequestBodySource)? = nil
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.clientHost = clientHost
        self.framing = framing
        self.body = body
    }
}

/// An origin as the download core sees it; loop-bound, one per loop and service.
package protocol FetchSource: AnyObject {
    /// Whether asking it opens a socket, which an offline daemon does not; true unless a source says otherwise.
    var opensSockets: Bool { get }

    /// Waits for admission, then starts. The sink is never called before this returns.
    /// - Throws: `FetchError` where the fetch is not admitted or cannot start.
    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle

    /// Starts where nothing has to be waited for; nil where something has, and then nothing was done. The sink is never
    /// called before this returns.
    func startAtOnce(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)?
}

extension FetchSource {
    package var opensSockets: Bool { true }

    package func startAtOnce(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)? { nil }
}

/// A fetch under way; loop-bound.
package protocol FetchHandle: AnyObject {
    /// After a sink said `.pause`: more bytes may come.
    func resume()
    /// After the request's body said `.wait`: it has bytes again, or has ended.
    func bodyAvailable()
    /// While the sink is told of the final head: content came with it, so that the sink is called again at once. False where that is not known.
    var hasContent: Bool { get }
    /// While the sink is told that all has come, and after it: whether the origin has said so itself. False where only the end of a TLS
    /// connection says so, and came without close_notify: such an answer is passed on and never stored.
    var isEndProven: Bool { get }
    /// Ends the fetch; the sink hears nothing more.
    func cancel()
}

extension FetchHandle {
    package var hasContent: Bool { false }
    package var isEndProven: Bool { true }
}

/// Receives one fetch, in this order: any number of interim responses, one head, bytes, and one end. Loop-bound; called on the loop.
package protocol FetchSink: AnyObject {
    /// Bytes may come where no other fetch may be begun; false unless a sink says otherwise.
    var takesBytesAtOnce: Bool { get }
    /// Bytes that should come at a time, at most; no limit unless a sink says otherwise.
    var mostAtOnce: Int { get }
    func received(interim head: ResponseHead)
    func received(_ head: ResponseHead, framing: BodyFraming)
    /// The bytes are valid during the call and count as taken, also when the answer is `.pause`.
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow
    /// Whether ``move(_:from:)`` may ever answer; false unless a sink says otherwise.
    var movesContent: Bool { get }
    /// Takes content out of a socket by itself, at most `count` bytes; nil, as unless a sink says otherwise: not now.
    func move(_ count: Int, from socket: Int32) -> MovedContent?
    func finished(trailers: Fields)
    func failed(_ error: FetchError)
}

extension FetchSink {
    package var takesBytesAtOnce: Bool { false }
    package var mostAtOnce: Int { .max }
    package var movesContent: Bool { false }
    package func move(_ count: Int, from socket: Int32) -> MovedContent? { nil }
}
