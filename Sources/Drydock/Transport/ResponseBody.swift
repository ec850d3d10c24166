// The body of a response as a sequence of pieces, of bytes or of lines, for one reader at a time.

public import FoundationEssentials
import Synchronization

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
        let semaphore = AsyncSemaphore()
        pull = { () async throws(DownloadError) in
            guard await semaphore.enter() else { throw .cancelled }
            defer { semaphore.leave() }
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

// MARK: - Bytes and lines

extension ResponseBody {
    /// The bytes one by one, read on where an earlier iteration of the body stopped.
    public var bytes: some AsyncSequence<UInt8, DownloadError> & Sendable { Bytes(body: self) }

    /// The lines, without the LF or CR LF that ends each; the last one may have none. Bytes that are no UTF-8 become
    /// U+FFFD. A line is held as a whole, however long it is.
    public var lines: some AsyncSequence<String, DownloadError> & Sendable { Lines(body: self) }

    /// The bytes of a body, one by one.
    fileprivate struct Bytes: AsyncSequence, Sendable {
        typealias Element = UInt8
        typealias Failure = DownloadError

        let body: ResponseBody

        /// Goes on with the next piece of the body; what an earlier iterator had of a piece is not read again.
        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: body.makeAsyncIterator()) }

        /// The bytes of a body under way.
        struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var pieces: ResponseBody.AsyncIterator
            private var piece = Data()
            private var position = 0

            fileprivate init(pieces: ResponseBody.AsyncIterator) { self.pieces = pieces }

            /// The next byte; nil at the end.
            mutating func next(
                isolation actor: isolated (any Actor)? = #isolation
            ) async throws(DownloadError) -> UInt8? {
                while position == piece.endIndex {
                    guard let next = try await pieces.next(isolation: actor) else { return nil }
                    (piece, position) = (next, next.startIndex)
                }
                defer { position += 1 }
                return piece[position]
            }
        }
    }

    /// The lines of a body.
    fileprivate struct Lines: AsyncSequence, Sendable {
        typealias Element = String
        typealias Failure = DownloadError

        let body: ResponseBody

        /// Goes on with the next piece of the body; what an earlier iterator had of a piece is not read again.
        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: body.makeAsyncIterator()) }

        /// The lines of a body under way.
        struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var pieces: ResponseBody.AsyncIterator
            private var piece = Data()
            /// What of the piece has not been read.
            private var rest = 0..<0
            private var line: [UInt8] = []
            private var isOver = false

            fileprivate init(pieces: ResponseBody.AsyncIterator) { self.pieces = pieces }

            /// The next line; nil at the end.
            mutating func next(
                isolation actor: isolated (any Actor)? = #isolation
            ) async throws(DownloadError) -> String? {
                while !isOver {
                    if let end = piece[rest].firstIndex(of: UInt8(ascii: "\n")) {
                        line += piece[rest.lowerBound..<end]
                        rest = (end + 1)..<rest.upperBound
                        if line.last == UInt8(ascii: "\r") { line.removeLast() }
                        return take()
                    }
                    line += piece[rest]
                    let next = try await pieces.next(isolation: actor)
                    isOver = next == nil
                    piece = next ?? Data()
                    rest = piece.startIndex..<piece.endIndex
                }
                return line.isEmpty ? nil : take()
            }

            private mutating func take() -> String {
                defer { line.removeAll(keepingCapacity: true) }
                return String(decoding: line, as: UTF8.self)
            }
        }
    }
}

// MARK: - One reader at a time

/// Lets one task in at a time; the others wait in the order in which they came.
///
/// Sendable: its state is under its own mutex, and nobody is resumed under it.
final class AsyncSemaphore: Sendable {
    private typealias Waiter = CheckedContinuation<Bool, Never>

    private struct State {
        var isTaken = false
        var last: UInt64 = 0
        var waiters: [(number: UInt64, waiter: Waiter)] = []
    }

    private let state = Mutex(State())

    /// Waits for its turn; ``leave()`` ends it.
    /// - Returns: false where the task was cancelled before, and has no turn.
    func enter() async -> Bool {
        let number = state.withLock { state -> UInt64? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            state.last += 1
            return state.last
        }
        guard let number else { return true }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isIn = state.withLock { state -> Bool? in
                    // A task that is cancelled from here on is found in the list.
                    if Task.isCancelled { return false }
                    guard state.isTaken else {
                        state.isTaken = true
                        return true
                    }
                    state.waiters.append((number, waiter))
                    return nil
                }
                if let isIn { waiter.resume(returning: isIn) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
                return state.waiters.remove(at: index).waiter
            }
            waiter?.resume(returning: false)
        }
    }

    func leave() {
        let next = state.withLock { state -> Waiter? in
            state.isTaken = !state.waiters.isEmpty
            return state.waiters.isEmpty ? nil : state.waiters.removeFirst().waiter
        }
        next?.resume(returning: true)
    }
}

// MARK: - Bytes that are handed over once

/// Sendable: the bytes are under a mutex.
final class RestOfData: Sendable {
    private let rest: Mutex<Data?>

    init(_ data: Data) { rest = Mutex(data.isEmpty ? nil : data) }

    /// All bytes at the first call, nil afterwards.
    func take() -> Data? { rest.withLock { $0.take() } }
}
