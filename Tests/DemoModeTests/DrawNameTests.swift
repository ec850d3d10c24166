// Names of draws, and what Drydock-Demo said read back.

import DemoMode
import Testing

@Suite struct DrawNameTests {
    @Test func aNameIsReadAsItIsWritten() throws {
        let key = DrawKey(rule: "user", request: Array("GET /users/1".utf8))
        for ordinal in [UInt64(0), 1, 9, 1_000_000, UInt64.max - 1] {
            let name = DrawName(key, ordinal: ordinal)
            #expect(DrawName("\(name)") == name)
        }
        let small = try #require(DrawName("000000000000002a.7"))
        #expect(small.key.digest == 42 && small.ordinal == 6 && "\(small)" == "000000000000002a.7")
    }

    @Test(
        arguments: [
            "", ".", "000000000000002a", "000000000000002a.", "000000000000002a.0", "000000000000002a.-1", "2a.1",
            "000000000000002g.1", "+00000000000002a.1", "000000000000002a.+1", "000000000000002a.1.1",
            "000000000000002a.18446744073709551616", " 000000000000002a.1",
        ]
    )
    func whatIsNoName(_ text: String) {
        #expect(DrawName(text) == nil)
    }

    @Test func whatWasSaidIsReadBack() throws {
        let value =
            #"endpoint="a, \"b; c"; rule=x; outcome=failure; draw=000000000000002a.7; override"#
            + ", fault=slow; latency=5ms; draw=000000000000002b.1"
        let said = try SaidDraw.read(value)
        #expect(said.map(\.rule) == [.demo(endpoint: #"a, "b; c"#, rule: "x"), .fault("slow")])
        #expect(said.map { "\($0.name)" } == ["000000000000002a.7", "000000000000002b.1"])
        #expect(said.map(\.isOverridden) == [true, false])
        #expect(said.last?.text == "fault=slow; latency=5ms; draw=000000000000002b.1")
    }

    @Test(
        arguments: [
            ("", "there is no draw in it"), (" , ", "there is no draw in it"), ("endpoint=a", "has no draw="),
            ("endpoint=a; draw=7f3a", "'7f3a' is no draw"), ("draw=000000000000002a.7", "neither endpoint= nor fault="),
            (#"endpoint="a; draw=000000000000002a.7"#, "has no draw="),
        ]
    )
    func whatCannotBeReadIsSaid(_ value: String, _ reason: String) {
        let error = #expect(throws: SaidDrawError.self) { try SaidDraw.read(value) }
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    }
}
