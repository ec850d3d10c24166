// What the calls of a group take from answers, and what their requests are with it.

import DownloadCore
import HTTPWire
import Policies
import Testing

@testable import ServiceCore

struct GroupValuesTests {
    /// Values of these names and texts.
    private static func values(_ texts: [String: String]) throws -> GroupValues {
        var values = GroupValues()
        var call = GroupCall(service: "s", path: PlaceholderText("/"))
        call.take = texts.mapValues { _ in .status }
        for (name, text) in texts {
            call.take = [name: .field("X-Value")]
            try values.take(call, status: 200, Fields([("X-Value", text)]), body: [])
        }
        return values
    }

    private static func call(_ path: String = "/a", _ change: (inout GroupCall) -> Void = { _ in }) -> GroupCall {
        var call = GroupCall(service: "s", method: "POST", path: PlaceholderText(path))
        change(&call)
        return call
    }

    @Test("a path and a query take values percent-encoded")
    func target() throws {
        let values = try Self.values(["v": "a/b c&d"])
        let call = Self.call("/x/$(v)") { $0.query = [("q", PlaceholderText("1$(v)")), ("r", PlaceholderText("2"))] }
        #expect(try values.request(call).target == "/x/a%2Fb%20c%26d?q=1a%2Fb%20c%26d&r=2")
        #expect(
            try values.request(Self.call("/x?a=1") { $0.query = [("b", PlaceholderText("2"))] }).target == "/x?a=1&b=2"
        )
    }

    @Test("a value that would make another path is refused", arguments: ["", ".", ".."])
    func dotSegments(_ text: String) throws {
        let values = try Self.values(["v": text])
        #expect(throws: BatchRefusal.self) { try values.request(Self.call("/x/$(v)")) }
        #expect(throws: BatchRefusal.self) { try values.request(Self.call("/x/$(v)/y")) }
        #expect(
            try values.request(Self.call("/x") { $0.query = [("q", PlaceholderText("$(v)"))] }).target == "/x?q=\(text)"
        )
    }

    @Test("dots that a server decodes are refused in a path, and others are not")
    func decodedDots() throws {
        let values = try Self.values(["up": "../x", "dots": "a..b", "dot": "."])
        #expect(throws: BatchRefusal.self) { try values.request(Self.call("/x/$(up)")) }
        #expect(throws: BatchRefusal.self) { try values.request(Self.call("/x/%2e$(dot)")) }
        #expect(try values.request(Self.call("/x/$(dots)/v1$(dot)")).target == "/x/a..b/v1.")
    }

    @Test(
        "a value stays one value in each kind of body",
        arguments: [
            ("{\"t\": \"$(v)\"}", nil, "{\"t\": \"a\\\"b&c\"}", "application/json"),
            ("t=$(v)", "application/x-www-form-urlencoded", "t=a%22b%26c", nil),
            ("t=$(v)", nil, "t=a\"b&c", "text/plain; charset=utf-8"),
            ("{$(v)}", "text/x", "{a\"b&c}", nil), ("$(v)", "application/problem+json; v=1", "a\\\"b&c", nil),
        ] as [(String, String?, String, String?)]
    )
    func body(_ text: String, _ type: String?, _ expected: String, _ added: String?) throws {
        let call = Self.call {
            $0.body = PlaceholderText(text)
            $0.fields = type.map { [("Content-Type", PlaceholderText($0))] } ?? []
        }
        let request = try Self.values(["v": "a\"b&c"]).request(call)
        #expect(request.body == Array(expected.utf8))
        #expect(request.fields == [.init("Content-Type", added ?? type ?? "")])
    }

    @Test("no field takes a line end, and no message shows a value")
    func lineEnd() throws {
        var values = GroupValues()
        let taking = Self.call { $0.take = ["v": .body(["t"])] }
        try values.take(taking, status: 200, Fields(), body: Array("{\"t\": \"secret\\r\\nX: y\"}".utf8))
        let call = Self.call { $0.fields = [("Authorization", PlaceholderText("Bearer $(v)"))] }
        #expect {
            try values.request(call)
        } throws: {
            let text = "\($0)"
            return text.contains("'Authorization'") && !text.contains("secret")
        }
    }

    @Test("what is not there fails, and takes nothing")
    func missing() throws {
        var values = GroupValues()
        #expect(throws: BatchRefusal.self) { try values.request(Self.call("/$(v)")) }
        let call = Self.call { $0.take = ["a": .status, "b": .field("X-B")] }
        #expect(throws: BatchRefusal.self) { try values.take(call, status: 201, Fields(), body: []) }
        #expect(values == GroupValues())
        try values.take(call, status: 201, Fields([("X-B", "2")]), body: [])
        #expect(values.value("a") == "201" && values.value("b") == "2")
    }

    @Test(
        "conditions; a value that was not taken is empty",
        arguments: [
            ("v", "1", true, true), ("v", "2", true, false), ("v", "1", false, false), ("v", "2", false, true),
            ("w", "", true, true), ("w", "", false, false), ("w", "1", true, false), ("w", "1", false, true),
        ]
    )
    func conditions(_ name: String, _ text: String, _ wantsEqual: Bool, _ expected: Bool) throws {
        let call = Self.call { $0.condition = ValueCondition(name: name, text: text, wantsEqual: wantsEqual) }
        #expect(try Self.values(["v": "1"]).allow(call) == expected)
    }

    @Test("a message has no value, as it is or percent-encoded; short ones are no secrets")
    func hiding() throws {
        let values = try Self.values(["v": "se/cret", "longer": "a se/cret", "n": "7"])
        #expect(values.hidden(in: "7 a se/cret, se/cret, se%2Fcret") == "7 $(longer), $(v), $(v)")
    }

    @Test func labelsTellCallsApart() {
        let calls = ["/a/$(v)", "/b", "/b"].map { Self.call($0) }
        #expect(GroupPlan(name: "g", calls: calls).labels == ["s /a/$(v)", "s /b", "s /b (2)"])
    }
}
