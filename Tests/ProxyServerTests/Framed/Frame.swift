// The toy framing of the second carrier: frames with a length, in which heads, content and ends of several exchanges
// follow one another in any order.

import HTTPWire

/// A frame: kind, number of the exchange and length, nine bytes, and then its content.
struct Frame: Equatable {
    enum Kind: UInt8 {
        /// A request that content follows, and one that ends with its head.
        case post = 1, ask
        /// Of answers, and of what comes before them.
        case head, interim
        case content
        /// The end in order; its content is the trailers.
        case end
        /// The end that is none: of an answer that is incomplete, or of a client that wants no more of it.
        case reset
        /// What no client understands: a fault on the wire.
        case garbage
    }

    static let headLength = 9
    /// Longer content is several frames.
    static let longest = 16 << 10

    var kind: Kind
    var number: UInt32
    var content: [UInt8] = []

    static func head(_ kind: Kind, _ number: UInt32, _ length: Int) -> [UInt8] {
        [kind.rawValue] + Self.bytes(number) + Self.bytes(UInt32(length))
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    var bytes: [UInt8] { Self.head(kind, number, content.count) + content }

    /// The count of bytes that the content has, or will have.
    private(set) var length: Int

    /// The frame at the beginning of these bytes; nil if they do not hold the whole.
    init?(_ bytes: [UInt8]) {
        guard let frame = Frame(headOf: bytes), bytes.count >= Self.headLength + frame.length else { return nil }
        self = frame
        content = Array(bytes[Self.headLength..<Self.headLength + length])
    }

    /// A frame without its content yet; nil if these bytes do not begin with the head of one.
    init?(headOf bytes: [UInt8]) {
        guard bytes.count >= Self.headLength, let kind = Kind(rawValue: bytes[0]) else { return nil }
        self.init(kind: kind, number: Self.number(bytes[1..<5]))
        length = Int(Self.number(bytes[5..<9]))
    }

    init(kind: Kind, number: UInt32, content: [UInt8] = []) {
        (self.kind, self.number, self.content, length) = (kind, number, content, content.count)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}

/// A head as the content of a frame: a first line, and one for each field.
struct FramedHead: Equatable {
    var first: String
    var fields: [(name: String, value: String)] = []

    static func == (left: FramedHead, right: FramedHead) -> Bool { left.bytes == right.bytes }

    init(_ first: String, _ fields: [(String, String)] = []) {
        self.first = first
        self.fields = fields.map { ($0.0, $0.1) }
    }

    init(_ bytes: [UInt8]) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        first = lines.first.map(String.init) ?? ""
        fields = lines.dropFirst().filter { !$0.isEmpty }.map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), String(parts[1].dropFirst()))
        }
    }

    var bytes: [UInt8] { Array(([first] + fields.map { "\($0.name): \($0.value)" }).joined(separator: "\n").utf8) }
}
