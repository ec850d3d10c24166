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
}
