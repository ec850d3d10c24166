// Fetches between a source and a sink: what passes all of another one on, and what is the end of such a chain.

package import HTTPWire
package import Upstream

/// A fetch that stands before another one, and passes on whatever it does not answer by itself. Loop-bound.
///
/// `cancel()` alone has to be written: who is behind it must not be called any more.
package protocol PassingHandle: FetchHandle {
    /// The one behind; nil before it has begun, and after its end.
    var handle: (any FetchHandle)? { get }
}

extension PassingHandle {
    package func resume() { handle?.resume() }
    package func pause() { handle?.pause() }
    package func bodyAvailable() { handle?.bodyAvailable() }
    package var hasContent: Bool { handle?.hasContent ?? false }
    package var isAtHand: Bool { handle?.isAtHand ?? false }
    package var isEndProven: Bool { handle?.isEndProven ?? true }
}

/// A sink that stands before another one, and passes on whatever it does not take by itself. Loop-bound.
package protocol PassingSink: FetchSink {
    /// The one behind; nil when it is to hear nothing any more.
    var sink: (any FetchSink)? { get }
}

extension PassingSink {
    package var acceptsReentrantBytes: Bool { sink?.acceptsReentrantBytes ?? false }
    package var maximumAtOnce: Int { sink?.maximumAtOnce ?? .max }
    package var supportsSplice: Bool { sink?.supportsSplice ?? false }
    package func received(interim head: ResponseHead) { sink?.received(interim: head) }
    package func received(_ head: ResponseHead, framing: BodyFraming) { sink?.received(head, framing: framing) }
    package func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow { sink?.received(bytes) ?? .continue }
    package func splice(_ count: Int, from socket: Int32) -> SplicedContent? { sink?.splice(count, from: socket) }
    package func finished(trailers: Fields) { sink?.finished(trailers: trailers) }
    package func failed(_ error: FetchError) { sink?.failed(error) }
}

/// Both of one fetch: what decorates a source.
package typealias PassingFetch = PassingHandle & PassingSink

/// A fetch with no other one behind it: what it does not say by itself is as for most of them. Whoever decorates a fetch is a
/// ``PassingHandle``.
package protocol EndHandle: FetchHandle {}

extension EndHandle {
    package func pause() {}
    package var hasContent: Bool { false }
    package var isAtHand: Bool { false }
    package var isEndProven: Bool { true }
}

/// A sink with no other one behind it. Whoever decorates a sink is a ``PassingSink``.
package protocol EndSink: FetchSink {}

extension EndSink {
    package var acceptsReentrantBytes: Bool { false }
    package var maximumAtOnce: Int { .max }
    package var supportsSplice: Bool { false }
    package func splice(_ count: Int, from socket: Int32) -> SplicedContent? { nil }
}
