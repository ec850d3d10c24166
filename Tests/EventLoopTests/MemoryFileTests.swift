// Files in memory: one set of bytes by pointer and by descriptor, bounded in number.

import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct MemoryFileTests {
    @Test func `what is written by the pointer is read by the descriptor`() throws {
        let file = try #require(MemoryFile(count: 100_001))
        for position in 0..<100_001 {
            file.base.storeBytes(of: UInt8(truncatingIfNeeded: position &* 7), toByteOffset: position, as: UInt8.self)
        }
        var bytes = [UInt8](repeating: 0, count: 200_000)
        #expect(pread(file.descriptor, &bytes, bytes.count, 0) == 100_001)
        #expect(bytes[..<100_001].indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0 &* 7) })
        #expect(fcntl(file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }

    @Test func `there are no more than may be, and none of no bytes`() {
        #expect(MemoryFile(count: 10, limit: 0) == nil)
        #expect(MemoryFile(count: 0) == nil)
        #expect(MemoryFile.limit > 0)
    }

    @Test func `descriptor and memory go with the last user`() async throws {
        let before = try openDescriptors()
        for _ in 0..<600 { _ = try #require(MemoryFile(count: 1 << 20)) }
        // Other tests of the process hold theirs only for a while.
        #expect(await eventually { ((try? openDescriptors()) ?? .max) < before + 300 })
    }
}
