// What tells whether a file is the same as before, and has the same content.

import Glibc

/// The identity of a file's content at one time: device, inode, size and modification time.
package struct FileSignature: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// Looks at the file, through symbolic links; nil if there is none. Blocks.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// The signature of each of the files that exists. Blocks.
    package static func all(of paths: [String]) -> [String: FileSignature] {
        var signatures: [String: FileSignature] = [:]
        for path in paths { signatures[path] = FileSignature(path: path) }
        return signatures
    }
}
