// A stored file that stays open for the hot path: its head ready to write, its body ready for `sendfile`.

import HTTPCaching

/// An open stored file. Sendable: it never changes.
package final class ReadyFile: Sendable {
    /// The resident response, as for the memory tier, but with an empty body, which is never sent: the body is in the
    /// file.
    package let held: ResidentResponse
    /// The response, for the check of the invalidation rules.
    package let response: StoredResponse
    /// The name of the file.
    package let name: StoredFileName
    /// The hash of the key, as its tier has it.
    package let keyHash: UInt64
    private let file: SharedFile
    /// The offset of the body in the file.
    private let offset: Int64
    /// The length of the body, in bytes.
    package let length: Int

    /// Makes a ready file.
    /// - Returns: nil if the body is not in a file, or does not have the length in the head.
    package init?(_ held: ResidentResponse, _ response: StoredResponse, name: StoredFileName, keyHash: UInt64) {
        guard case .file(let file, let offset, let length) = response.body.source,
            response.head.bodyLength == length
        else { return nil }
        (self.held, self.response, self.name, self.keyHash) = (held, response, name, keyHash)
        (self.file, self.offset, self.length) = (file, offset, Int(length))
    }

    /// Whether a request for this key selects the response.
    /// - Parameters:
    ///   - keyBytes: the key in the form of `CacheKey.bytes`.
    ///   - selects: returns whether the request selects a response that varies.
    package func answers(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> Bool {
        held.keyBytes.elementsEqual(keyBytes) && (!held.varies || selects(held))
    }

    /// The file and offset of a range of the body for `sendfile`; nil if it is more than one piece, or has to be read
    /// from the disk first. Any thread; no disk access.
    package func piece(_ range: Range<Int>) -> (file: SharedFile, offset: Int64)? {
        let start = offset + Int64(range.lowerBound)
        guard file.pieceCount(at: start, count: Int64(range.count)) == range.count,
            file.isReady(offset: start, count: range.count)
        else { return nil }
        return (file, start)
    }
}
