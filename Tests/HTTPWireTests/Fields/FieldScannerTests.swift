// Field values byte by byte: what may stand at which index, whatever the eight-byte steps of the scan.

import HTTPWire
import Testing

@Suite("Field values")
struct FieldScannerTests {
    @Test(
        "RFC 9110 5.5: visible bytes, obs-text, SP and HTAB may stand anywhere inside a value",
        arguments: [0x09, 0x20, 0x21, 0x7E, 0x80, 0x9F, 0xA0, 0xFF] as [UInt8]
    )
    func allowed(byte: UInt8) {
        forEachIndex(byte) { value, index in
            let fields: [UInt8] = bytes("X:") + [0x61] + value + [0x61, 0x0D, 0x0A]
            var parser = RequestParser()
            let head = bytes("GET / HTTP/1.1\r\nHost: a\r\n") + fields + [0x0D, 0x0A]
            guard case .taken(let seen) = parseRequest(head, ends: [head.count], with: &parser) else {
                Issue.record("refused at \(index) of \(value.count)")
                return
            }
            #expect(seen.head.fields.first("X") == text([0x61] + value + [0x61]))
        }
    }

    @Test(
        "RFC 9110 5.5: no other control may stand anywhere in a value",
        arguments: Array(0x00...0x08) + [0x0A, 0x0B, 0x0C] + Array(0x0E...0x1F) + [0x7F] as [UInt8]
    )
    func refused(byte: UInt8) {
        forEachIndex(byte) { value, index in
            let start = bytes("GET / HTTP/1.1\r\nHost: a\r\nX:")
            var parser = RequestParser()
            let head = start + value + [0x0D, 0x0A, 0x0D, 0x0A]
            let reason: WireReason = byte == 0x0A ? .bareLineFeed : .fieldValueControl
            #expect(
                parseRequest(head, ends: [head.count], with: &parser)
                    == .refused(WireError(reason, side: .request, offset: start.count + index))
            )
        }
    }

    @Test("RFC 9110 5.1: each byte at each place of a name is taken or refused by its class")
    func names() {
        let start = bytes("GET / HTTP/1.1\r\nHost: a\r\n")
        let tokens = Set(bytes("!#$%&'*+-.^_`|~0123456789")).union(0x41...0x5A).union(0x61...0x7A)
        for byte in UInt8.min...UInt8.max {
            for length in 1...18 {
                for index in 0..<length {
                    var name = [UInt8](repeating: length % 2 == 0 ? 0x5A : 0x61, count: length)
                    name[index] = byte
                    var parser = RequestParser()
                    let head = start + name + bytes(":y\r\n\r\n")
                    switch parseRequest(head, ends: [head.count], with: &parser) {
                    case .taken(let seen):
                        // A colon ends a name that is not empty.
                        #expect(tokens.contains(byte) || byte == 0x3A && index > 0)
                        let found = byte == 0x3A ? Array(name[..<index]) : name
                        #expect(seen.head.fields.lines.last?.name == text(found))
                    case .refused(let error):
                        #expect(!tokens.contains(byte))
                        // A CR where a line begins ends the section.
                        #expect(error.offset == start.count + index || byte == 0x0D && index == 0)
                    case .incomplete: Issue.record("\(byte) at \(index) of \(length)")
                    }
                }
            }
        }
    }

    /// Values of 1 to 20 bytes, obs-text around the byte in every second one, with the byte at every index.
    func forEachIndex(_ byte: UInt8, _ body: (_ value: [UInt8], _ index: Int) -> Void) {
        for length in 1...20 {
            for index in 0..<length {
                var value = [UInt8](repeating: length % 2 == 0 ? 0x80 : 0x61, count: length)
                value[index] = byte
                body(value, index)
            }
        }
    }
}
