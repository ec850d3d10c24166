// The body of a response byte by byte, and line by line.

import FoundationEssentials

extension ResponseBody {
    /// The bytes one by one, read on where an earlier iteration of the body stopped.
    public var bytes: Bytes { Bytes(body: self) }

    /// The lines, without the LF or CR LF that ends each; the last one may have none. Bytes that are no UTF-8 become
    /// U+FFFD. A line is held as a whole, however long it is.
    public var lines: Lines { Lines(body: self) }

    /// The bytes of a body, one by one.
    public struct Bytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias Failure = DownloadError

        fileprivate let body: ResponseBody

        /// Goes on with the next piece of the body; what an earlier iterator had of a piece is not read again.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: body.makeAsyncIterator()) }

        /// The bytes of a body under way.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var pieces: ResponseBody.AsyncIterator
            private var piece = Data()
            private var position = 0

            fileprivate init(pieces: ResponseBody.AsyncIterator) { self.pieces = pieces }

            /// The next byte; nil at the end.
            public mutating func next(
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
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String
        public typealias Failure = DownloadError

        fileprivate let body: ResponseBody

        /// Goes on with the next piece of the body; what an earlier iterator had of a piece is not read again.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: body.makeAsyncIterator()) }

        /// The lines of a body under way.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var pieces: ResponseBody.AsyncIterator
            private var piece = Data()
            /// What of the piece has not been read.
            private var rest = 0..<0
            private var line: [UInt8] = []
            private var isOver = false

            fileprivate init(pieces: ResponseBody.AsyncIterator) { self.pieces = pieces }

            /// The next line; nil at the end.
            public mutating func next(
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
