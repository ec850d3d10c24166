// Descriptors that one process passes to another over a unix socket (unix(7), SCM_RIGHTS).

import CLinux
import Glibc

/// Messages with descriptors over a unix socket. The calls block as long as the socket does.
package enum PassedFiles {
    /// The most descriptors of one message.
    package static let most = Int(c_linux_most_files)

    /// Sends bytes with copies of descriptors; the caller's stay its own.
    /// - Throws: `SystemError`; a stream may have sent a part then.
    package static func send(_ bytes: [UInt8], with files: [Int32] = [], to socket: Int32) throws(SystemError) {
        var sent = 0
        repeat {
            // The descriptors go with the first byte.
            let passed = sent == 0 ? files : []
            let count = bytes.withUnsafeBytes { buffer in
                c_linux_send_files(
                    socket,
                    buffer.baseAddress.map { $0 + sent },
                    buffer.count - sent,
                    passed,
                    UInt32(passed.count)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError("send to the other process") }
            sent += count
        } while sent < bytes.count
    }

    /// Receives the next bytes, at most `most`, with the descriptors that came with them, which are the caller's from then
    /// on. No bytes: the other side has ended.
    /// - Throws: `SystemError`; no descriptor is left open then.
    package static func receive(
        atMost most: Int,
        from socket: Int32
    ) throws(SystemError) -> (bytes: [UInt8], files: [Int32]) {
        var bytes = [UInt8](repeating: 0, count: most)
        var files = [Int32](repeating: -1, count: Self.most)
        while true {
            var filesCount: UInt32 = 0
            let count = bytes.withUnsafeMutableBytes {
                c_linux_receive_files(socket, $0.baseAddress, $0.count, &files, &filesCount)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError("receive from the other process") }
            return (Array(bytes.prefix(count)), Array(files.prefix(Int(filesCount))))
        }
    }

    /// Ends the blocking calls of a socket after so many seconds without a byte; 0 for never.
    package static func boundWaits(of socket: Int32, seconds: Int) {
        c_linux_bound_waits(socket, Int32(clamping: seconds))
    }

    /// An empty file that is nowhere but in memory; nil if it cannot be made.
    package static func memoryFile() -> Int32? {
        let descriptor = c_linux_memory_file(0)
        return descriptor < 0 ? nil : descriptor
    }

    /// Makes a socket block, which has been non-blocking.
    package static func makeBlocking(_ socket: Int32) {
        let flags = fcntl(socket, F_GETFL)
        if flags >= 0 { _ = fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) }
    }
}
