// The names that the parts of the disk tier have for one stored file.

package import CacheStore
import HTTPCaching

/// One file of the disk tier, as the table knows it.
package struct DiskEntry: Sendable, Equatable {
    package let key: CacheKey
    let name: StoredFileName
    package let fileID: UInt64
    /// In bytes.
    package let bodyLength: Int64
    /// When the response arrived, Unix seconds.
    package let storedAt: Int64
    /// The entry is a guess from the name, while the table is incomplete: the file may not exist.
    let isGuess: Bool
}

extension DiskEntry {
    init(key: CacheKey, slot: DiskTable.Slot) {
        self.init(
            key: key,
            name: slot.name,
            fileID: slot.fileID,
            bodyLength: slot.bodyLength,
            storedAt: slot.storedAt,
            isGuess: false
        )
    }

    init(key: CacheKey, guess name: StoredFileName) {
        self.init(key: key, name: name, fileID: 0, bodyLength: 0, storedAt: 0, isGuess: true)
    }
}

/// The head in a file of the disk tier.
struct DiskHead: Sendable {
    let entry: DiskEntry
    let head: StoredHead
}

/// One file of the disk tier, as the index names it.
struct DiskFileID: Sendable, Hashable {
    let keyHash: UInt64
    let name: StoredFileName
    /// A file that has replaced it has another id.
    let fileID: UInt64
}
