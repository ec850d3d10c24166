// Where the pieces of a request's content go, and what reads files for them.

import EventLoop
import FoundationEssentials
import Synchronization

/// Takes the pieces of a content, in their order.
protocol ContentSink: Sendable {
    /// Returns when there is room for more.
    /// - Throws: nothing more is wanted, and why.
    func put(_ piece: Data) async throws
}

/// Runs what blocks: on a pool where there is one, else on threads of its own.
struct BlockingWork: Sendable {
    let pool: IOPool?

    /// - Throws: what `work` throws.
    func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        if let pool { return try await pool.run(work) }
        let outcome = Outcome<Value>()
        await DetachedThread.wait { outcome.set(Result { try work() }) }
        return try outcome.take()
    }

    /// Sendable: under a mutex.
    private final class Outcome<Value: Sendable>: Sendable {
        private let result = Mutex<Result<Value, any Error>?>(nil)

        func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

        func take() throws -> Value {
            guard let result = result.withLock({ $0 }) else { throw CancellationError() }
            return try result.get()
        }
    }
}

/// All pieces in one.
///
/// Sendable: under a mutex.
final class CollectedContent: ContentSink {
    private let bytes = Mutex(Data())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var data: Data { bytes.withLock { $0 } }

    func put(_ piece: Data) async throws {
        let fits = bytes.withLock { bytes in
            guard piece.count <= limit - bytes.count else { return false }
            bytes.append(piece)
            return true
        }
        guard fits else { throw DownloadError.tooLarge(limit: limit) }
    }
}

/// Sees to it that a content is as long as it was said to be, before its last bytes are out: what an origin gets is the
/// whole, or no whole request.
///
/// Sendable: under a mutex.
final class MeasuredContent: ContentSink {
    private struct State {
        var count: Int64 = 0
        /// The piece that makes it whole, held back until nothing follows.
        var last: Data?
    }

    private let sink: any ContentSink
    private let length: Int64
    private let name: String
    private let state = Mutex(State())

    /// - Parameter name: as errors call it.
    init(_ sink: any ContentSink, length: Int64, name: String) {
        self.sink = sink
        self.length = length
        self.name = name
    }

    func put(_ piece: Data) async throws {
        if piece.isEmpty { return }
        let isLast = state.withLock { state -> Bool? in
            state.count += Int64(piece.count)
            guard state.count <= length else { return nil }
            if state.count == length { state.last = piece }
            return state.count == length
        }
        guard let isLast else {
            throw DownloadError.requestBody(
                "\(name) has more than the \(length) bytes that were announced: correct that"
            )
        }
        if !isLast { try await sink.put(piece) }
    }

    /// Nothing follows.
    /// - Throws: `DownloadError.requestBody` where it was too short.
    func finish() async throws {
        let (count, last) = state.withLock { ($0.count, $0.last) }
        guard count == length else {
            throw DownloadError.requestBody("\(name) ended after \(count) of the \(length) bytes that were announced")
        }
        if let last { try await sink.put(last) }
    }
}
