// The class table against the definitions of the RFCs, byte by byte.

import Testing

@testable import HTTPWire

@Suite("Byte classes")
struct ByteClassTests {
    @Test("The table says what RFC 9110 and RFC 3986 say", arguments: UInt8.min...UInt8.max)
    func table(byte: UInt8) {
        let bits = ByteClass.table[Int(byte)]
        let isAlphanumeric =
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        #expect((bits & ByteClass.token != 0) == (isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte)))
        #expect((bits & ByteClass.value != 0) == (byte == 9 || (byte >= 32 && byte != 127)))
        #expect((bits & ByteClass.target != 0) == (byte > 32 && byte < 127 && byte != UInt8(ascii: "#")))
        #expect((bits & ByteClass.hex != 0) == "0123456789abcdefABCDEF".utf8.contains(byte))
        #expect((bits & ByteClass.unreserved != 0) == (isAlphanumeric || "-._~".utf8.contains(byte)))
    }

    @Test("The end of a target is found wherever it is, and whatever byte it is", arguments: UInt8.min...UInt8.max)
    func skipTarget(byte: UInt8) {
        let mayStand = ByteClass.table[Int(byte)] & ByteClass.target != 0
        // Beside it stand the bytes that come nearest to those that may not: they must not
        // hide it, nor be taken for it.
        for neighbour in [0x21, 0x22, 0x24, 0x7E, 0x7F, 0x20, 0xFF] as [UInt8] {
            let isEnd = ByteClass.table[Int(neighbour)] & ByteClass.target == 0
            for position in 0..<20 {
                var bytes = [UInt8](repeating: isEnd ? 0x61 : neighbour, count: 20)
                bytes[position] = byte
                if isEnd, position < 19 { bytes[position + 1] = neighbour }
                let expected = !mayStand ? position : isEnd && position < 19 ? position + 1 : 20
                let found = ByteClass.skipTarget(bytes.span.bytes, from: 0, to: 20)
                #expect(found == expected)
            }
        }
    }
}
