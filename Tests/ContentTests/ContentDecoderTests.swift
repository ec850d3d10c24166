// Content codings that are taken off as fast as somebody takes what comes out.

import TestSupport
import Testing

@testable import Content

@Suite struct ContentDecoderTests {
    /// What came out, and the most that came out from one stop to the next.
    private func decode(_ codings: [ContentCoding], _ body: [UInt8]) throws -> (whole: [UInt8], most: Int) {
        let decoder = ContentDecoder(codings)
        var (whole, most, now): ([UInt8], Int, Int) = ([], 0, 0)
        func push(_ bytes: UnsafeRawBufferPointer) throws {
            now = 0
            try decoder.push(bytes) { piece in
                whole += piece
                now += piece.count
                return false
            }
            most = max(most, now)
        }
        let half = body.count / 2
        try body.withUnsafeBytes { try push(UnsafeRawBufferPointer(rebasing: $0[..<half])) }
        // What comes meanwhile is kept behind the rest.
        body.withUnsafeBytes { bytes in
            if decoder.isStopped { decoder.keep(UnsafeRawBufferPointer(rebasing: bytes[half...])) }
        }
        if !decoder.isStopped { try body.withUnsafeBytes { try push(UnsafeRawBufferPointer(rebasing: $0[half...])) } }
        while decoder.isStopped { try push(UnsafeRawBufferPointer(start: nil, count: 0)) }
        #expect(decoder.isAtEnd)
        return (whole, most)
    }

    @Test("whoever stops gets the rest later, byte by byte, and never more at a time than one piece")
    func stops() throws {
        let document = try decode([.gzip], Coded.longDocument(strings: 50))
        let filler = "\"" + String(repeating: "x", count: 4000) + "\","
        #expect(
            document.whole
                == Array((#"{"user": {"name": ["# + String(repeating: filler, count: 50) + "0]}}").utf8)
        )
        #expect(document.most <= 32 * 1024)
        // 3 MB of one letter, in gzip twice: 73 bytes.
        let twice = bytes(
            hex:
                "1f8b080000000000020393efe660000126e6b7071919818ca605b7cfe57b3830328c8251300a46c1281805a360148c8251300aa800"
                + "f4d9fafd5f7e38704c970100d6ebb21f7d0b0000"
        )
        let letters = try decode([.gzip, .gzip], twice)
        #expect(letters.whole.count == 3_000_000 && letters.whole.allSatisfy { $0 == UInt8(ascii: "x") })
        #expect(letters.most <= 32 * 1024)
        for (name, body) in Coded.jsonBy where name != "identity" {
            let coding: ContentCoding = name == "br" ? .brotli : name == "gzip" ? .gzip : .deflate
            #expect(try decode([coding], body).whole == Coded.json, "\(name)")
        }
    }
}
