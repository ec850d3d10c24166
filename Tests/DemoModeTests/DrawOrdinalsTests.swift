// Ordinals: each is given exactly once, whatever the threads, and memory stays bounded.

import DemoMode
import Testing

@Suite struct DrawOrdinalsTests {
    static func key(_ number: Int) -> DrawKey {
        DrawKey(rule: "user", request: Array("GET /\(number)".utf8))
    }

    @Test func eachKeyCountsFromZero() {
        let ordinals = DrawOrdinals()
        for number in 0..<100 {
            #expect((0..<3).map { _ in ordinals.next(Self.key(number)) } == [0, 1, 2])
        }
        #expect(ordinals.ownKeys == 100)
    }

    @Test func everyOrdinalOfAKeyIsGivenExactlyOnceAcrossThreads() async {
        let ordinals = DrawOrdinals()
        let given = await withTaskGroup(of: [[UInt64]].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var mine = [[UInt64]](repeating: [], count: 3)
                    for _ in 0..<5_000 {
                        for number in 0..<3 { mine[number].append(ordinals.next(Self.key(number))) }
                    }
                    return mine
                }
            }
            var all = [[UInt64]](repeating: [], count: 3)
            for await part in group {
                for number in 0..<3 { all[number] += part[number] }
            }
            return all
        }
        for number in 0..<3 { #expect(given[number].sorted() == Array(0..<40_000)) }
    }

    @Test func pastTheBoundNothingGrowsAndNoOrdinalRepeats() {
        let ordinals = DrawOrdinals(maximumKeys: 64)
        var seen: [Int: [UInt64]] = [:]
        for _ in 0..<3 {
            for number in 0..<20_000 { seen[number, default: []].append(ordinals.next(Self.key(number))) }
        }
        #expect(ordinals.ownKeys == 64)
        #expect(seen.values.allSatisfy { $0.count == 3 && $0[0] < $0[1] && $0[1] < $0[2] })
        #expect(seen.values.count { $0 == [0, 1, 2] } >= 64)
    }

    @Test func aResetBeginsAgain() {
        let ordinals = DrawOrdinals(maximumKeys: 16)
        let keys = (0..<100).map { DrawKey(rule: "a", request: Array("\($0)".utf8)) }
        let first = keys.map { ordinals.next($0) } + keys.map { ordinals.next($0) }
        #expect(ordinals.ownKeys == 16)
        ordinals.reset()
        #expect(ordinals.ownKeys == 0)
        #expect(keys.map { ordinals.next($0) } + keys.map { ordinals.next($0) } == first)
    }

    @Test func countersAreMadeWhenSomethingIsCounted() {
        let ordinals = DrawOrdinals(maximumKeys: 16)
        #expect(ordinals.count(Self.key(1)) == 0 && ordinals.ownKeys == 0)
        ordinals.reset()
        #expect(ordinals.isUnused)
        #expect(ordinals.next(Self.key(1)) == 0 && ordinals.count(Self.key(1)) == 1)
        #expect(!ordinals.isUnused)
        let state = DemoState()
        state.reset(now: 1)
        #expect(state.ordinals.isUnused)
    }

    @Test func theSameSequenceRepeatsPastTheBound() {
        func run() -> [UInt64] {
            let ordinals = DrawOrdinals(maximumKeys: 16)
            return (0..<30_000).map { ordinals.next(Self.key($0 % 5_000)) }
        }
        #expect(run() == run())
    }
}
