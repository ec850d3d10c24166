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

@Suite struct DescriptorLimitTests {
    @Test func `each has its share, and all of them together are no more than there are`() {
        for count in [64, 128, 256, 1024, 4096, 20_000, 65_536, 1 << 30] {
            let limit = DescriptorLimit(count)
            #expect(limit.connections >= 1 && limit.storedFiles <= 256 && limit.refusals >= 16)
            let all = limit.memoryFiles + limit.storedFiles + limit.refusals + 2 * limit.connections
            #expect(count < 256 || all + DescriptorLimit.reserve <= count, "\(count)")
        }
        #expect(DescriptorLimit(1024).connections == 304 && DescriptorLimit(65_536).connections == 23_392)
        // Where the kernel does not say, nothing is bounded, and nothing is kept as a file.
        #expect(DescriptorLimit(0).connections == .max && DescriptorLimit(0).memoryFiles == 0)
    }

    @Test(arguments: [1, 48, 303, 1000, 10_000, 9_999_999, 10_000_000])
    func `the limit that is said to be enough is, and is not much more`(connections: Int) {
        let needed = DescriptorLimit.needed(for: connections)
        #expect(DescriptorLimit(needed).connections >= connections)
        // Small ones have fewer files, which is not counted.
        #expect(connections < 1000 || DescriptorLimit(needed - 640).connections < connections)
    }
}
