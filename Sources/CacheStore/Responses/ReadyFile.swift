// A stored file that stays open, as the hot path wants it: its head ready to write, its body ready for `sendfile`.

import HTTPCaching

/// Sendable: nothing in it changes.
package final class ReadyFile: Sendable {
    /// The response as the memory tier would hold it, but for its body, which is in the file: its own
    /// is empty, and never sent.
    package let held: ResidentResponse
    /// The response, for the check of the invalidation rules.
    package let response: StoredResponse
    /// The name of the file.
    package let name: StoredFileName
    /// The hash of the key, as its tier has it.
    package let keyHash: UInt64
    private let file: SharedFile
    /// Where the body begins in the file.
    private let offset: Int64
    /// The length of the body, in bytes.
    package let length: Int

    /// - Returns: nil where the body is not in a file, or not of the length that the head says.
    package init?(_ held: ResidentResponse, _ response: StoredResponse, name: StoredFileName, keyHash: UInt64) {
        guard case .file(let file, let offset, let length) = response.body.source,
            response.head.bodyLength == length
        else { return nil }
        (self.held, self.response, self.name, self.keyHash) = (held, response, name, keyHash)
        (self.file, self.offset, self.length) = (file, offset, Int(length))
    }

    /// Whether it is what a request for this key selects.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - selects: asked where the response varies.
    package func answers(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> Bool {
        held.keyBytes.elementsEqual(keyBytes) && (!held.varies || selects(held))
    }

    /// Bytes of the body that `sendfile` can take now; nil where they are more than one piece, or have to be read from
    /// the disk first. Any thread; asks no disk.
    package func piece(_ range: Range<Int>) -> (file: SharedFile, offset: Int64)? {
        let start = offset + Int64(range.lowerBound)
        guard file.pieceCount(at: start, count: Int64(range.count)) == range.count,
            file.isReady(offset: start, count: range.count)
        else { return nil }
        return (file, start)
    }
}
