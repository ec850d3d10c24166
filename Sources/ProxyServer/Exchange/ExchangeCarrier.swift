// The seam between an exchange and the form that its version of HTTP gives its answer on the wire.

import CacheStore
import EventLoop
import HTTPWire

/// How an answer ends that is not complete.
package enum ExchangeAbort: Equatable {
    /// What was queued goes out, and then nothing: the client sees that something is missing.
    case truncate
    /// The client sees that the connection broke off, and may lose what was queued.
    case reset
    /// What was queued goes out as it is, and then the connection ends, be the answer whole or not: a fault that is
    /// wanted. No request after it is answered.
    case close
}

/// Carries an exchange to its client: a connection of HTTP/1.1, which carries one after the other, or what stands for
/// one of many that a connection carries at a time. Loop-bound.
///
/// An exchange calls head, content and end in this order, and knows nothing of framing, of the connection or of its
/// socket. Each call but `queuedBytes` may end the carrier, which then calls ``Exchange/connectionEnded()``.
protocol ExchangeCarrier: AnyObject {
    /// Bytes that wait to be taken by the client.
    var queuedBytes: Int { get }

    // MARK: Head

    /// Sends the head of an interim response.
    func sendInterim(_ head: ResponseHead)
    /// Sends the final head, with what this version of HTTP says of its length and of the connection.
    /// - Parameters:
    ///   - head: end-to-end fields; one of a 101 goes out as it is.
    ///   - request: what it answers.
    ///   - isReusable: what of the request's body is unread does not keep another request from coming.
    func sendHead(_ head: ResponseHead, body: AnswerLength, to request: RequestHead, isReusable: Bool)
    /// Sends the head of an answer to GET as its origin sent it, but for the lines of the origin's connection.
    /// - Parameters:
    ///   - length: of its content, as the head says it.
    ///   - hasContent: content comes at once, and takes the head with it.
    func forwardHead(
        _ head: ResponseHead,
        length: Int64,
        _ lines: ForwardedLines,
        to version: HTTPVersion,
        isReusable: Bool,
        hasContent: Bool
    )

    // MARK: Content

    /// Queues content; what the length of the head does not cover is dropped.
    func send(_ piece: BodyPiece)
    func send(_ bytes: [UInt8])
    /// Queues what no proper answer has: a fault that is wanted. No request after this one is answered on the same
    /// connection.
    func send(_ part: BrokenPart)
    /// Writes content from where it lies, and queues what is not taken.
    func pass(_ bytes: UnsafeRawBufferPointer)
    /// Moves at most `count` bytes of content out of their source, without a copy through this process.
    /// - Returns: how the source gave them; nil, as by default, if they are to be read there, since they
    ///   cannot go to the client alone.
    func splice(_ count: Int, from source: SpliceSource) -> IOResult?

    // MARK: End

    /// As much content was sent as the head said.
    var isWhole: Bool { get }
    /// The answer is complete.
    func finish(trailers: Fields)
    /// The answer is not, and the client cannot take what it has for complete: where a truncated answer would look like
    /// a complete one, it is reset.
    func abort(_ kind: ExchangeAbort)
    /// What the client has not taken yet; nil where it cannot be given away, or the client has left.
    func takeUnsent() -> [UInt8]?
    /// Gives the way to the client away; the carrier carries nothing any more.
    func detach(unsent: [UInt8]) -> DetachedTransport?

    // MARK: The client

    /// From now on a client that has ended its sending side counts as gone, even if it did so before.
    func endWithClient()
}

extension ExchangeCarrier {
    func splice(_ count: Int, from source: SpliceSource) -> IOResult? { nil }
}

/// What a fault on the wire sends that no proper answer has. Each carrier has bytes of its own for it.
enum BrokenPart {
    /// The beginning of a head, in place of the whole.
    case beginning(of: ResponseHead)
    /// What is no HTTP, in place of a head, or after the first line of one.
    case garbage(after: ResponseHead?)
    /// In the place of a piece of content, one whose framing means nothing.
    case badChunk
    /// The end of content in chunks, behind which the connection stays for a while.
    case lastChunk
    /// Content beyond the length that the head has said.
    case surplus(BodyPiece)
}

/// The content of one request, out of whatever carries it; loop-bound. Its ``RequestBody`` holds it until the exchange is
/// over.
protocol RequestContent: AnyObject {
    /// Copies the next content to the beginning of `target`, and takes what is around it away.
    /// - Returns: the count of bytes; 0 if there are none now, or no more.
    /// - Throws: that the bytes are no acceptable content, after which no request can follow. The carrier knows it.
    func read(into target: UnsafeMutableRawBufferPointer) throws(WireError) -> Int
    /// All content was read.
    var isComplete: Bool { get }
    /// The trailers, once complete.
    var trailers: Fields { get }
    /// Bytes have come that were not read yet.
    var hasArrived: Bool { get }
    /// The client has ended its side, or its part of the exchange.
    var sawEnd: Bool { get }
    /// Somebody waits for more content.
    func readMore()
    /// The rest does not come. The carrier ends the exchange soon, and not now: that would end whoever asks.
    func endsWithoutRest()
    /// Tells the client to send its content (RFC 9110 section 10.1.1).
    func sendContinue()
}

// MARK: - Lengths

/// How long the body of an answer is.
package enum AnswerLength: Sendable, Equatable {
    /// No body.
    case none
    /// So many bytes; fewer cut the connection, more are dropped.
    case known(Int64)
    /// Chunked to HTTP/1.1 clients, up to the end of the connection to HTTP/1.0 clients.
    case unknown
}

/// The client has left, or the answer was cut: nothing more can be sent.
package struct ClientGone: Error, Sendable, Equatable {
    package init() {}
}
