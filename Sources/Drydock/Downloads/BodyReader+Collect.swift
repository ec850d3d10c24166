// The whole body of an answer in one piece, read without leaving its loop.

import CacheStore
import EventLoop
import FoundationEssentials

extension BodyReader {
    /// All bytes that are still to come.
    /// - Parameters:
    ///   - limit: with more bytes than these it stops.
    ///   - expected: bytes of the whole, where anybody knows.
    func collect(
        upTo limit: Int,
        expected: Int64?,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> Data {
        var data = Data()
        if let expected { data.reserveCapacity(Int(clamping: expected)) }
        while data.count <= limit, let piece = try await next(maxBytes: 1 << 20, on: loop) {
            let part = try await piece.load(on: loop)
            part.chunk.withBytes { data.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[part.range])) }
        }
        return data
    }
}
