// The heap of held responses: what is taken is whole, apart from all else, and comes back as one piece.

import Glibc
import StoreSupport
import Testing

@testable import CacheStore

@Suite struct BlockHeapTests {
    /// A block that is in use: every byte of it is `mark`.
    private struct Block {
        let bytes: UnsafeMutableRawPointer
        let count: Int
        let mark: UInt8

        init(_ heap: BlockHeap, _ count: Int, _ mark: UInt8) throws {
            bytes = try #require(heap.allocate(count))
            (self.count, self.mark) = (count, mark)
            memset(bytes, Int32(mark), count)
        }

        /// The first byte is `mark`, and each of the others is what the one before it is.
        var isWhole: Bool {
            count == 0 || bytes.load(as: UInt8.self) == mark && memcmp(bytes, bytes + 1, count - 1) == 0
        }
    }

    /// Takes and gives back at random, and looks at every byte before it goes.
    private func exercise(_ heap: BlockHeap, seed: UInt64, steps: Int, largest: Int) throws {
        var random = SeededRandom(state: seed)
        var blocks: [Block] = []
        for step in 0..<steps {
            // Growing and shrinking in turn.
            let wanted = step / 1000 % 2 == 0 ? 3 : 1
            if blocks.isEmpty || blocks.count < 1000 && Int.random(in: 0..<4, using: &random) < wanted {
                let most = [40, 2000, largest].randomElement(using: &random) ?? largest
                blocks.append(try Block(heap, .random(in: 0...most, using: &random), UInt8(truncatingIfNeeded: step)))
                #expect(UInt(bitPattern: blocks[blocks.count - 1].bytes) % 8 == 0)
            } else {
                blocks.swapAt(.random(in: 0..<blocks.count, using: &random), blocks.count - 1)
                let block = blocks.removeLast()
                #expect(block.isWhole)
                heap.free(block.bytes, block.count)
            }
            if step % 500 == 0 { #expect(heap.isSound) }
            if step % 2500 == 0 { heap.giveBack() }
        }
        for block in blocks {
            #expect(block.isWhole)
            heap.free(block.bytes, block.count)
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a random sequence of blocks leaves one empty mapping`(seed: UInt64) throws {
        let heap = BlockHeap()
        try exercise(heap, seed: seed, steps: 10_000, largest: BlockHeap.largest + 1000)
        #expect(heap.isSound && heap.mappedBytes == 2 << 20)
    }

    @Test func `four threads use one heap`() async throws {
        let heap = BlockHeap()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seed in 1...4 as ClosedRange<UInt64> {
                group.addTask { try exercise(heap, seed: seed, steps: 4000, largest: 20_000) }
            }
            try await group.waitForAll()
        }
        #expect(heap.isSound && heap.mappedBytes == 2 << 20)
    }

    @Test func `neighbours become one again, in whatever order they come back`() throws {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let heap = BlockHeap()
            let size = BlockHeap.largest
            // What comes before and behind stays, so that the three have to be joined.
            let (before, blocks) = (try Block(heap, 100, 1), try (0..<3).map { try Block(heap, size, UInt8($0)) })
            let behind = try Block(heap, 100, 2)
            for index in order { heap.free(blocks[index].bytes, size) }
            #expect(heap.isSound)
            #expect(before.isWhole && behind.isWhole)
            // Small ones fill the very room again.
            let small = try (0..<300).map { _ in try Block(heap, 2600, 3) }
            #expect(heap.isSound && heap.mappedBytes == 2 << 20)
            for block in small + [before, behind] { heap.free(block.bytes, block.count) }
        }
    }

    @Test func `blocks of one size take little more than their bytes, also after others have gone`() throws {
        let heap = BlockHeap()
        let blocks = try (0..<10_000).map { _ in try Block(heap, 1340, 1) }
        #expect(heap.mappedBytes <= 10_000 * 1370 + (2 << 20))
        let before = heap.mappedBytes
        var (kept, count) = ([Block](), 0)
        for (index, block) in blocks.enumerated() {
            if index % 2 == 0 {
                heap.free(block.bytes, block.count)
                count += 1
            } else {
                kept.append(block)
            }
        }
        for _ in 0..<count { kept.append(try Block(heap, 1340, 2)) }
        #expect(heap.mappedBytes == before && heap.isSound)
        #expect(kept.filter(\.isWhole).count == kept.count)
    }

    @Test func `free pages go back, and what is beside them stays`() throws {
        let heap = BlockHeap()
        let blocks = try (0..<7).map { try Block(heap, BlockHeap.largest, UInt8($0 + 1)) }
        for index in [1, 3, 5] { heap.free(blocks[index].bytes, blocks[index].count) }
        heap.giveBack()
        #expect(heap.isSound)
        #expect([0, 2, 4, 6].filter { blocks[$0].isWhole }.count == 4)
        let again = try Block(heap, BlockHeap.largest, 9)
        #expect(again.isWhole && heap.isSound)
    }
}
