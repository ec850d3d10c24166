// A stored body without its content coding, decoded while it is read: never more of it is in memory than its window.

import CacheStore
import Content
import EventLoop

/// Reads coded bytes and writes decoded ones, as long as somebody reads these. Loop-bound.
final class DecodedBody {
    /// Bytes of the decoded body that wait for its reader.
    private static let window = 256 * 1024
    /// Steps of at most 32 KiB between two turns of the loop.
    private static let stepsAtOnce = 8

    private let source: BodyReader
    private let writer: BodyWriter
    private let decoder: ContentDecoder
    private var isAbandoned = false
    private var waiter: UnsafeContinuation<Void, Never>?

    private init(_ source: BodyReader, _ writer: BodyWriter, _ coding: ContentCoding) {
        self.source = source
        self.writer = writer
        decoder = ContentDecoder([coding])
    }

    /// A reader of the decoded body; nil where the coded one cannot be read from its start.
    static func reader(
        of body: Body,
        _ coding: ContentCoding,
        _ budget: BodyBudget,
        on loop: isolated EventLoop
    ) -> BodyReader? {
        guard let source = body.makeReader(on: loop) else { return nil }
        let options = GrowingBodyOptions(window: window, budget: budget, keepsStart: false)
        let (decoded, writer) = Body.growing(options, on: loop)
        guard let reader = decoded.makeReader(on: loop) else { return nil }
        let made = DecodedBody(source, writer, coding)
        writer.onDrain = { [weak made] in made?.wake() }
        writer.onAbandoned = { [weak made] in made?.abandon() }
        Task.immediate(executorPreference: loop.taskExecutor) { await made.run(on: loop) }
        return reader
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    private func abandon() {
        isAbandoned = true
        source.close()
        wake()
    }

    private func run(on loop: isolated EventLoop) async {
        defer { source.close() }
        do throws(BodyError) {
            var hasBegun = false
            while let piece = try await source.next(maxBytes: 64 * 1024, on: loop) {
                hasBegun = true
                let part = try await piece.load(on: loop)
                try await write(part.chunk, part.range, on: loop)
            }
            guard !hasBegun || decoder.isAtEnd else { throw .truncated }
            writer.finish()
        } catch {
            writer.fail(error)
        }
    }

    /// Decodes all of some bytes; waits where the reader is slow.
    private func write(_ chunk: Chunk, _ range: Range<Int>, on loop: isolated EventLoop) async throws(BodyError) {
        // The caller holds the chunk.
        var isFull = try decode(UnsafeRawBufferPointer(rebasing: chunk.bytes[range]))
        while decoder.isStopped {
            if isFull, !isAbandoned {
                await withUnsafeContinuation { waiter = $0 }
            } else {
                await Task.yield()
            }
            if isAbandoned { throw .cancelled }
            // What was left of the chunk is the decoder's now.
            isFull = try decode(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        if isAbandoned { throw .cancelled }
    }

    /// Decodes until the reader is behind, or it is the turn of others.
    /// - Returns: whether the reader is behind.
    private func decode(_ bytes: UnsafeRawBufferPointer) throws(BodyError) -> Bool {
        var (isFull, steps) = (false, 0)
        do throws(ContentDecoder.Malformed) {
            try decoder.push(bytes) {
                isFull = writer.append($0) == .pause
                steps += 1
                return !isFull && steps < Self.stepsAtOnce
            }
        } catch {
            throw .source("the stored body is not in the coding that its Content-Encoding names")
        }
        return isFull
    }
}

@available(*, unavailable) extension DecodedBody: Sendable {}
