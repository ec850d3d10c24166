// Caches that give way while the system is short of memory, by themselves.

import CacheStore
import DownloadCore
import Foundation
import LibrarySupport
import Logging
import TestSupport
import Testing

@testable import Drydock

@Suite struct MemoryPressureTests {
    /// A kernel that says what the test wants.
    private final class Kernel: Sendable {
        private let state = Monitor((stalled: UInt64(0), isShort: false, looks: 0))

        var isShort: Bool {
            get { state.read { $0.isShort } }
            set { state.update { $0.isShort = newValue } }
        }

        var looks: Int { state.read { $0.looks } }

        func read() -> MemoryPressure.Reading {
            state.update { state in
                state.looks += 1
                // Whole seconds between looks that are milliseconds apart: tasks stand still all the time.
                if state.isShort { state.stalled += 1_000_000 }
                return MemoryPressure.Reading(stalled: state.stalled)
            }
        }

        func watcher() -> MemoryWatcher { MemoryWatcher(every: .milliseconds(5)) { self.read() } }
    }

    @Test func aCacheGivesWayWhileMemoryIsShort() async throws {
        let kernel = Kernel()
        let gone = Counter()
        let cache = MemoryCache<Int, Int>(costLimit: .max, countLimit: .max, watcher: kernel.watcher()) { _, _ in
            gone.add()
        }
        for number in 0..<100 { cache.insert(number, for: number, cost: 10) }
        #expect(await eventually { kernel.looks > 3 })
        #expect(cache.count == 100)
        kernel.isShort = true
        #expect(await eventually { cache.count == 0 })
        #expect(gone.value == 100)
        #expect(cache.evictions == 100)
        kernel.isShort = false
        // A look that has begun before may still find memory short.
        let seen = kernel.looks
        #expect(await eventually { kernel.looks > seen + 2 })
        cache.insert(1, for: 1, cost: 10)
        let now = kernel.looks
        #expect(await eventually { kernel.looks > now + 3 })
        #expect(cache.count == 1)
    }

    @Test func aShareGoesAtATime() async throws {
        let kernel = Kernel()
        let counts = Monitor<[Int]>([])
        let watcher = kernel.watcher()
        let cache = MemoryCache<Int, Int>(costLimit: .max, countLimit: .max, watcher: watcher, onEviction: nil)
        for number in 0..<100 { cache.insert(number, for: number) }
        // Told after the cache or before it, but once for each time.
        let member = watcher.add { _ in counts.update { $0.append(cache.count) } }
        kernel.isShort = true
        #expect(await eventually { counts.read { $0.count } >= 2 })
        withExtendedLifetime(member) {}
        #expect(counts.read { $0.prefix(2) }.allSatisfy { [100, 75, 56].contains($0) })
    }

    @Test func nobodyLooksForNobody() async throws {
        let kernel = Kernel()
        let watcher = kernel.watcher()
        var cache: MemoryCache<Int, Int>? = MemoryCache(costLimit: 1, countLimit: 1, watcher: watcher, onEviction: nil)
        #expect(watcher.count == 1)
        #expect(await eventually { kernel.looks > 1 })
        withExtendedLifetime(cache) {}
        cache = nil
        #expect(watcher.count == 0)
        let without = MemoryCache<Int, Int>(givesWayUnderPressure: false)
        #expect(without.count == 0)
        // The next one begins anew.
        let member = watcher.add { _ in }
        let seen = kernel.looks
        #expect(await eventually { kernel.looks > seen + 1 })
        withExtendedLifetime(member) {}
    }

    @Test("The memory tier of a manager gives way, unless it is told not to", arguments: [true, false])
    func theMemoryOfAManager(givesWay: Bool) async throws {
        let kernel = Kernel()
        let log = RecordedLog()
        let watcher = kernel.watcher()
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, String(repeating: "x", count: 100_000)) })
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.memory?.givesWayUnderPressure = givesWay
        let engine = try await DownloadEngine.open(configuration, log.logger, watcher: watcher)
        let sessions = DownloadSessions()
        for number in 0..<10 {
            let question = try DownloadRequest(origin.url("/\(number)"), configuration, DownloadOptions())
            _ = try await DownloadSession(question, engine, sessions).askForAll(upTo: 1 << 20)
        }
        let held = engine.core.store.statistics.memory.bytes
        #expect(held > 1_000_000)
        #expect(watcher.count == (givesWay ? 1 : 0))
        if givesWay {
            kernel.isShort = true
            #expect(await eventually { engine.core.store.statistics.memory.bytes == 0 })
            #expect(
                await eventually { log.all.contains { $0.hasPrefix("notice memory given back, tasks stood still") } }
            )
        } else {
            #expect(engine.core.store.statistics.memory.bytes == held)
        }
        await engine.stop()
        #expect(watcher.count == 0)
    }
}
