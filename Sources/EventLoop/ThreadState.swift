// What the kernel says that a thread of this process does.

import Glibc

/// The state of a thread, as /proc/self/task/NUMBER/stat tells it.
package enum ThreadState: Sendable, Equatable {
    /// It computes, or waits for a processor.
    case running
    /// It waits for a disk and cannot be interrupted.
    case disk
    /// It waits for anything else: for a lock, a socket, a pipe, a time.
    case waiting

    /// Nil if there is no such thread, or /proc cannot be read. No disk access.
    package static func of(_ number: Int32) -> ThreadState? {
        let file = open("/proc/self/task/\(number)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        // NUMBER (NAME) STATE: the name may have parentheses, the state has none.
        guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else { return nil }
        switch bytes[end + 2] {
        case UInt8(ascii: "R"): return .running
        case UInt8(ascii: "D"): return .disk
        default: return .waiting
        }
    }
}
