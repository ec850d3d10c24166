// Heads, chunks and numbers as bytes.

import HTTPWire
import Testing

@Suite("Serializer")
struct SerializerTests {
    @Test("A request head")
    func request() {
        var out: [UInt8] = []
        let head = RequestHead(method: .other("PURGE"), target: "/a?b", fields: Fields([("Host", "h"), ("x", "")]))
        Serializer.write(head, into: &out)
        #expect(text(out) == "PURGE /a?b HTTP/1.1\r\nHost: h\r\nx: \r\n\r\n")
    }

    @Test("A response head; the reason cannot end its line")
    func response() {
        var out: [UInt8] = []
        let head = ResponseHead(status: 404, reason: "No\r\nt \u{E9}", version: .http10, fields: Fields([("Age", "1")]))
        Serializer.write(head, into: &out)
        #expect(out == bytes("HTTP/1.0 404 No  t \u{E9}\r\nAge: 1\r\n\r\n"))
    }

    @Test(
        "Chunk size lines are lower-case hexadecimal; none for a size that would end the body",
        arguments: [
            (1, "1\r\n"), (15, "f\r\n"), (16, "10\r\n"), (0xABCDE, "abcde\r\n"), (.max, "7fffffffffffffff\r\n"),
            (0, ""), (-1, ""),
        ]
    )
    func chunkHeader(count: Int, line: String) {
        var out: [UInt8] = []
        Serializer.chunkHeader(count, into: &out)
        #expect(text(out) == line)
    }

    @Test("The last chunk with and without trailers")
    func lastChunk() {
        var out: [UInt8] = []
        Serializer.lastChunk(into: &out)
        Serializer.lastChunk(trailers: Fields([("X", "1")]), into: &out)
        #expect(text(out) == "0\r\n\r\n0\r\nX: 1\r\n\r\n")
    }

    @Test("Decimal numbers", arguments: [0, 9, 10, 99, 100, 1_234_567_890, -1, .max, .min] as [Int64])
    func decimal(value: Int64) {
        let expected = String(value)
        var out = [UInt8](repeating: 0x23, count: expected.utf8.count + 2)
        let end = out.withUnsafeMutableBytes { Serializer.appendDecimal(value, into: $0, at: 1) }
        #expect(end == expected.utf8.count + 1)
        #expect(text(out) == "#\(expected)#")
        var short = [UInt8](repeating: 0x23, count: expected.utf8.count - 1)
        #expect(short.withUnsafeMutableBytes { Serializer.appendDecimal(value, into: $0, at: 0) } == 0)
        #expect(short.allSatisfy { $0 == 0x23 })
    }

    @Test("Methods: exact names, safety, idempotence (RFC 9110 9.2)")
    func methods() {
        for name in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"] {
            #expect(Method(name).name == name)
            #expect(Method(name) != .other(name))
            #expect(Method(name.lowercased()) == .other(name.lowercased()))
        }
        #expect(Method.get.isSafe && !Method.post.isSafe && !Method.other("get").isSafe)
        #expect(Method.put.isIdempotent && !Method.put.isSafe && !Method.post.isIdempotent && Method.trace.isIdempotent)
    }
}
