// The parts of one representation: what is there, what is missing, and how they become a file.

import EventLoop
import Glibc
import LoopSupport
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct ExtentsTests {
    private func text(_ extents: Extents, _ range: Range<Int64>) -> String {
        extents.segments(range).map { segment in
            switch segment {
            case .present(_, let bytes): "+\(bytes.lowerBound)-\(bytes.upperBound)"
            case .missing(let hole): "?\(hole.lowerBound)-\(hole.upperBound)"
            }
        }.joined(separator: " ")
    }

    @Test(
        arguments: [
            (0..<100, "?0-10 +0-10 ?20-30 +0-10 ?40-100"), (10..<20, "+0-10"), (12..<15, "+2-5"),
            (15..<35, "+5-10 ?20-30 +0-5"),
            (0..<5, "?0-5"), (20..<30, "?20-30"), (40..<41, "?40-41"), (39..<41, "+9-10 ?40-41"), (50..<50, ""),
        ] as [(Range<Int64>, String)]
    )
    func `what there is of a range`(range: Range<Int64>, expected: String) {
        let extents = Extents(length: 100, file: nil)
        extents.add(30..<40, .complete(pattern(10)))
        extents.add(10..<20, .complete(pattern(10)))
        #expect(text(extents, range) == expected)
        #expect(extents.stored == [10..<20, 30..<40] && extents.heldBytes == 20 && !extents.isComplete)
    }

    @Test func `what is missing may be filled and lost while others ask for it`() async throws {
        try await withPool { _, loop in
            let extents = Extents(length: 30, file: nil)
            let isOver = Atomic(false)
            async let holes = Task.detached {
                let found = (0..<10_000).map { _ in extents.firstMissing(in: [0..<10, 20..<30]) }
                isOver.store(true, ordering: .releasing)
                return found
            }.value
            let (first, last) = (Body.complete(pattern(10)), Body.complete(pattern(10)))
            await onLoop(loop) { _ in
                while !isOver.load(ordering: .acquiring) {
                    extents.begin(0..<10, first)
                    extents.begin(20..<30, last)
                    extents.end(first)
                    extents.end(last)
                }
            }
            #expect(Set(await holes).isSubset(of: [nil, 0..<10, 20..<30]))
        }
    }

    @Test func `parts may overlap, and one that has failed is none`() async throws {
        try await withPool { _, loop in
            let extents = Extents(length: 30, file: nil)
            let got = await onLoop(loop) { loop -> [String] in
                let (body, writer) = Body.growing(
                    GrowingBodyOptions(budget: BodyBudget()),
                    expectedLength: 20,
                    on: loop
                )
                extents.begin(0..<20, body)
                let before = self.text(extents, 0..<30)
                extents.add(5..<10, .complete(pattern(5)))
                extents.add(8..<25, .complete(pattern(17)))
                let both = self.text(extents, 0..<30)
                let stored = "\(extents.stored)"
                writer.fail(.truncated)
                let failed = self.text(extents, 0..<30)
                extents.end(body)
                return [before, both, stored, failed, self.text(extents, 0..<30)]
            }
            #expect(
                got == [
                    "+0-20 ?20-30", "+0-20 +12-17 ?25-30", "[Range(5..<25)]", "?0-5 +0-5 +2-17 ?25-30",
                    "?0-5 +0-5 +2-17 ?25-30",
                ]
            )
        }
    }

    @Test func `a part of the wrong length, an empty one and too many are not taken`() {
        let extents = Extents(length: 1000, file: nil)
        extents.add(0..<5, .complete(pattern(4)))
        extents.add(5..<5, .complete([]))
        #expect(extents.stored.isEmpty)
        for index in 0..<Int64(300) { extents.add(index * 2..<index * 2 + 1, .complete([1])) }
        #expect(extents.stored.count == Extents.limit)
    }
}
