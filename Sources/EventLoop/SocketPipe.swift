// From one socket to another without a copy through the process.

import CLinux
import Glibc

/// A pipe that is filled from one socket and emptied into another, within one callback: between
/// these it is empty. Loop-bound.
package final class SocketPipe {
    /// In bytes; a part of the pages may be filled in part.
    private static let size: Int32 = 1 << 20

    private let entry: Int32
    private let exit: Int32

    /// Nil if the kernel refuses a pipe.
    package init?() {
        var ends: [Int32] = [-1, -1]
        guard c_linux_pipe(&ends, Self.size) == 0 else { return nil }
        exit = ends[0]
        entry = ends[1]
    }

    deinit {
        close(entry)
        close(exit)
    }

    /// Takes what waits in a socket, at most `count` bytes. Nil where the kernel cannot do that with such a socket, or
    /// has no memory for it: it is to be read.
    package func fill(from socket: Int32, count: Int) -> IOResult? {
        let result = Socket.result(isRead: true) { c_linux_splice(socket, entry, count) }
        switch result {
        case .failed(EINVAL), .failed(ENOSYS), .failed(EPERM), .failed(EOPNOTSUPP), .failed(ENOMEM): return nil
        default: return result
        }
    }

    /// Moves at most `count` bytes from the pipe to a socket.
    package func empty(into socket: Int32, count: Int) -> IOResult {
        Socket.result(isRead: false) { c_linux_splice(exit, socket, count) }
    }

    /// Reads `count` bytes that a socket did not take; fewer only if the pipe has fewer.
    package func read(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let room = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count]
                )
                guard
                    case .bytes(let read) = Socket.result(
                        isRead: true,
                        { Glibc.read(exit, room.baseAddress, room.count) }
                    )
                else { return }
                filled += read
            }
        }
    }
}

@available(*, unavailable) extension SocketPipe: Sendable {}
