// The system calls that the disk tier makes on its files, in one place, so that tests can have each of them fail.

import Glibc

/// Each as in the manual: a negative result says that `errno` has the reason. All of them block.
package struct FileCalls: Sendable {
    package var open: @Sendable (_ path: String, _ flags: Int32, _ mode: UInt32) -> Int32
    package var read: @Sendable (_ file: Int32, _ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int
    package var write: @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int
    package var truncate: @Sendable (_ file: Int32, _ length: Int64) -> Int32
    package var rename: @Sendable (_ from: String, _ to: String) -> Int32
    package var unlink: @Sendable (_ path: String) -> Int32
    package var makeFolder: @Sendable (_ path: String) -> Int32
    /// An empty one.
    package var removeFolder: @Sendable (_ path: String) -> Int32
    /// The free bytes of a folder's file system; nil if they are unknown.
    package var available: @Sendable (_ folder: String) -> Int64?

    /// The calls of the kernel. They do not follow a symbolic link in the place of a file, and do not wait for a pipe.
    package static let real = FileCalls(
        open: { Glibc.open($0, $1 | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, $2) },
        read: { pread($0, $1.baseAddress, $1.count, off_t($2)) },
        write: { pwrite($0, $1.baseAddress, $1.count, off_t($2)) },
        truncate: { ftruncate($0, off_t($1)) },
        rename: { Glibc.rename($0, $1) },
        unlink: { Glibc.unlink($0) },
        makeFolder: { mkdir($0, 0o700) },
        removeFolder: { rmdir($0) },
        available: { folder in
            var status = statvfs()
            guard statvfs(folder, &status) == 0 else { return nil }
            let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(
                by: Int64(status.f_frsize)
            )
            return overflow ? .max : bytes
        }
    )
}
