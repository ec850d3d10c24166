// JSON texts (RFC 8259) as trees: parsed strictly and within limits, and searched for one value.

/// Reads one text; the recursion is as deep as the limits allow.
package struct JSONReader {
    // The caller of `read` holds the bytes while a reader exists.
    private let bytes: UnsafeBufferPointer<UInt8>
    private let base: UnsafePointer<UInt8>
    private let limits: TreeLimits
    private let repeats: Bool
    private var tokenizer: JSONTokenizer
    private var position = 0
    private var count = 0

    private init(
        _ bytes: UnsafeBufferPointer<UInt8>,
        _ base: UnsafePointer<UInt8>,
        _ limits: TreeLimits,
        _ repeats: Bool
    ) {
        self.bytes = bytes
        self.base = base
        self.limits = limits
        self.repeats = repeats
        tokenizer = JSONTokenizer(depth: limits.depth)
        // A byte order mark may be ignored (RFC 8259 section 8.1).
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
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
        try bytes.withUnsafeBufferPointer { bytes throws(TreeError) in
            guard let base = bytes.baseAddress, !bytes.isEmpty else {
                throw TreeError("the text ends early, at byte 0")
            }
            var reader = JSONReader(bytes, base, limits, repeats)
            return try reader.whole()
        }
    }

    private mutating func whole() throws(TreeError) -> ContentTree {
        let value = try value(try next())
        while position < bytes.count, JSONTokenizer.isSpace(bytes[position]) { position += 1 }
        guard position == bytes.count else { throw error("something follows the value") }
        return value
    }

    private func error(_ what: String) -> TreeError { TreeError("\(what), at byte \(position)") }

    private func error(_ fault: JSONFault) -> TreeError {
        switch fault.kind {
        case .end: error("the text ends early")
        case .value: error("this is no JSON value")
        case .comma: error("a comma is missing")
        case .colon: error("a colon is missing")
        case .name: error("the name of a member is missing")
        case .digits: error("digits are missing")
        case .depth: error("more than \(limits.depth) objects and arrays are nested")
        case .control: error("a control character is not escaped")
        case .escape: error("this escape is unknown")
        case .hexadecimal: error("four hexadecimal digits are missing")
        case .utf8: error("this is not UTF-8")
        }
    }

    private mutating func next() throws(TreeError) -> JSONTokenizer.Token {
        do throws(JSONFault) {
            if let token = try tokenizer.next(base, &position, bytes.count, isLast: true) { return token }
        } catch {
            throw self.error(error)
        }
        throw error("the text ends early")
    }

    /// The bytes of the token that was just read.
    private var token: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[tokenizer.start..<position])
    }

    /// The value that begins with a token.
    private mutating func value(_ token: JSONTokenizer.Token) throws(TreeError) -> ContentTree {
        count += 1
        guard count <= limits.values else {
            position = tokenizer.start
            throw error("there are more than \(limits.values) values")
        }
        switch token {
        case .objectBegins: return try object()
        case .arrayBegins: return try array()
        case .text: return .string(try text())
        case .number: return .number(String(decoding: self.token, as: UTF8.self))
        case .literal:
            let first = bytes[tokenizer.start]
            return first == UInt8(ascii: "n") ? .null : .bool(first == UInt8(ascii: "t"))
        case .objectEnds, .arrayEnds, .name: throw error("this is no JSON value")
        }
    }

    private mutating func array() throws(TreeError) -> ContentTree {
        var values: [ContentTree] = []
        while true {
            let token = try next()
            if token == .arrayEnds { return .array(values) }
            values.append(try value(token))
        }
    }

    private mutating func object() throws(TreeError) -> ContentTree {
        var members: [ContentTree.Member] = []
        var indices: [MemberName: Int] = [:]
        while try next() == .name {
            let name = try text()
            // Other parsers might choose another one of two members.
            let known = indices[MemberName(name)]
            guard known == nil || repeats else { throw error("the member '\(name)' occurs twice") }
            let member = ContentTree.Member(name, try value(try next()))
            if let known {
                members[known] = member
            } else {
                indices[MemberName(name)] = members.count
                members.append(member)
            }
        }
        return .object(members)
    }

    /// The text of the string, or the name, that was just read.
    private mutating func text() throws(TreeError) -> String {
        let inner = UnsafeBufferPointer(rebasing: token.dropFirst().dropLast())
        guard inner.contains(UInt8(ascii: "\\")) else { return String(decoding: inner, as: UTF8.self) }
        var half: Int?
        let text = JSONTokenizer.unescaped(UnsafeRawBufferPointer(inner), half: &half)
        if let half {
            position = tokenizer.start + 1 + half
            throw error("half of a surrogate pair is missing")
        }
        return String(decoding: text, as: UTF8.self)
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
        var node = tree
        for key in path {
            switch node {
            case .object:
                guard let member = node[key] else { throw JSONLookupError("there is no '\(key)'") }
                node = member
            case .array(let values):
                guard let position = Int(key), values.indices.contains(position) else {
                    throw JSONLookupError("an array has no position '\(key)'")
                }
                node = values[position]
            default: throw JSONLookupError("there is nothing within a text or a number, and so no '\(key)'")
            }
        }
        return node
    }
}
