// The limits of this process and their use: descriptors and their division; resident memory, and the return of freed
// memory.

import CLinux
import Glibc

/// A limit of open files (RLIMIT_NOFILE), and its division.
package struct DescriptorLimit: Sendable, Equatable {
    /// The descriptors for the daemon's own needs, whatever clients do: its loops, its logs, the files of the disk
    /// tier's index, and the admin socket with its clients.
    package static let reserve = 64

    /// The limit in descriptors; 0 if the kernel does not report it.
    package let count: Int

    /// - Parameter count: the number of descriptors.
    package init(_ count: Int) { self.count = max(0, count) }

    /// The present RLIMIT_NOFILE. Any thread.
    package static var current: DescriptorLimit {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return DescriptorLimit(0) }
        return DescriptorLimit(Int(clamping: limit.rlim_cur))
    }

    /// Raises the limit of this process as far as is possible without privileges, to the hard limit. Call it before a
    /// share of the limit is used; a limit that cannot be raised stays.
    package static func raise() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    // MARK: - Who gets how many

    /// The most bodies in memory that are files at the same time.
    package var memoryFiles: Int { count / 4 }

    /// The most files of the disk tier that stay open.
    package var storedFiles: Int { min(256, count / 16) }

    /// The most connections that are only answered with a refusal.
    package var refusals: Int { count == 0 ? .max : max(16, count / 32) }

    /// The most connections of clients: each may need a second descriptor, for its origin.
    package var connections: Int {
        count == 0 ? .max : max(1, (count - memoryFiles - storedFiles - refusals - Self.reserve) / 2)
    }

    /// A limit with room for this many connections of clients, a little more than the least one.
    package static func needed(for connections: Int) -> Int {
        // After its quarter and its 32nd, 23 of 32 parts of a limit are left.
        let used = 2 * min(max(1, connections), .max >> 8) + reserve + 256
        return (used * 32 + 22) / 23
    }
}

// MARK: - Memory

/// The memory of this process: the resident bytes, and the return of freed memory to the kernel.
package enum ProcessMemory {
    /// Returns free pages of the heap to the kernel. Takes milliseconds for each hundred MiB, so it must not be called
    /// on a loop.
    package static func giveBack() { c_linux_trim() }

    /// Lets the heap keep some freed memory: otherwise the pages of transfer buffers would be returned to the kernel
    /// and mapped again with each request. Only for the daemon's own process.
    package static func keepSome() { c_linux_keep_freed(8 << 20, 1 << 20) }

    /// The resident bytes that no file on a disk backs (RssAnon, and RssShmem for ``MemoryFile``); 0 if the kernel does
    /// not report them. Reads a file of /proc.
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
