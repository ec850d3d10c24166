// Loads bodies and pieces into a chunk in memory, for code that cannot send from a file.

package import EventLoop

extension BodyPiece {
    /// The piece in memory; a piece of a file is read on the I/O pool.
    /// - Throws: `BodyError.file` or `.truncated`.
    package func load(on loop: isolated EventLoop) async throws(BodyError) -> (chunk: Chunk, range: Range<Int>) {
        switch self {
        case .bytes(let chunk, let range): return (chunk, range)
        case .file(let file, let offset, let count):
            return (try await file.load(offset: offset, count: count), 0..<count)
        }
    }
}

extension Body {
    /// The whole body in memory: for small ones. Waits for one that still grows.
    /// - Throws: `BodyError`: why it ends early, or `.tooSlow` where its start has left memory.
    package func load(on loop: isolated EventLoop) async throws(BodyError) -> Chunk {
        if let wholeChunk { return wholeChunk }
        guard let reader = makeReader(on: loop) else { throw .tooSlow }
        defer { reader.close() }
        var bytes: [UInt8] = []
        if let knownLength { bytes.reserveCapacity(Int(clamping: knownLength)) }
        while let piece = try await reader.next(maxBytes: 1 << 20, on: loop) {
            let part = try await piece.load(on: loop)
            part.chunk.withBytes { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[part.range])) }
        }
        return Chunk(bytes)
    }
}

extension SharedFile {
    /// Reads bytes on the I/O pool.
    func load(offset: Int64, count: Int) async throws(BodyError) -> Chunk {
        do {
            return try await pool.run { [self] in try read(offset: offset, count: count) }
        } catch let error as BodyError {
            throw error
        } catch {
            throw .source("\(error)")
        }
    }
}
