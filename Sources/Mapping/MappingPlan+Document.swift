// Maps a document that is there as a whole, whatever it is written in: JSON, or a property list as XML or binary.

extension MappingPlan {
    /// The mapped document.
    /// - Parameters:
    ///   - bytes: the document.
    ///   - limit: bytes that it may have; what comes out may have eight times as many.
    /// - Throws: that it cannot be mapped, with the key path.
    package func map(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(MappingFailure) -> [UInt8] {
        guard bytes.count <= limit else { throw MappingFailure("the document has more than \(limit) bytes") }
        guard Self.isPropertyList(bytes) else { return try mapJSON(bytes, limit: limit) }
        let text: [UInt8]
        if bytes.first == UInt8(ascii: "b") {
            var reader = BinaryPropertyList(bytes, limit: limit * 8)
            text = try reader.json()
        } else {
            var reader = XMLPropertyList(bytes)
            text = try reader.json()
        }
        return try text.withUnsafeBytes { text -> Result<[UInt8], MappingFailure> in
            do throws(MappingFailure) { return .success(try mapJSON(text, limit: limit)) } catch {
                return .failure(error)
            }
        }.get()
    }

    private func mapJSON(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(MappingFailure) -> [UInt8] {
        // A document is never left out.
        try DocumentMapper.map(bytes, root, limit: limit * 8) ?? JSONText.null
    }

    /// Whether a document with this beginning is no JSON, but may be a property list: such a one has to be there as a
    /// whole.
    package static func isPropertyList(_ start: UnsafeRawBufferPointer) -> Bool {
        let text = start.starts(with: [0xEF, 0xBB, 0xBF] as [UInt8]) ? start.dropFirst(3) : start[...]
        return text.first { !JSONSkipper.isSpace($0) } == UInt8(ascii: "<") || start.starts(with: "bplist0".utf8)
    }
}
