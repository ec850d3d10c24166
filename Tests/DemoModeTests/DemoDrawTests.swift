// Draws: the same for the same key, independent streams, a chance that only adds failures, and honest shares.

import DemoMode
import HTTPWire
import Policies
import Testing

@Suite struct DemoDrawTests {
    static let milliseconds: UInt64 = 1_000_000
    static let request = Array("GET /users/1".utf8)

    static func rule(
        seed: UInt64 = 42,
        name: String = "user",
        latency: ClosedRange<UInt64> = 200_000_000...900_000_000,
        chance: Double = 0.2
    ) -> DemoRule {
        DemoRule(
            endpoint: name,
            seed: seed,
            latency: LatencyPolicy(.uniform(latency)),
            answer: DemoAnswer(
                content: .file(DemoFile(path: "/user.json", bytes: Array("{}".utf8), contentType: "application/json"))
            ),
            failure: DemoFailure(
                chance: chance,
                answer: DemoAnswer(
                    status: 503,
                    content: .file(DemoFile(path: "/error.txt", bytes: Array("no".utf8), contentType: "text/plain"))
                )
            )
        )
    }

    static func draws(_ rule: DemoRule, count: UInt64 = 10_000, request: [UInt8] = request) -> [DemoDraw] {
        (0..<count).map { DemoDraw.draw(rule, requestKey: request, ordinal: $0) }
    }

    /// Written down once: a change of the mixing changes every user's demo answers and must be deliberate.
    @Test func drawsAreTheSameInEveryBuild() {
        let values = Self.draws(Self.rule(), count: 4).map(\.fieldValue)
        #expect(values == Self.knownValues)
    }

    @Test func orderOfDrawingDoesNotMatter() {
        let rule = Self.rule()
        let forward = Self.draws(rule, count: 500).map(\.fieldValue)
        let backward = (0..<500).reversed().map {
            DemoDraw.draw(rule, requestKey: Self.request, ordinal: $0).fieldValue
        }
        #expect(forward == backward.reversed())
    }

    @Test(arguments: ["seed", "name", "request"])
    func anotherKeyGivesOtherDraws(what: String) {
        let base = Self.draws(Self.rule())
        let other =
            switch what {
            case "seed": Self.draws(Self.rule(seed: 43))
            case "name": Self.draws(Self.rule(name: "users"))
            default: Self.draws(Self.rule(), request: Array("GET /users/2".utf8))
            }
        // Two independent runs at 20 % differ in 2 × 0.2 × 0.8 = 32 % of their outcomes.
        let differing = zip(base, other).count { $0.isFailure != $1.isFailure }
        #expect((2900...3500).contains(differing))
        #expect(zip(base, other).count { $0.latency == $1.latency } < 10)
    }

    @Test func nameAndRequestAreKeptApart() {
        #expect(
            DrawKey(rule: "ab", request: Array("c".utf8)) != DrawKey(rule: "a", request: Array("bc".utf8))
        )
    }

    @Test func raisingTheChanceOnlyAddsFailures() {
        let chances = [0, 0.05, 0.2, 0.3, 0.75, 1]
        let failures = chances.map { chance in Self.draws(Self.rule(chance: chance)).map(\.isFailure) }
        for (lower, higher) in zip(failures, failures.dropFirst()) {
            #expect(zip(lower, higher).allSatisfy { !$0 || $1 })
        }
        let counts = failures.map { $0.count { $0 } }
        #expect(counts == counts.sorted() && Set(counts).count == chances.count)
        #expect(counts.first == 0 && counts.last == 10_000)
    }

    @Test func raisingTheChanceMovesNoLatency() {
        #expect(
            Self.draws(Self.rule(chance: 0.2)).map(\.latency) == Self.draws(Self.rule(chance: 0.3)).map(\.latency)
        )
    }

    @Test func changingTheRangeMovesNoOutcome() {
        #expect(
            Self.draws(Self.rule()).map(\.isFailure) == Self.draws(Self.rule(latency: 0...5)).map(\.isFailure)
        )
    }

    @Test(arguments: [0.01, 0.2, 0.3, 0.5, 0.99], [UInt64(0), 1, 42, .max])
    func shareLiesInTheBinomialInterval(chance: Double, seed: UInt64) {
        let count = 10_000.0
        let failures = Double(Self.draws(Self.rule(seed: seed, chance: chance)).count { $0.isFailure })
        // 99.9 % two-sided: 3.29 standard deviations.
        let margin = 3.29 * (count * chance * (1 - chance)).squareRoot()
        #expect(abs(failures - count * chance) <= margin)
    }

    @Test(arguments: [UInt64(0), 1, 42, .max])
    func statedLatenciesPassKolmogorovSmirnov(seed: UInt64) {
        let range = 200.0...901.0  // stated values are rounded down: 900 ms stands for 900.0 to 900.999
        let stated = Self.draws(Self.rule(seed: seed, latency: 200_000_000...900_999_999))
            .map { Double($0.statedMilliseconds) }.sorted()
        var distance = 0.0
        for (index, value) in stated.enumerated() {
            let expected = (value - range.lowerBound) / (range.upperBound - range.lowerBound)
            distance = max(distance, abs(expected - Double(index) / Double(stated.count)))
        }
        // The 99.9 % critical value, and one step of rounding.
        #expect(distance < 1.95 / Double(stated.count).squareRoot() + 1.0 / 701)
    }

    @Test func latencyAndOutcomeAreIndependent() {
        let draws = Self.draws(Self.rule(chance: 0.5))
        let slow = draws.filter { $0.latency >= 550 * Self.milliseconds }
        let failed = Double(slow.count { $0.isFailure })
        let expected = Double(slow.count) / 2
        #expect(abs(failed - expected) <= 3.29 * (Double(slow.count) / 4).squareRoot())
    }

    @Test(arguments: [0...0, 7...7, 0...UInt64.max, UInt64.max...UInt64.max, 3...5])
    func latencyStaysInTheClosedRange(range: ClosedRange<UInt64>) {
        let latencies = Self.draws(Self.rule(latency: range)).map(\.latency)
        #expect(latencies.allSatisfy(range.contains))
        if range == 3...5 { #expect(Set(latencies) == [3, 4, 5]) }
    }

    @Test func statedLatencyIsNeverMoreThanTheWait() {
        for draw in Self.draws(Self.rule()) {
            #expect(draw.statedMilliseconds * Self.milliseconds <= draw.latency)
            #expect(draw.latency - draw.statedMilliseconds * Self.milliseconds < Self.milliseconds)
        }
    }

    @Test func answersCarryTheirOwnFileStatusAndType() throws {
        let draws = Self.draws(Self.rule(), count: 100)
        let failure = try #require(draws.first { $0.isFailure })
        let success = try #require(draws.first { !$0.isFailure })
        #expect(failure.status == 503 && failure.body == Array("no".utf8))
        #expect(failure.fields.all(.contentType) == ["text/plain"])
        #expect(success.status == 200 && success.body == Array("{}".utf8))
        #expect(success.fields.all(.contentType) == ["application/json"])
    }

    @Test func configuredContentTypeWins() {
        let rule = DemoRule(
            endpoint: "user",
            answer: DemoAnswer(
                content: .file(DemoFile(path: "/a.json", bytes: [1], contentType: "application/json")),
                fields: Fields([("Content-Type", "application/problem+json"), ("X-Demo", "yes")])
            )
        )
        let draw = DemoDraw.draw(rule, requestKey: [], ordinal: 0)
        #expect(draw.fields.all(.contentType) == ["application/problem+json"])
        #expect(draw.fields.first("X-Demo") == "yes")
        #expect(!draw.isFailure && draw.latency == 0)
    }

    @Test func failureWithoutAFileHasNoBody() {
        let rule = DemoRule(
            endpoint: "user",
            answer: DemoAnswer(
                content: .file(DemoFile(path: "/a.json", bytes: [1], contentType: "application/json"))
            ),
            failure: DemoFailure(chance: 1, answer: DemoAnswer(status: 500))
        )
        let draw = DemoDraw.draw(rule, requestKey: [], ordinal: 0)
        #expect(draw.isFailure && draw.status == 500 && draw.body.isEmpty && draw.fields.count == 0)
    }

    @Test(arguments: zip([-1, 2, Double.nan, .infinity, 0.25], [0, 1, 0, 1, 0.25]))
    func chanceIsBroughtIntoRange(given: Double, kept: Double) {
        #expect(DemoFailure(chance: given).chance == kept)
    }

    @Test(
        arguments: zip(
            ["user", "a b", "say \"hi\\\"", "x\r\nSet-Cookie: a", ""],
            ["user", "\"a b\"", #""say \"hi\\\"""#, "\"x__Set-Cookie: a\"", "\"\""]
        )
    )
    func fieldValueNamesTheRuleSafely(name: String, written: String) throws {
        let rule = DemoRule(endpoint: name, latency: LatencyPolicy(.uniform(412_999_999...412_999_999)))
        let draw = DemoDraw.draw(rule, requestKey: [], ordinal: 3)
        let drawn = "\(draw.name)"
        #expect(DrawName(drawn) == draw.name && drawn.hasSuffix(".4"))
        let value = "endpoint=\(written); outcome=success; status=200; latency=412ms; draw=\(drawn)"
        #expect(draw.fieldValue == value)
        // What is said can be read back; a control character is gone.
        let said = try SaidDraw.read(value)
        #expect(said.map(\.text) == [value] && said.map(\.name) == [draw.name])
        let readable = name.replacing("\r\n", with: "__")
        #expect(said.map(\.rule) == [.demo(endpoint: readable, rule: nil)])
    }

    /// Computed by an independent program from the description in `DrawKey` and `DrawNumbers`.
    static let knownValues = [
        "endpoint=user; outcome=failure; status=503; latency=703ms; draw=7a00b4f93930125f.1",
        "endpoint=user; outcome=success; status=200; latency=381ms; draw=7a00b4f93930125f.2",
        "endpoint=user; outcome=success; status=200; latency=582ms; draw=7a00b4f93930125f.3",
        "endpoint=user; outcome=success; status=200; latency=211ms; draw=7a00b4f93930125f.4",
    ]
}
