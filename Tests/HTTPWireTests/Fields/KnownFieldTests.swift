// Names to known fields and back.

import HTTPWire
import Testing

@Suite("Known fields")
struct KnownFieldTests {
    @Test("Each is found in any case, and only by its whole name", arguments: KnownField.allCases.dropFirst())
    func found(field: KnownField) {
        let name = field.name
        #expect(find(name) == field)
        #expect(find(name.uppercased()) == field)
        #expect(find(name.lowercased()) == field)
        #expect(find(name + "x") == .other)
        #expect(find("x" + name) == .other)
        #expect(find(String(name.dropLast())) == .other)
        for position in name.indices {
            var changed = name
            changed.replaceSubrange(position...position, with: "\r")
            #expect(find(changed) == .other)
        }
    }

    @Test(
        "Other names are other",
        arguments: ["", "h", "X-Custom", "hosT ", "content_length", String(repeating: "a", count: 40)]
    )
    func other(name: String) { #expect(find(name) == .other) }

    @Test("Spelling is canonical")
    func spelling() {
        #expect(KnownField.etag.name == "ETag")
        #expect(KnownField.secWebSocketKey.name == "Sec-WebSocket-Key")
        #expect(KnownField.accessControlRequestMethod.name == "Access-Control-Request-Method")
        #expect(KnownField.other.name == "")
        #expect(KnownField.allCases.count <= 64)
    }

    @Test("A set holds each field apart")
    func set() {
        var set = FieldSet(.host, .secWebSocketKey)
        #expect(set.contains(.host) && set.contains(.secWebSocketKey) && !set.contains(.age))
        set.remove(.host)
        set.insert(.age)
        #expect(set == FieldSet(.age, .secWebSocketKey))
    }
}
