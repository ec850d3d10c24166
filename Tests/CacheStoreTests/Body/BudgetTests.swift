// The memory that bodies take beside the memory tier: what is counted, until when, and what becomes of
// bodies where it is spent.

import EventLoop
import LoopSupport
import StoreSupport
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct BudgetTests {
    @Test func `the fuller the budget, the smaller the windows, and never below the least`() {
        let budget = BodyBudget(limit: 16 << 20)
        #expect(budget.window(800 << 10) == 800 << 10)
        budget.add(8 << 20)
        #expect(budget.window(1 << 20) == 384 << 10)
        #expect(budget.mayKeep(4 << 20) && !budget.mayKeep(4 << 20, more: 1) && !budget.isTight)
        budget.add(1)
        #expect(!budget.mayKeep(4 << 20) && budget.mayKeep(BodyBudget.smallBody) && !budget.isTight)
        budget.add(8 << 20)
        #expect(budget.isTight && budget.window(1 << 20) == BodyBudget.minimumWindow)
        #expect(budget.mayKeep(BodyBudget.minimumWindow) && !budget.mayKeep(BodyBudget.minimumWindow + 1))
        budget.add(-(16 << 20) - 1)
        #expect(budget.used == 0 && budget.window(800 << 10) == 800 << 10)
    }

    @Test(arguments: [(0, 64 << 20), (8 << 20, 64 << 20), (32 << 20, 128 << 20), (Int.max, Int.max)])
    func `it is 64 MiB, or four times the largest entry of the memory tier`(maxObject: Int, limit: Int) {
        #expect(BodyBudget(maxObject: maxObject).limit == limit)
    }

    private func withLoop(_ body: @escaping @Sendable (isolated EventLoop) async -> Void) async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        await onLoop(loop, body)
    }

    @Test func `pieces count as long as somebody has them`() async throws {
        let budget = BodyBudget()
        try await withLoop { loop in
            var kept: [BodyPiece] = []
            do {
                let (body, writer) = Body.growing(GrowingBodyOptions(budget: budget, keepsStart: false), on: loop)
                let reader = body.makeReader(on: loop)
                Pump(writer, total: 300_000).run()
                #expect(budget.used >= 300_000)
                while case .piece(let piece)? = reader?.nextIfReady(maxBytes: 1 << 20) { kept.append(piece) }
            }
            #expect(kept.reduce(0) { $0 + $1.count } == 300_000)
            #expect(budget.used >= 300_000, "the body is gone, and its bytes are not")
            kept = []
            #expect(budget.used == 0)
        }
    }

    @Test(arguments: [true, false])
    func `what is kept whole waits for nobody, and is there once at its end`(hasLength: Bool) async throws {
        let (budget, size) = (BodyBudget(), 3_000_000)
        try await withLoop { loop in
            var options = GrowingBodyOptions(budget: budget)
            options.keepsUpTo = size
            let length = hasLength ? Int64(size) : nil
            let (body, writer) = Body.growing(options, expectedLength: length, on: loop)
            let reader = body.makeReader(on: loop)
            #expect(Pump(writer, total: size).run(), "a reader who stands still holds nothing back")
            #expect(body.isKeptWhole)
            let whole = body.inMemory()?.wholeChunk
            body.stopKeeping()
            #expect(budget.used == size)
            var read: [UInt8] = []
            while case .piece(.bytes(let chunk, let range))? = reader?.nextIfReady(maxBytes: 1 << 20) {
                #expect(chunk === whole)
                read += chunk.array(range)
            }
            let isEqual = read == pattern(size)
            #expect(isEqual)
        }
        #expect(budget.used == 0)
    }

    @Test(arguments: [true, false])
    func `where the budget is spent nothing is kept whole, and who stands still has a small window`(
        hasLength: Bool
    ) async throws {
        let (budget, size) = (BodyBudget(limit: 1 << 20), 3_000_000)
        try await withLoop { loop in
            var options = GrowingBodyOptions(budget: budget)
            options.keepsUpTo = size
            let length = hasLength ? Int64(size) : nil
            let (body, writer) = Body.growing(options, expectedLength: length, on: loop)
            guard let reader = body.makeReader(on: loop) else { return }
            let pump = Pump(writer, total: size)
            #expect(!pump.run())
            #expect(!body.isKeptWhole && budget.refusals == 1)
            #expect(budget.used <= budget.limit / 2 + BodyBudget.minimumWindow)
            let (other, second) = Body.growing(options, expectedLength: length, on: loop)
            let stands = other.makeReader(on: loop)
            Pump(second, total: size).run()
            #expect(budget.used <= budget.limit / 2 + 2 * BodyBudget.minimumWindow + BodyBudget.smallBody)
            let result = await readAll(reader, on: loop)
            #expect(result.count == size && result.wrongAt == nil && result.error == nil)
            #expect(body.inMemory() == nil)
            stands?.close()
        }
        #expect(budget.used == 0)
    }

    @Test func `who counts a chunk: the budget, the memory tier, and then what is lent`() {
        let (budget, lent) = (BodyBudget(), LentBytes())
        do {
            let chunk = Chunk(capacity: 100_000, isKept: true, budget: budget)
            #expect(budget.used == 100_000)
            chunk.enter(lent)
            chunk.enter(lent)
            #expect(budget.used == 0 && lent.count == 0)
            chunk.leave()
            #expect(lent.count == 0, "another entry has it")
            chunk.leave()
            #expect(budget.used == 0 && lent.count == 100_000)
            chunk.enter(lent)
            #expect(lent.count == 0)
            chunk.leave()
            #expect(lent.count == 100_000)
        }
        #expect(budget.used == 0 && lent.count == 0)
    }
}
