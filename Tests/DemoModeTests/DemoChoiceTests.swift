// Answers by weight and in sequence: honest shares, the same draws in every order, and what comes behind the end.

import DemoMode
import Policies
import Testing

@Suite struct DemoChoiceTests {
    static let request = Array("GET /users/1".utf8)

    static func weighted(_ shares: [(Double, Int)], seed: UInt64 = 42, chance: Double? = nil) -> DemoRule {
        DemoRule(
            endpoint: "user",
            seed: seed,
            choice: .weighted(shares.map { ($0.0, DemoAnswer(status: $0.1)) }),
            failure: chance.map { DemoFailure(chance: $0, answer: DemoAnswer(status: 500)) }
        )
    }

    /// A fixed seed, so that the counts are the same in every run; a tenth of a point is three standard deviations.
    @Test func aMillionDrawsAreWithinATenthOfAPoint() {
        let rule = Self.weighted([(0.5, 200), (0.3, 201), (0.15, 202), (0.05, 503)])
        let key = DrawKey(rule: rule.name, request: Self.request)
        var counts: [Int: Int] = [:]
        for ordinal in 0..<UInt64(1_000_000) {
            counts[DemoDraw.draw(rule, key: key, ordinal: ordinal).status, default: 0] += 1
        }
        for (status, share) in [(200, 0.5), (201, 0.3), (202, 0.15), (503, 0.05)] {
            let found = Double(counts[status] ?? 0) / 1_000_000
            #expect(abs(found - share) <= 0.001, "\(status): \(found)")
        }
        #expect(counts.count == 4)
    }

    @Test func weightsAndFailuresAreDrawnIndependently() {
        let plain = Self.weighted([(0.5, 200), (0.5, 201)])
        let failing = Self.weighted([(0.5, 200), (0.5, 201)], chance: 0.5)
        let key = DrawKey(rule: plain.name, request: Self.request)
        let draws = (0..<UInt64(10_000)).map { ordinal in
            (DemoDraw.draw(plain, key: key, ordinal: ordinal), DemoDraw.draw(failing, key: key, ordinal: ordinal))
        }
        // A failure takes the place of an answer, and moves no other.
        #expect(draws.allSatisfy { $1.isFailure ? $1.status == 500 : $0.status == $1.status })
        let failed = draws.filter { $0.1.isFailure }
        let first = Double(failed.count { $0.0.status == 200 })
        #expect(abs(first - Double(failed.count) / 2) <= 3.29 * (Double(failed.count) / 4).squareRoot())
    }

    @Test func sharesThatMissAHairAreWhole() {
        let rule = Self.weighted([(0.1, 200), (0.2, 201), (0.7 - 1e-12, 202)])
        let key = DrawKey(rule: rule.name, request: Self.request)
        let statuses = Set((0..<UInt64(1000)).map { DemoDraw.draw(rule, key: key, ordinal: $0).status })
        #expect(statuses == [200, 201, 202])
    }

    @Test(
        arguments: [
            (SequenceEnd.last, [202, 200, 503, 503, 503, 503, 503]),
            (.repeat, [202, 200, 503, 202, 200, 503, 202]), (.notFound, [202, 200, 503, 404, 404, 404, 404]),
        ]
    )
    func sequencesGoOnAsTheySay(after: SequenceEnd, statuses: [Int]) {
        let answers = [202, 200, 503].map { DemoAnswer(status: $0) }
        let rule = DemoRule(endpoint: "job", choice: .sequence(answers, after: after))
        let key = DrawKey(rule: rule.name, request: Self.request)
        #expect((0..<7).map { DemoDraw.draw(rule, key: key, ordinal: $0).status } == statuses)
        #expect((0..<7).map { DemoDraw.draw(rule, key: key, ordinal: 0, position: $0).status } == statuses)
    }
}
