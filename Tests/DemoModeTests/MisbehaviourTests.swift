// How often an answer is wrong, and that nothing but the request and its number decides it.

import HTTPWire
import Policies
import Testing

@testable import DemoMode

@Suite struct MisbehaviourTests {
    private static func rule(_ misbehaviours: [Misbehaviour], name: String = "user") -> DemoRule {
        DemoRule(endpoint: name, seed: 42, misbehaviours: misbehaviours)
    }

    /// The kinds that request number 0 ..< `count` of a target have.
    private static func kinds(_ rule: DemoRule, _ count: UInt64 = 200, target: String = "/a") -> [[Misbehaviour.Kind]] {
        let key = DrawKey(rule: rule.name, request: Array("GET \(target)".utf8))
        return (0..<count).map { DemoDraw.draw(rule, key: key, ordinal: $0).misbehaviours.map(\.kind) }
    }

    @Test(arguments: [0.002, 0.2, 0.85]) func aMillionDrawsAreWithinATenthOfAPoint(_ chance: Double) {
        let misbehaviour = Misbehaviour(.no304, chance: chance)
        let key = DrawKey(rule: "user", request: Array("GET /a".utf8))
        var count = 0
        for ordinal in 0..<UInt64(1_000_000)
        where misbehaviour.acts(DrawNumbers(seed: 42, key: key, ordinal: ordinal), ordinal: ordinal) {
            count += 1
        }
        #expect(abs(Double(count) / 1_000_000 - chance) < 0.001)
    }

    @Test func eachKindHasNumbersOfItsOwn() {
        let all = Misbehaviour.Kind.allCases.map { Misbehaviour($0, chance: 0.5) }
        let together = Self.kinds(Self.rule(all))
        for one in all {
            let alone = Self.kinds(Self.rule([one])).map { $0.contains(one.kind) }
            #expect(alone == together.map { $0.contains(one.kind) })
        }
        // No two kinds go together.
        for (first, second) in zip(all, all.dropFirst()) {
            #expect((60...140).contains(together.count { $0.contains(first.kind) == $0.contains(second.kind) }))
        }
        #expect(Self.kinds(Self.rule(all), target: "/b") != together)
    }

    @Test func aHigherChanceTakesNoneAway() {
        let few = Self.kinds(Self.rule([Misbehaviour(.date, chance: 0.2)]))
        let many = Self.kinds(Self.rule([Misbehaviour(.date, chance: 0.6)]))
        #expect(zip(few, many).allSatisfy { $0.isEmpty || !$1.isEmpty })
        #expect(few.count { $0.isEmpty } > many.count { $0.isEmpty })
    }

    @Test func everyCountsTheRequestsOfATarget() {
        let turns = Self.kinds(Self.rule([Misbehaviour(.age, every: 3)]), 7).map { !$0.isEmpty }
        #expect(turns == [false, false, true, false, false, true, false])
    }

    @Test func aDrawNamesWhatItDid() {
        var draw = DemoDraw.draw(Self.rule([]), requestKey: Array("GET /a".utf8), ordinal: 0)
        let plain = draw.fieldValue
        #expect(!plain.contains("misbehave"))
        draw.misbehaved = [.no304]
        #expect(draw.fieldValue == plain.replacing("draw=", with: "misbehave=no_304; draw="))
        draw.misbehaved = [.no304, .date]
        #expect(draw.fieldValue == plain.replacing("draw=", with: "misbehave=\"no_304 date\"; draw="))
        #expect(draw.wrongTag(for: "\"a\"").hasPrefix("\"a.") && draw.wrongTag(for: "\"a\"").hasSuffix("\""))
        #expect(draw.wrongTag(for: "bare").hasPrefix("bare."))
        #expect(!Self.rule([Misbehaviour(.no304)]).isPlain)
    }
}
