// The id of a request: the client's own if it is safe in a log line, otherwise one that the daemon makes.

import HTTPWire

/// The id that shows which lines of both logs, and of the origin's, belong to one request.
enum RequestID: Sendable, Equatable {
    case taken(String)
    case made(UInt64)

    /// The name of the field that carries the id.
    static let field: StaticString = "X-Request-Id"
    static let fieldName = "X-Request-Id"
    /// The largest length of a client's id in bytes; a longer one is replaced.
    static let longest = 128

    var text: String {
        switch self {
        case .taken(let text): text
        case .made(let number): Self.withText(of: number) { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// True if a client's id may be used: it is neither empty nor too long, and has only letters, digits and
    /// `-_.:=+/@`, so that no log line has to escape it.
    static func isSafe(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard 1...longest ~= bytes.count else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "-")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "="), UInt8(ascii: "+"),
                UInt8(ascii: "@"):
                true
            default: false
            }
        }
    }

    /// Calls `body` with the sixteen hexadecimal digits of an id that the daemon has made.
    static func withText<Result>(of number: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { buffer in
            buffer.storeBytes(of: digits(number >> 32).littleEndian, toByteOffset: 0, as: UInt64.self)
            buffer.storeBytes(of: digits(number & 0xFFFF_FFFF).littleEndian, toByteOffset: 8, as: UInt64.self)
            return body(UnsafeRawBufferPointer(buffer))
        }
    }

    /// The eight hexadecimal digits of a number of 32 bits as bytes, the first one in the lowest byte.
    private static func digits(_ number: UInt64) -> UInt64 {
        // Halves, bytes and half bytes are moved, so that each half byte gets a byte of its own.
        var word = (number & 0xFFFF) << 32 | number >> 16
        word = (word & 0x0000_FF00_0000_FF00) >> 8 | (word & 0x0000_00FF_0000_00FF) << 16
        word = (word & 0x00F0_00F0_00F0_00F0) >> 4 | (word & 0x000F_000F_000F_000F) << 8
        // A byte of `letters` is 1 if its digit is a letter.
        let letters = (word &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return word &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }
}

/// Makes ids that do not repeat, with the generator SplitMix64.
struct RequestIDs {
    private var state = UInt64.random(in: 0 ... .max)

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

extension RequestHead {
    /// The client's request id; nil if there is none, or if it is not safe in a log line.
    var takenID: String? {
        guard fields.present.contains(.other), var text = fields.first(RequestID.fieldName) else { return nil }
        return text.withUTF8 { RequestID.isSafe(UnsafeRawBufferPointer($0)) } ? text : nil
    }
}
