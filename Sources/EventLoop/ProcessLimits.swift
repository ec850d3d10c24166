// What this process may have and has: descriptors, and who gets how many of them; resident memory, and how freed memory
// returns.

import CLinux
import Glibc

/// A limit of open files (RLIMIT_NOFILE), and how it is divided.
package struct DescriptorLimit: Sendable, Equatable {
    /// Kept for what the daemon needs whatever clients do: its loops, its logs, the files of the disk tier's index, and
    /// the admin socket with those who use it.
    package static let reserve = 64

    /// The limit in descriptors; 0 if the kernel does not say.
    package let count: Int

    /// - Parameter count: of descriptors.
    package init(_ count: Int) { self.count = max(0, count) }

    /// RLIMIT_NOFILE as it is now. Any thread.
    package static var current: DescriptorLimit {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return DescriptorLimit(0) }
        return DescriptorLimit(Int(clamping: limit.rlim_cur))
    }

    /// Raises the limit of this process as far as it may without privileges: to the hard limit. Before anybody has asked
    /// for a share of it; what cannot be raised stays.
    package static func raise() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    // MARK: - Who gets how many

    /// Bodies in memory that are files at the same time.
    package var memoryFiles: Int { count / 4 }

    /// Files of the disk tier that stay open.
    package var storedFiles: Int { min(256, count / 16) }

    /// Connections that are answered only by why they are refused.
    package var refusals: Int { count == 0 ? .max : max(16, count / 32) }

    /// Connections of clients: each may need a second descriptor, for its origin.
    package var connections: Int {
        count == 0 ? .max : max(1, (count - memoryFiles - storedFiles - refusals - Self.reserve) / 2)
    }

    /// A limit that has room for so many connections of clients, a little more than the least one.
    package static func needed(for connections: Int) -> Int {
        // What is left of a limit after its quarter and its 32nd is 23 of 32 parts.
        let used = 2 * min(max(1, connections), .max >> 8) + reserve + 256
        return (used * 32 + 22) / 23
    }
}

// MARK: - Memory

/// The memory of this process: how much is resident, and how freed memory returns to the kernel.
package enum ProcessMemory {
    /// Gives free pages of the heap back. Takes milliseconds for each hundred MiB: not on a loop.
    package static func giveBack() { c_linux_trim() }

    /// Lets the heap keep some freed memory: otherwise the pages of transfer buffers would return to the kernel and
    /// come back with each request. For the daemon's own process only.
    package static func keepSome() { c_linux_keep_freed(8 << 20, 1 << 20) }

    /// Resident bytes that no file of a disk backs (RssAnon, and RssShmem for ``MemoryFile``); 0 where the kernel does
    /// not say. Reads a file of /proc.
    package static var anonymous: Int {
        let file = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return 0 }
        var sum = 0
        for line in String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count > 1, words[0] == "RssAnon:" || words[0] == "RssShmem:" else { continue }
            sum += (Int(words[1]) ?? 0) * 1024
        }
        return sum
    }
}
