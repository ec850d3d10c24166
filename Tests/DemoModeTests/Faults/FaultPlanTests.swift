// Faults: which requests a rule acts on, what several rules come to, and draws that depend on nothing else.

import DemoMode
import Policies
import Testing

@Suite struct FaultPlanTests {
    private static let request = Array("GET /a".utf8)

    /// Which of so many requests each rule acts on, by name.
    private static func acts(_ rules: [FaultPolicy], count: Int, at point: FaultPoint = .miss) throws -> [[String]] {
        let plan = try #require(FaultPlan(rules.map { FaultPlan.Rule($0) }))
        let ordinals = DrawOrdinals()
        return (0..<count).map { _ in
            let said = plan.draw(at: point, request: request, ordinals)?.members ?? []
            return said.map { String($0.dropFirst("fault=".count).prefix { $0 != ";" }) }
        }
    }

    @Test func countsSayWhichRequests() throws {
        let first = FaultPolicy(name: "first", first: 2, status: 503)
        let third = FaultPolicy(name: "third", every: 3, status: 500)
        #expect(
            try Self.acts([first, third], count: 7) == [["first"], ["first"], ["third"], [], [], ["third"], []]
        )
        let both = FaultPolicy(name: "both", first: 4, every: 2, status: 503)
        #expect(try Self.acts([both], count: 6) == [[], ["both"], [], ["both"], [], []])
    }

    @Test func aRuleActsOnItsAnswersOnly() throws {
        let rule = FaultPolicy(name: "cold", points: [.miss, .revalidate], first: 1, wire: .empty)
        let plan = try #require(FaultPlan([FaultPlan.Rule(rule)]))
        let ordinals = DrawOrdinals()
        let acts = [FaultPoint.hit, .demo, .stale, .miss, .miss].map {
            plan.draw(at: $0, request: Self.request, ordinals) != nil
        }
        // Requests that it is not for do not count.
        #expect(acts == [false, false, false, true, false])
    }

    /// What is drawn before the origin is asked is not drawn again for the answer, whatever that turns out to be.
    @Test func earlyDrawsCountOnce() throws {
        let rules = [
            FaultPolicy(name: "checked", points: [.revalidate], every: 2, status: 500),
            FaultPolicy(name: "any", every: 2, status: 503),
            FaultPolicy(name: "lost", points: [.miss], origin: .ask, wire: .empty),
            FaultPolicy(name: "slow", points: [.miss], latency: LatencyPolicy(.uniform(5_000_000...5_000_000))),
        ]
        #expect(rules.map(\.sparesOrigin) == [false, true, false, false])
        let plan = try #require(FaultPlan(rules.map { FaultPlan.Rule($0) }))
        let ordinals = DrawOrdinals()
        var seen: [[String]] = []
        for _ in 0..<2 {
            let early = plan.draws(before: [.miss, .revalidate, .stale], request: Self.request, ordinals)
            seen.append(["\(early.sparesOrigin)"])
            let effect = plan.draw(at: .revalidate, request: Self.request, ordinals, after: early)
            seen.append((effect?.members ?? []).map { String($0.prefix { $0 != ";" }) })
        }
        #expect(seen == [["false"], [], ["true"], ["fault=checked", "fault=any"]])
        #expect(!plan.draws(before: [.miss], request: Array("GET /b".utf8), ordinals).sparesOrigin)
    }

    @Test func theFirstRuleWithAPartSaysIt() throws {
        let slow = FaultPolicy(name: "slow", latency: LatencyPolicy(.uniform(5_000_000...5_000_000)))
        let slower = FaultPolicy(name: "slower", latency: LatencyPolicy(.uniform(9_000_000...9_000_000)), status: 500)
        let cut = FaultPolicy(name: "cut", status: 503, wire: .close(after: 3), pace: .rate(10))
        let plan = try #require(FaultPlan([slow, slower, cut].map { FaultPlan.Rule($0) }))
        let effect = try #require(plan.draw(at: .hit, request: Self.request, DrawOrdinals()))
        #expect(effect.latency == 5_000_000)
        #expect(effect.substitute?.status == 500)
        #expect(effect.wire == .close(after: 3))
        #expect(effect.pace == .rate(10))
        let said = effect.members.map { $0.prefix(upTo: $0.firstRange(of: "draw=")?.lowerBound ?? $0.endIndex) }
        #expect(
            said == ["fault=slow; latency=5ms; ", "fault=slower; status=500; ", "fault=cut; wire=close; pace=10; "]
        )
    }

    @Test func drawsDependOnSeedRuleRequestAndOrdinalAlone() throws {
        let rule = FaultPolicy(name: "flaky", chance: 0.3, status: 503)
        let alone = try Self.acts([rule], count: 1000)
        #expect(try Self.acts([rule], count: 1000) == alone)
        let other = FaultPolicy(name: "other", chance: 0.5, latency: LatencyPolicy.none)
        #expect(try Self.acts([other, rule], count: 1000).map { $0.filter { $0 == "flaky" } } == alone)
        var reseeded = rule
        reseeded.seed = 1
        #expect(try Self.acts([reseeded], count: 1000) != alone)
        #expect(try Self.acts([FaultPolicy(name: "flakier", chance: 0.3, status: 503)], count: 1000) != alone)
        // A higher chance adds faults and takes none away.
        let more = try Self.acts([FaultPolicy(name: "flaky", chance: 0.6, status: 503)], count: 1000)
        #expect(zip(alone, more).allSatisfy { $0.isEmpty || !$1.isEmpty })
        let share = Double(alone.count { !$0.isEmpty }) / 1000
        #expect(abs(share - 0.3) < 0.06)
    }

    @Test func chancesAreKeptWithinATenthOfAPoint() throws {
        let rule = FaultPolicy(name: "rare", chance: 0.05, wire: .reset(after: nil))
        let plan = try #require(FaultPlan([FaultPlan.Rule(rule)]))
        let ordinals = DrawOrdinals()
        let count = (0..<1_000_000).count { _ in plan.draw(at: .hit, request: Self.request, ordinals) != nil }
        #expect(abs(Double(count) / 1_000_000 - 0.05) < 0.001)
    }

    @Test(
        arguments: [
            (1_000...5_000, 1...5), (2_500...10_000, 3...10), (3_000...3_000, 3...3), (1_200...1_800, 2...2),
            (0...1_900, 0...1),
        ] as [(ClosedRange<UInt64>, ClosedRange<UInt64>)]
    )
    func retryAfterIsDrawnEvenlyInWholeSeconds(milliseconds: ClosedRange<UInt64>, seconds: ClosedRange<UInt64>) throws {
        let range = milliseconds.lowerBound * 1_000_000...milliseconds.upperBound * 1_000_000
        let plan = try #require(FaultPlan([FaultPlan.Rule(FaultPolicy(name: "busy", status: 503, retryAfter: range))]))
        let ordinals = DrawOrdinals()
        let drawn = (0..<4000).compactMap { _ in
            plan.draw(at: .hit, request: Self.request, ordinals)?.substitute?.retryAfter
        }
        let counts = Dictionary(grouping: drawn) { $0 }.mapValues(\.count)
        #expect(counts.keys.sorted() == Array(seconds))
        let even = 4000 / seconds.count
        #expect(counts.values.allSatisfy { abs($0 - even) < even / 4 })
    }

    /// Each rule has counts of its own; those of one request come together, however requests race.
    @Test func theOrdinalsOfARequestComeTogether() async throws {
        let rules = ["a", "b", "c"].map { FaultPlan.Rule(FaultPolicy(name: $0, status: 500)) }
        let plan = try #require(FaultPlan(rules))
        let ordinals = DrawOrdinals()
        let all = await withTaskGroup(of: [[Substring]].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<2000).map { _ in
                        let said = plan.draw(at: .demo, request: Self.request, ordinals)?.members ?? []
                        return said.compactMap { $0.split(separator: ".").last }
                    }
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(all.count == 16_000)
        #expect(all.allSatisfy { $0.count == 3 && Set($0).count == 1 })
    }

    // MARK: - Pace

    /// The pieces of a body, each with its end and its time.
    private static func pieces(_ pace: Pace, length: Int64, isKnown: Bool = true) -> [(end: Int64, due: UInt64)] {
        var result: [(end: Int64, due: UInt64)] = []
        var sent: Int64 = 0
        while sent < length {
            let step = pace.step(after: sent, length: isKnown ? length : nil)
            let count = min(step.count, Int(length - sent))
            sent += Int64(count)
            result.append((sent, step.due(count)))
        }
        return result
    }

    @Test func aBodyIsDribbledInItsPieces() {
        let pieces = Self.pieces(.dribble(chunks: 5, over: 2_000_000_000), length: 103)
        #expect(pieces.map(\.end) == [20, 41, 61, 82, 103])
        #expect(pieces.map(\.due) == [400_000_000, 800_000_000, 1_200_000_000, 1_600_000_000, 2_000_000_000])
        // No piece is empty, and the last one keeps the time.
        let few = Self.pieces(.dribble(chunks: 5, over: 1_000_000_000), length: 3)
        #expect(few.map(\.end) == [1, 2, 3])
        #expect(few.last?.due == 1_000_000_000)
        let blind = Self.pieces(.dribble(chunks: 3, over: 3_000_000_000), length: 5000, isKnown: false)
        #expect(blind.map(\.end) == [1024, 2048, 5000])
        #expect(blind.last?.due == 3_000_000_000)
    }

    @Test(arguments: [1, 19, 4096, 64 << 10, 10 << 20]) func aRateIsKept(rate: Int) throws {
        let length = Int64(rate * 3)
        let pieces = Self.pieces(.rate(rate), length: length)
        for piece in pieces {
            #expect(abs(Double(piece.due) - Double(piece.end) / Double(rate) * 1e9) < 10)
        }
        #expect(pieces.last?.end == length)
        #expect(pieces.count >= 3)
    }
}
