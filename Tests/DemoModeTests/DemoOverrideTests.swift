// What one request asks of its own demo answer.

import DemoMode
import HTTPWire
import Policies
import Testing

@Suite struct DemoOverrideTests {
    private static func read(_ values: String..., limit: UInt64 = 10_000_000_000) throws -> DemoOverride? {
        try DemoOverride(Fields(values.map { ("drydock-override", $0) }), limit: limit)
    }

    @Test func allOfItIsRead() throws {
        #expect(try Self.read() == nil)
        let override = try #require(
            try Self.read(" status=418 ;latency=250ms", "outcome=failure, rule=admin; DRAW=000000000000002a.7")
        )
        #expect(override.status == 418 && override.latency == 250_000_000 && override.isFailure == true)
        #expect(override.rule == "admin" && override.draw == DrawName("000000000000002a.7"))
        #expect(try Self.read("outcome=success")?.isFailure == false)
        #expect(try Self.read("latency=10s")?.latency == 10_000_000_000)
    }

    @Test(
        arguments: [
            ("status=99", "no status"), ("status=x", "no status"), ("latency=5", "no latency"),
            ("latency=-1ms", "no latency"), ("latency=ms", "no latency"),
            ("latency=99999999999999999999s", "no latency"), ("latency=18446744073710s", "no latency"),
            ("latency=10001ms", "more than the 10000ms"), ("outcome=maybe", "no outcome"), ("draw=7f3a", "no draw"),
            ("colour=red", "'colour' is not known"), ("status", "'status' is not known"),
        ]
    )
    func whatIsWrongIsSaid(_ value: String, _ reason: String) {
        let error = #expect(throws: DemoOverrideError.self) { try Self.read(value) }
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    }

    @Test func anOverriddenAnswerIsForOneRequestAlone() throws {
        let rule = DemoRule(
            endpoint: "user",
            latency: LatencyPolicy(.uniform(5_000_000...5_000_000)),
            answer: DemoAnswer(
                fields: Fields([("Cache-Control", "max-age=60"), ("CDN-Cache-Control", "max-age=60"), ("X-Own", "1")])
            )
        )
        let key = DrawKey(rule: "user", request: Array("GET /".utf8))
        let plain = DemoDraw.draw(rule, key: key, ordinal: 0)
        #expect(plain.fields.first("Cache-Control") == "max-age=60" && !plain.fieldValue.contains("override"))
        let asked = try Self.read("status=404; latency=1s")
        let draw = DemoDraw.draw(rule, key: key, ordinal: 0, override: asked)
        #expect(draw.status == 404 && draw.latency == 1_000_000_000 && !draw.isFailure)
        #expect(draw.fields.all("Cache-Control") == ["no-store"] && !draw.fields.contains("CDN-Cache-Control"))
        #expect(draw.fields.first("X-Own") == "1")
        #expect(
            draw.fieldValue == "endpoint=user; outcome=success; status=404; latency=1000ms; draw=\(draw.name); override"
        )
        // A rule that never fails has the default failure.
        let failed = DemoDraw.draw(rule, key: key, ordinal: 0, override: try Self.read("outcome=failure"))
        #expect(failed.isFailure && failed.status == 503)
    }
}
