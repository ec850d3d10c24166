// A file system that is small, and is really full: out of inodes and out of bytes as the kernel says it.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

/// In memory; gone with the object.
private final class SmallFileSystem: Sendable {
    private let folder = Folder()
    private let isMounted: Bool
    var path: String { folder.path }

    /// - Parameter options: of tmpfs.
    init(_ options: String) {
        isMounted = system("mount -t tmpfs -o \(options) tmpfs '\(folder.path)' 2>/dev/null") == 0
    }

    deinit { if isMounted { _ = system("umount -l '\(folder.path)'") } }

    /// Only root may mount, and not in every container.
    static let isPossible = geteuid() == 0 && SmallFileSystem("size=1m").isMounted

    /// Takes all bytes that are left.
    func fill() {
        let file = open("\(path)/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        for part in [65536, 4096, 512, 1] {
            let bytes = [UInt8](repeating: 1, count: part)
            while write(file, bytes, part) == part {}
        }
    }

    func empty() { unlink("\(path)/filler") }
}

@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: SmallFileSystem.isPossible, "needs root, and a container that lets it mount a small file system")
)
struct SmallFileSystemTests {
    let told = Told()

    private func open(_ system: SmallFileSystem, _ pool: IOPool) async throws -> DiskTier {
        try await DiskTier.open(path: "\(system.path)/cache", limits: ample, pool: pool) { [told] in told.note($0) }
    }

    @Test func `out of inodes, the longest unused make room`() async throws {
        let system = SmallFileSystem("size=64m,nr_inodes=100")
        try await withPool { pool, _ in
            let tier = try await open(system, pool)
            for number in 0..<150 {
                try await tier.store(pattern(2000), key(number))
                #expect(await tier.bytes(key(number)) == pattern(2000))
            }
            #expect(tier.statistics.objects > 15 && tier.statistics.objects < 34)
            #expect(Folder.files(below: "\(system.path)/cache/objects").count == tier.statistics.objects)
            #expect(told.kinds == [.full], "\(told.all)")
            #expect(told.all.first?.text.contains("ENOSPC") == true)
            tier.close()
        }
    }

    @Test func `out of bytes, the longest unused make room, and where there is nothing to evict, nothing is stored`()
        async throws
    {
        let system = SmallFileSystem("size=8m")
        try await withPool { pool, loop in
            let tier = try await open(system, pool)
            for number in 0..<20 { try await tier.store(pattern(100_000), key(number)) }
            system.fill()
            for number in 20..<30 {
                try await tier.store(pattern(100_000), key(number))
                #expect(await tier.bytes(key(number)) == pattern(100_000))
            }
            #expect(tier.statistics.objects > 5 && tier.statistics.objects <= 20)
            for number in 0..<30 { tier.remove(key(number)) }
            await tier.remover.flush()
            system.fill()
            await #expect(throws: DiskTierError.self) { try await tier.store(pattern(100_000), key(40)) }
            #expect(!tier.room.mayTake(200_000) && Set(told.kinds).isSubset(of: [.full, .index, .unwritable, .rules]))
            // Behind.
            #expect(await eventually { Folder.names(in: "\(system.path)/cache/tmp").isEmpty })
            #expect(tier.parts.state.withLock { $0.table.reserved } == 0)
            system.empty()
            try await tier.store(pattern(100_000), key(41))
            #expect(await tier.bytes(key(41)) == pattern(100_000))
            tier.close()
        }
    }
}
