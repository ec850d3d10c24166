// Pieces of a request's content on their way from whoever makes them to the loop that sends them: the maker waits while
// the origin does not take them.

import FoundationEssentials
import Synchronization

/// Sendable: its state is under its own mutex; whoever waits is resumed outside it.
final class PieceQueue: ContentSink {
    enum Next {
        case piece(Data)
        /// ``onChange`` is called when there is more.
        case nothingYet
        case end
        case failed(any Error)
    }

    private struct State {
        var pieces: [Data] = []
        var count = 0
        var end: Result<Void, any Error>?
        var isClosed = false
        /// The maker, which waits for room.
        var maker: UnsafeContinuation<Void, any Error>?
        /// The reader has found nothing.
        var isAwaited = false
    }

    /// Bytes that wait here, but for one piece.
    private static let room = 256 << 10

    private let state = Mutex(State())
    private let onChange: @Sendable () -> Void

    /// - Parameter onChange: called on any thread when there is something for a reader that found nothing.
    init(onChange: @escaping @Sendable () -> Void) { self.onChange = onChange }

    deinit { close() }

    // MARK: - The maker

    /// - Throws: `CancellationError`: nobody wants any more.
    func put(_ piece: Data) async throws {
        if piece.isEmpty { return }
        try await withUnsafeThrowingContinuation { (maker: UnsafeContinuation<Void, any Error>) in
            let (isRoom, isClosed, isAwaited) = state.withLock { state in
                if state.isClosed { return (false, true, false) }
                state.pieces.append(piece)
                state.count += piece.count
                let isRoom = state.count <= Self.room
                if !isRoom { state.maker = maker }
                defer { state.isAwaited = false }
                return (isRoom, false, state.isAwaited)
            }
            if isAwaited { onChange() }
            if isClosed { maker.resume(throwing: CancellationError()) } else if isRoom { maker.resume() }
        }
    }

    /// Nothing follows.
    func finish(_ end: Result<Void, any Error>) {
        let isAwaited = state.withLock { state in
            state.end = end
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if isAwaited { onChange() }
    }

    // MARK: - The reader

    func next() -> Next {
        let (next, maker) = state.withLock { state -> (Next, UnsafeContinuation<Void, any Error>?) in
            if !state.pieces.isEmpty {
                let piece = state.pieces.removeFirst()
                state.count -= piece.count
                guard state.count <= Self.room else { return (.piece(piece), nil) }
                defer { state.maker = nil }
                return (.piece(piece), state.maker)
            }
            switch state.end {
            case .success: return (.end, nil)
            case .failure(let error): return (.failed(error), nil)
            case nil:
                state.isAwaited = true
                return (.nothingYet, nil)
            }
        }
        maker?.resume()
        return next
    }

    /// Nobody reads any more.
    func close() {
        let maker = state.withLock { state in
            state.isClosed = true
            state.pieces = []
            defer { state.maker = nil }
            return state.maker
        }
        maker?.resume(throwing: CancellationError())
    }
}
