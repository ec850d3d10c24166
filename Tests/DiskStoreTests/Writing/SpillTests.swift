// From a fill to the disk: what streams through a body is what the disk tier gives back; what was cut is not there.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import LoopSupport
import StoreSupport
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct SpillTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }

    private func transfer(
        _ tier: DiskTier,
        total: Int,
        stopAt: Int? = nil,
        on loop: EventLoop
    ) async -> Result<ReadResult?, DiskTierError> {
        await onLoop(loop) { loop in
            let spill = tier.writer.makeSpill()
            let options = GrowingBodyOptions(window: 64 * 1024, spill: spill, budget: BodyBudget())
            let (body, writer) = Body.growing(options, on: loop)
            let pump = Pump(writer, total: total, stopAt: stopAt)
            await pump.finish(on: loop)
            do {
                try await tier.commit(body, spill: spill, key: key(1), head: storedHead())
                guard let reader = body.makeReader(on: loop) else { return .success(nil) }
                return .success(await readAll(reader, on: loop))
            } catch {
                return .failure((error as? DiskTierError) ?? .closed)
            }
        }
    }

    @Test(arguments: [0, 10, 100_000, 1_500_001])
    func `a fill is stored as it came, and its body can still be joined`(total: Int) async throws {
        try await withPool { pool, loop in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let late = try await transfer(tier, total: total, on: loop).get()
            #expect(late?.count == total)
            #expect(late?.wrongAt == nil && late?.error == nil)
            let response = try #require(try await tier.load(key(1)))
            let read = try #require(await readAll(response.body, on: loop))
            #expect(read.count == total)
            #expect(read.wrongAt == nil && read.error == nil)
            #expect(Folder.names(in: "\(path)/tmp").isEmpty)
            let size = Folder.files(below: "\(path)/objects").reduce(0) { $0 + contents($1).count }
            #expect(tier.statistics.bytes == (Int64(size) + 4095) / 4096 * 4096)
            #expect(tier.parts.state.withLock { $0.table.reserved } == 0)
            tier.close()
        }
    }

    @Test func `a body that cannot fit drives nothing out`() async throws {
        try await withPool { pool, loop in
            let limits = DiskLimits(size: 4 << 20, maxObject: 4 << 20, minFree: 0)
            let tier = try await DiskTier.open(path: path, limits: limits, pool: pool)
            for number in 1...3 { _ = try await tier.store([UInt8](repeating: 7, count: 900_000), key(number)) }
            let spill = tier.makeSpill(expected: 8 << 20)
            let piece = Chunk([UInt8](repeating: 1, count: 100_000))
            await #expect(throws: BodyError.self) {
                try await pool.run { try spill.appendNow([(piece, 0..<piece.capacity)]) }
            }
            #expect(tier.statistics.objects == 3)
            #expect(tier.statistics.evictions == 0)
            tier.close()
        }
    }

    @Test(arguments: [0, 50_000, 1_000_000])
    func `a cut fill is never stored`(stopAt: Int) async throws {
        try await withPool { pool, loop in
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            let result = await transfer(tier, total: 1_500_000, stopAt: stopAt, on: loop)
            guard case .failure(.refused(.source("cut"))) = result else {
                Issue.record("\(result)")
                return
            }
            #expect(tier.lookup(key(1)).isEmpty)
            #expect(Folder.files(below: "\(path)/objects").isEmpty)
            // The temporary file goes behind.
            #expect(await eventually { Folder.names(in: "\(path)/tmp").isEmpty })
            #expect(tier.parts.state.withLock { $0.table.reserved } == 0)
            tier.close()
        }
    }

    @Test func `a fill that outgrows max_object goes on and is not stored`() async throws {
        try await withPool { pool, loop in
            let limits = DiskLimits(size: 1 << 30, maxObject: 500_000, minFree: 0)
            let tier = try await DiskTier.open(path: path, limits: limits, pool: pool)
            let read = await onLoop(loop) { loop in
                let spill = tier.writer.makeSpill()
                let options = GrowingBodyOptions(window: 64 * 1024, spill: spill, budget: BodyBudget())
                let (body, writer) = Body.growing(options, on: loop)
                guard let reader = body.makeReader(on: loop) else { return ReadResult() }
                let pump = Pump(writer, total: 2_000_000)
                pump.run()
                let read = await readAll(reader, on: loop)
                await #expect(throws: DiskTierError.self) {
                    try await tier.commit(body, spill: spill, key: key(1), head: storedHead())
                }
                return read
            }
            #expect(read.count == 2_000_000)
            #expect(read.wrongAt == nil && read.error == nil)
            #expect(tier.lookup(key(1)).isEmpty)
            tier.close()
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a random sequence of operations and restarts behaves like a dictionary`(seed: UInt64) async throws {
        try await withPool { pool, loop in
            var random = SeededRandom(state: seed)
            var tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
            var model: [Int: (size: Int, tag: String)] = [:]
            for step in 0..<300 {
                let number = Int.random(in: 0..<12, using: &random)
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<6:
                    let size = [0, 5, 4096, 70_000, 300_000].randomElement(using: &random) ?? 0
                    try await tier.store(pattern(size), key(number), head: storedHead([("ETag", "\"\(step)\"")]))
                    model[number] = (size, "\"\(step)\"")
                case 6, 7:
                    tier.remove(key(number))
                    model[number] = nil
                case 8, 9:
                    // A file that was only guessed is known when it has been read.
                    let loaded = try? await tier.load(key(number))
                    guard loaded != nil, let entry = tier.lookup(key(number)).first else { continue }
                    #expect(await tier.writer.freshen(entry, head: storedHead([("ETag", "\"f\(step)\"")])))
                    model[number]?.tag = "\"f\(step)\""
                case 10:
                    tier.close()
                    if Bool.random(using: &random) { DiskIndex.remove("\(path)/index.sqlite") }
                    tier = try await DiskTier.open(path: path, limits: ample, pool: pool)
                default:
                    let response = try? await tier.load(key(number), inMemoryUpTo: 10_000)
                    #expect(response?.head.fields.first(.etag) == model[number]?.tag)
                    guard let response else { continue }
                    let read = await readAll(response.body, on: loop)
                    #expect(read?.count == model[number]?.size)
                    #expect(read?.wrongAt == nil && read?.error == nil)
                }
            }
            await tier.settle()
            #expect(tier.statistics.objects == model.count)
            #expect(tier.statistics.damaged == 0)
            tier.close()
        }
    }
}
