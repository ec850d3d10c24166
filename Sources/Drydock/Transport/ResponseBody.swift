// The body of a response as a sequence of pieces.

public import FoundationEssentials

/// The bytes of a body in the order in which they come. It can be read once: a second iteration goes on where the first
/// one stopped, and of several tasks that read it each piece reaches one. What is not asked for is not read, so that a
/// body larger than memory takes no more than a piece of it.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = Data
    public typealias Failure = DownloadError

    /// Bytes of the whole; nil where nobody knows, as of a body that is decoded.
    public let expected: Int64?
    private let pull: @Sendable () async throws(DownloadError) -> Data?

    /// A body that is asked for piece by piece.
    /// - Parameters:
    ///   - expected: bytes of the whole; nil where nobody knows.
    ///   - next: the next bytes, nil at the end; it is called again only after it has returned, whoever asks.
    public init(expected: Int64?, next: @escaping @Sendable () async throws(DownloadError) -> Data?) {
        self.expected = expected
        let turnstile = Turnstile()
        pull = { () async throws(DownloadError) in
            guard await turnstile.enter() else { throw .cancelled }
            defer { turnstile.leave() }
            return try await next()
        }
    }

    /// A body that is there already; empty by default.
    public init(_ data: Data = Data()) {
        let rest = RestOfData(data)
        expected = Int64(data.count)
        // Any number of tasks may take it at once.
        pull = { rest.take() }
    }

    /// Goes on where an earlier iteration stopped.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pull: pull) }

    /// The pieces of a body.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws(DownloadError) -> Data?

        /// The next bytes; nil at the end.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> Data? {
            try await pull()
        }
    }

    /// All bytes that are still to come.
    /// - Parameter limit: bytes that there may be at most.
    /// - Throws: `DownloadError.tooLarge` beyond the limit, and whatever ends the body early.
    public func collect(upTo limit: Int) async throws(DownloadError) -> Data {
        if let expected, expected > limit { throw .tooLarge(limit: limit) }
        var data = Data()
        var iterator = makeAsyncIterator()
        while let piece = try await iterator.next() {
            guard data.count + piece.count <= limit else { throw .tooLarge(limit: limit) }
            data.append(piece)
        }
        return data
    }
}
