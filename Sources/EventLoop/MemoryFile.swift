// Memory that is also a file, so that `sendfile` sends its bytes without a copy.

import CLinux
import Glibc
import Synchronization

/// A file without a name (memfd_create(2)), mapped as a whole; unmapped and closed with its last user.
///
/// Sendable: nothing of it changes. Its user's rules apply to its bytes.
package final class MemoryFile: Sendable {
    package let descriptor: Int32
    /// Valid as long as the file is held, as many bytes as it has. The mapping never moves.
    package nonisolated(unsafe) let base: UnsafeMutableRawPointer
    private let count: Int

    private static let open = Atomic<Int>(0)

    /// Files at the same time: a quarter of the descriptors that the process may have (RLIMIT_NOFILE); the rest is for
    /// connections.
    package static let limit = DescriptorLimit.current.memoryFiles

    /// Nil if the limit is reached, or the kernel refuses: the caller then uses heap memory.
    package init?(count: Int, limit: Int = MemoryFile.limit) {
        guard count > 0 else { return nil }
        guard Self.open.add(1, ordering: .relaxed).oldValue < limit else {
            Self.open.subtract(1, ordering: .relaxed)
            return nil
        }
        let descriptor = c_linux_memory_file(count)
        // All pages at once: a fault for each would cost more than the copy that is saved.
        let base =
            descriptor < 0
            ? MAP_FAILED : mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0)
        guard let base, base != MAP_FAILED else {
            if descriptor >= 0 { close(descriptor) }
            Self.open.subtract(1, ordering: .relaxed)
            return nil
        }
        self.descriptor = descriptor
        self.base = base
        self.count = count
    }

    /// Where bytes of it begin.
    package func offset(of bytes: UnsafeRawBufferPointer) -> Int64 {
        bytes.baseAddress.map { Int64($0 - UnsafeRawPointer(base)) } ?? 0
    }

    deinit {
        munmap(base, count)
        close(descriptor)
        Self.open.subtract(1, ordering: .relaxed)
    }
}
