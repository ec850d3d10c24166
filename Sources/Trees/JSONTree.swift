// JSON texts (RFC 8259) as trees and back: parsed strictly and within limits, written without spaces, and searched for
// one value.

/// Reads one text; the recursion is as deep as the limits allow.
package struct JSONReader {
    private let bytes: [UInt8]
    private let limits: TreeLimits
    private let repeats: Bool
    private var position = 0
    private var depth = 0
    private var count = 0

    private init(_ bytes: [UInt8], _ limits: TreeLimits, repeats: Bool) {
        self.bytes = bytes
        self.limits = limits
        self.repeats = repeats
    }

    /// Reads a JSON text.
    /// - Parameter repeats: whether one object may have a name twice: then the last member counts.
    /// - Throws: an error if the bytes are not a JSON text, an object has a name twice without `repeats`, or a limit is
    ///   exceeded.
    package static func read(
        _ bytes: [UInt8],
        limits: TreeLimits = TreeLimits(),
        repeats: Bool = false
    ) throws(TreeError) -> ContentTree {
        var reader = JSONReader(bytes, limits, repeats: repeats)
        // A byte order mark may be ignored (RFC 8259 section 8.1).
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { reader.position = 3 }
        let value = try reader.value()
        reader.skipSpace()
        guard reader.position == bytes.count else { throw reader.error("something follows the value") }
        return value
    }

    private func error(_ what: String) -> TreeError { TreeError("\(what), at byte \(position)") }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func value() throws(TreeError) -> ContentTree {
        count += 1
        guard count <= limits.values else { throw error("there are more than \(limits.values) values") }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""): return .string(try text())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw error("the text ends early")
        default: return try number()
        }
    }

    private mutating func word(_ word: String, _ value: ContentTree) throws(TreeError) -> ContentTree {
        guard bytes[position...].starts(with: word.utf8) else { throw error("this is no JSON value") }
        position += word.utf8.count
        return value
    }

    private mutating func enter() throws(TreeError) {
        depth += 1
        guard depth <= limits.depth else { throw error("more than \(limits.depth) objects and arrays are nested") }
        position += 1
        skipSpace()
    }

    /// Takes the comma between two members, or the end.
    /// - Returns: whether another member follows.
    private mutating func goesOn(until end: UInt8) throws(TreeError) -> Bool {
        skipSpace()
        guard let byte = next else { throw error("the text ends early") }
        position += 1
        if byte == end {
            depth -= 1
            return false
        }
        guard byte == UInt8(ascii: ",") else {
            position -= 1
            throw error("a comma is missing")
        }
        return true
    }

    private mutating func array() throws(TreeError) -> ContentTree {
        try enter()
        if next == UInt8(ascii: "]") {
            _ = try goesOn(until: UInt8(ascii: "]"))
            return .array([])
        }
        var values: [ContentTree] = []
        repeat { values.append(try value()) } while try goesOn(until: UInt8(ascii: "]"))
        return .array(values)
    }

    private mutating func object() throws(TreeError) -> ContentTree {
        try enter()
        if next == UInt8(ascii: "}") {
            _ = try goesOn(until: UInt8(ascii: "}"))
            return .empty
        }
        var members: [ContentTree.Member] = []
        var places: [MemberName: Int] = [:]
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("the name of a member is missing") }
            let name = try text()
            // Other parsers might choose another one of two members.
            let known = places[MemberName(name)]
            guard known == nil || repeats else { throw error("the member '\(name)' occurs twice") }
            skipSpace()
            guard next == UInt8(ascii: ":") else { throw error("a colon is missing") }
            position += 1
            let member = ContentTree.Member(name, try value())
            if let known {
                members[known] = member
            } else {
                places[MemberName(name)] = members.count
                members.append(member)
            }
        } while try goesOn(until: UInt8(ascii: "}"))
        return .object(members)
    }

    private mutating func number() throws(TreeError) -> ContentTree {
        let start = position
        if next == UInt8(ascii: "-") { position += 1 }
        let isZero = next == UInt8(ascii: "0")
        let whole = digits()
        guard whole == 1 || whole > 1 && !isZero else {
            position = start
            throw error("this is no JSON value")
        }
        if next == UInt8(ascii: ".") {
            position += 1
            guard digits() > 0 else { throw error("digits are missing") }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            guard digits() > 0 else { throw error("digits are missing") }
        }
        return .number(String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() -> Int {
        let start = position
        while let byte = next, byte &- 0x30 < 10 { position += 1 }
        return position - start
    }

    private mutating func text() throws(TreeError) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let result = String(validating: text, as: UTF8.self) else {
                    throw error("the text before this is not UTF-8")
                }
                return result
            case UInt8(ascii: "\\"): try escape(into: &text)
            case ..<0x20:
                position -= 1
                throw error("a control character is not escaped")
            default: text.append(byte)
            }
        }
        throw error("the text ends early")
    }

    private mutating func escape(into text: inout [UInt8]) throws(TreeError) {
        guard let byte = next else { throw error("the text ends early") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): text += Array(String(Character(try scalar())).utf8)
        default: throw error("this escape is unknown")
        }
    }

    private mutating func scalar() throws(TreeError) -> Unicode.Scalar {
        let first = try unit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard (0xD800...0xDBFF).contains(first), bytes[position...].starts(with: [0x5C, 0x75]) else {
            throw error("half of a surrogate pair is missing")
        }
        position += 2
        let second = try unit()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw error("half of a surrogate pair is missing") }
        return scalar
    }

    /// Takes four hexadecimal digits.
    private mutating func unit() throws(TreeError) -> UInt32 {
        guard position + 4 <= bytes.count else { throw error("the text ends early") }
        var value: UInt32 = 0
        for byte in bytes[position..<position + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw error("four hexadecimal digits are missing")
            }
            value = value << 4 | UInt32(digit)
        }
        position += 4
        return value
    }
}

// MARK: - Writing

/// Writes a tree as a JSON text without spaces.
package enum JSONWriter {
    package static func bytes(_ tree: ContentTree) -> [UInt8] {
        var result: [UInt8] = []
        append(tree, to: &result)
        return result
    }

    private static func append(_ tree: ContentTree, to result: inout [UInt8]) {
        switch tree {
        case .null: result += Array("null".utf8)
        case .bool(let value): result += Array(String(value).utf8)
        case .number(let text): result += Array(text.utf8)
        case .string(let text): append(text: text, to: &result)
        case .data, .date: append(text: tree.scalar ?? "", to: &result)
        case .array(let values):
            result.append(UInt8(ascii: "["))
            for (place, value) in values.enumerated() {
                if place > 0 { result.append(UInt8(ascii: ",")) }
                append(value, to: &result)
            }
            result.append(UInt8(ascii: "]"))
        case .object(let members):
            result.append(UInt8(ascii: "{"))
            for (place, member) in members.enumerated() {
                if place > 0 { result.append(UInt8(ascii: ",")) }
                append(text: member.name, to: &result)
                result.append(UInt8(ascii: ":"))
                append(member.value, to: &result)
            }
            result.append(UInt8(ascii: "}"))
        }
    }

    private static func append(text: String, to result: inout [UInt8]) {
        result.append(UInt8(ascii: "\""))
        append(escaped: text, to: &result)
        result.append(UInt8(ascii: "\""))
    }

    /// Appends the text in the form between the quotes of a string.
    package static func append(escaped text: String, to result: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case 0x0A: result += Array("\\n".utf8)
            case 0x0D: result += Array("\\r".utf8)
            case 0x09: result += Array("\\t".utf8)
            case ..<0x20:
                let digits = String(byte, radix: 16)
                result += Array("\\u00\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
            default: result.append(byte)
            }
        }
    }
}

// MARK: - One value

/// The reason why a JSON text has no such value.
package struct JSONLookupError: Error, Sendable, Equatable {
    /// The reason in words, without any part of the text.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}

/// Looks up values in JSON texts. It parses the whole text, so a long one must not be read on a loop.
package enum JSONLookup {
    /// The limits of a text; values that are nested deeper are not found.
    private static let limits = TreeLimits(depth: 128, values: 1 << 20)

    /// The text, number or truth value, as text, at the end of a path of keys of objects and positions in arrays.
    /// Numbers keep their digits. The last one of members with the same name counts.
    /// - Throws: an error if the bytes are not a JSON text, or there is no such value.
    package static func text(at path: [String], in bytes: [UInt8]) throws(JSONLookupError) -> String {
        let tree: ContentTree
        do throws(TreeError) { tree = try JSONReader.read(bytes, limits: limits, repeats: true) } catch {
            throw JSONLookupError("it is not JSON")
        }
        let found = try value(at: path, in: tree)
        guard let text = found.scalar else {
            throw JSONLookupError("it is null, an object or an array, and no text, number or truth value")
        }
        return text
    }

    private static func value(at path: [String], in tree: ContentTree) throws(JSONLookupError) -> ContentTree {
        var place = tree
        for key in path {
            switch place {
            case .object:
                guard let member = place[key] else { throw JSONLookupError("there is no '\(key)'") }
                place = member
            case .array(let values):
                guard let position = Int(key), values.indices.contains(position) else {
                    throw JSONLookupError("an array has no position '\(key)'")
                }
                place = values[position]
            default: throw JSONLookupError("there is nothing within a text or a number, and so no '\(key)'")
            }
        }
        return place
    }

    /// The text in the form between the quotes of a JSON string.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 32:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
