// How many descriptors the process may have, and who gets how many of them.

import Glibc

/// A limit of open files (RLIMIT_NOFILE), and how it is divided.
package struct DescriptorLimit: Sendable, Equatable {
    /// Kept for what the daemon needs whatever clients do: its loops, its logs, the files of the disk tier's index, and
    /// the admin socket with those who use it.
    package static let reserve = 64

    /// In descriptors; 0 where the kernel does not say.
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
