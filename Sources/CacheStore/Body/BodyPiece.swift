// The results of reading a body: pieces, the end, or an error.

package import EventLoop

/// One contiguous part of a body.
package enum BodyPiece: Sendable {
    /// Bytes in memory.
    case bytes(Chunk, Range<Int>)
    /// Bytes of a file, at most 1 MiB, verified and in the page cache: ready for `sendfile`.
    case file(SharedFile, offset: Int64, count: Int)

    package var count: Int {
        switch self {
        case .bytes(_, let range): range.count
        case .file(_, _, let count): count
        }
    }
}

/// The result of a read that does not wait.
package enum BodyStep: Sendable {
    case piece(BodyPiece)
    /// All bytes have been read, and the body is complete.
    case end
    /// Nothing to read now: ``BodyReader/next(maxBytes:on:)`` waits for it.
    case wait
    case failed(BodyError)
}

/// Whether a body still grows.
package enum BodyEnd: Sendable, Equatable {
    case open
    /// In bytes.
    case complete(length: Int64)
    case failed(BodyError)
}

/// Why a body ends before its last byte.
package enum BodyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The reader's task was cancelled, or the reader closed.
    case cancelled
    /// The reader was more than a window behind the fastest one for too long, or its next bytes have left memory.
    case tooSlow
    /// The source ended before its declared length.
    case truncated
    /// The body has no reader left, or its writer was freed without ending it.
    case abandoned
    /// The source failed; the text says how.
    case source(String)
    /// A stored block does not match its checksum: the stored response must be fetched again.
    case damaged(block: Int)
    /// A file could not be read or written.
    case file(SystemError)

    package var description: String {
        switch self {
        case .cancelled: "the reader left"
        case .tooSlow: "the reader was too far behind the others"
        case .truncated: "the source ended before its declared length"
        case .abandoned: "the fill was given up"
        case .source(let detail): detail
        case .damaged(let block): "block \(block) of the stored body does not match its checksum"
        case .file(let error): error.description
        }
    }
}

/// Whether a writer should continue after an append; its bytes were taken in either case.
package enum WriteVerdict: Sendable, Equatable {
    case `continue`
    /// Stop until ``BodyWriter/onDrain`` is called.
    case pause
}
