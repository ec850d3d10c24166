// A request head in the read buffer as the hot path sees it, and what the hot path hands back for it.

package import HTTPWire

/// A request head in the read buffer, for the length of ``ExchangeHandler/answerSynchronously(_:through:)``.
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
    /// The request has no body, expects and upgrades nothing, and its target is as it is matched.
    let isBare: Bool
    // The connection's own, which holds both and changes neither during the call.
    private let parser: UnsafeMutablePointer<RequestParser>
    private let buffer: UnsafeRawBufferPointer

    /// The parser and the bytes that it has read a whole head in stay as they are while this is used.
    init(_ parser: UnsafeMutablePointer<RequestParser>, buffer: UnsafeRawBufferPointer) {
        self.parser = parser
        self.buffer = buffer
        isGet = if case .get = parser.pointee.method { true } else { false }
        version = parser.pointee.version
        target = buffer.part(parser.pointee.targetRange)
        (host, present) = parser.pointee.hostAndFields(in: buffer)
        keepAlive = parser.pointee.keepAlive
        isBare =
            switch parser.pointee.framing {
            case .none, .length(0): parser.pointee.isOrdinary
            case .length, .chunked, .untilClose: false
            }
    }

    package var method: Method { parser.pointee.method }

    /// The field lines where they lie; valid during the call.
    var fields: BorrowedLines { parser.pointee.lines(in: buffer) }
}

// MARK: - The answer of the hot path

/// What became of a request that was to be answered at once. The connection goes on by this value alone.
package enum HotAnswer: Equatable {
    /// Nothing was sent: the request takes another way.
    case notMine
    /// The whole answer is with the socket, or with the other answers of this callback.
    case sent
    /// A part of the answer is queued; the rest follows when the client takes it.
    case queued
    /// A part of the answer is out, and no more can follow: only the end of the connection shows
    /// the client that it is cut.
    case broken
    /// The connection could not take an answer: it ends without one.
    case refused
}

/// Takes the answers of the hot path: the client's side, as a handler sees it there. Loop-bound.
package protocol HotSender: AnyObject {
    /// The value of Date for now.
    var dateText: String { get }

    /// Answers the request that ``ExchangeHandler/answerSynchronously(_:through:)`` was asked about, at most once: one
    /// call, no allocation; a large body follows by one `sendfile`. The handler returns the result.
    ///
    /// - Parameters:
    ///   - prepared: the status line and field lines, each with its CRLF, without the empty line; copied if it is
    ///     needed later, like `dynamic`.
    ///   - dynamic: further field lines, such as Age and Cache-Status. One of the two holds Content-Length. Connection
    ///     and the empty line are added here.
    ///   - body: sent from where it is; no bytes for HEAD and for answers without a body.
    ///   - owner: owns the bytes of a body in memory. The caller holds it during the call; the queue holds it until
    ///     the last byte is written.
    ///   - record: for the access log and the counters.
    func sendAtOnce(
        prepared: UnsafeRawBufferPointer,
        dynamic: UnsafeRawBufferPointer,
        body: HotBody,
        owner: Unmanaged<AnyObject>,
        record: HotRecord
    ) -> HotAnswer
}
