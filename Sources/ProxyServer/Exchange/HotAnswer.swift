// What the hot path hands back, and what it hands its answer to.

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
