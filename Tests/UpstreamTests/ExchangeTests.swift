// One request and its response: what goes out byte for byte, what comes in, and how connections are used again.

import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct ExchangeTests {
    @Test func `a response comes with its head, its bytes and its end, in that order`() throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("X-One", "1")], "hello") }
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.get("\(origin.url)/a?b=c")
        #expect(heard.head?.status == 200)
        #expect(heard.head?.reason == "Scripted")
        #expect(heard.head?.fields.first("x-one") == "1")
        #expect(heard.framing == .length(5))
        #expect(heard.text == "hello")
        #expect(heard.calls == "hbf")
        #expect(origin.log.first?.target == "/a?b=c")
    }
}
