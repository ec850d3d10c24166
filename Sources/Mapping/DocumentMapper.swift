// Maps a complete document in any format: one walk for each object and each array that a rule names.

import Trees

/// Maps one document, once; not shared.
struct DocumentMapper {
    /// The most bytes of the mapped document.
    private let limit: Int
    // The caller of `map` holds the bytes during the call, and a mapper does not outlive it.
    private let bytes: UnsafePointer<UInt8>
    private let end: Int
    private var output: [UInt8] = []
    private var skipper = JSONTokenizer(depth: MappingPlan.depthLimit)
    /// The ranges of the values for the objects that are being mapped; nil for missing values.
    private var found: [Range<Int>?] = []

    /// Maps a JSON text by a rule.
    /// - Parameters:
    ///   - bytes: one JSON text.
    ///   - isKnown: whether the bytes are known to be one, without spaces around it.
    ///   - limit: the most bytes of the result.
    /// - Returns: nil if the rule leaves the value out.
    static func map(
        _ bytes: UnsafeRawBufferPointer,
        _ rule: MappingRule,
        isKnown: Bool = false,
        limit: Int
    ) throws(MappingFailure) -> [UInt8]? {
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { throw MappingFailure("it is empty") }
        var mapper = DocumentMapper(limit: limit, bytes: base, end: bytes.count)
        if isKnown { return try mapper.take(rule, 0..<bytes.count) ? mapper.output : nil }
        let start = mapper.space(bytes.starts(with: [0xEF, 0xBB, 0xBF] as [UInt8]) ? 3 : 0)
        if start == bytes.count { throw MappingFailure("it is empty") }
        let stop = try mapper.skip(start)
        guard mapper.space(stop) == bytes.count else { throw .grammar }
        return try mapper.take(rule, start..<stop) ? mapper.output : nil
    }

    /// Maps by a rule from a given value, or from one inside of it.
    /// - Parameter way: the path to the value, in place of the rule's own; nil to use the given value itself.
    static func map(
        _ value: UnsafeRawBufferPointer,
        _ rule: MappingRule,
        along way: PathTree?,
        limit: Int
    ) throws(MappingFailure) -> [UInt8]? {
        guard let base = value.bindMemory(to: UInt8.self).baseAddress else { throw .end }
        var mapper = DocumentMapper(limit: limit, bytes: base, end: value.count)
        return try mapper.take(rule, along: way, 0..<value.count) ? mapper.output : nil
    }

    private init(limit: Int, bytes: UnsafePointer<UInt8>, end: Int) {
        self.limit = limit
        self.bytes = bytes
        self.end = end
    }

    // MARK: - Rules

    /// Appends the result of the rule for the value at its path.
    /// - Returns: false if it is left out.
    private mutating func take(_ rule: MappingRule, _ value: Range<Int>) throws(MappingFailure) -> Bool {
        try take(rule, along: rule.pathTree, value)
    }

    private mutating func take(
        _ rule: MappingRule,
        along way: PathTree?,
        _ value: Range<Int>
    ) throws(MappingFailure) -> Bool {
        guard let tree = way else { return try make(rule, value) }
        let base = found.count
        found.append(nil)
        defer { found.removeLast(found.count - base) }
        _ = try walk(tree, 0, value.lowerBound, base)
        return try make(rule, found[base])
    }

    /// Appends the result of the rule for a value; nil if the value is missing.
    private mutating func make(_ rule: MappingRule, _ value: Range<Int>?) throws(MappingFailure) -> Bool {
        guard let value, bytes[value.lowerBound] != UInt8(ascii: "n") else { return try makeMissing(rule) }
        switch rule.shape {
        case .same: output += UnsafeBufferPointer(start: bytes + value.lowerBound, count: value.count)
        case .converted(let type, let format):
            let raw = UnsafeRawBufferPointer(start: bytes + value.lowerBound, count: value.count)
            try ValueConversion.convert(raw, to: type, format, into: &output)
        case .each(let inner): try makeArray(inner, value)
        case .object(let members): try makeObject(rule, members, value)
        }
        guard output.count <= limit else { throw .tooLong(limit) }
        return true
    }

    private mutating func makeMissing(_ rule: MappingRule) throws(MappingFailure) -> Bool {
        guard let bytes = try rule.whereMissing() else { return false }
        output += bytes
        guard output.count <= limit else { throw .tooLong(limit) }
        return true
    }

    private mutating func makeArray(_ rule: MappingRule, _ value: Range<Int>) throws(MappingFailure) {
        guard bytes[value.lowerBound] == UInt8(ascii: "[") else { throw .noArray }
        output.append(UInt8(ascii: "["))
        var position = space(value.lowerBound + 1)
        var number = 0
        var isFirst = true
        while bytes[position] != UInt8(ascii: "]") {
            let stop = try skip(position)
            let mark = output.count
            if !isFirst { output.append(UInt8(ascii: ",")) }
            do throws(MappingFailure) {
                if try take(rule, position..<stop) { isFirst = false } else { output.removeLast(output.count - mark) }
            } catch {
                throw error.within("[\(number)]")
            }
            number += 1
            position = space(stop)
            if bytes[position] == UInt8(ascii: ",") { position = space(position + 1) }
        }
        output.append(UInt8(ascii: "]"))
    }

    private mutating func makeObject(
        _ rule: MappingRule,
        _ members: [MappingRule.Member],
        _ value: Range<Int>
    ) throws(MappingFailure) {
        guard let tree = rule.memberTree else { return }
        let base = found.count
        for _ in members { found.append(nil) }
        defer { found.removeLast(found.count - base) }
        _ = try walk(tree, 0, value.lowerBound, base)
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        for (slot, member) in members.enumerated() {
            let mark = output.count
            if !isFirst { output.append(UInt8(ascii: ",")) }
            output += member.lead
            do throws(MappingFailure) {
                if try make(member.rule, found[base + slot]) {
                    isFirst = false
                } else {
                    output.removeLast(output.count - mark)
                }
            } catch {
                throw error.within(member.name)
            }
        }
        output.append(UInt8(ascii: "}"))
    }

    // MARK: - The source

    /// Records the ranges of the values of a tree, from the value at `start`; the last one of members with the same
    /// name counts.
    /// - Returns: the end of the value.
    private mutating func walk(_ tree: PathTree, _ node: Int, _ start: Int, _ base: Int) throws(MappingFailure) -> Int {
        var position = start
        let isObject = bytes[start] == UInt8(ascii: "{")
        if tree.nodes[node].children.isEmpty || !isObject && bytes[start] != UInt8(ascii: "[") {
            position = try skip(start)
        } else {
            position = space(start + 1)
            var number = 0
            while bytes[position] != (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                var child: Int?
                if isObject {
                    let name = position + 1
                    position = try endOfText(name)
                    child = tree.child(
                        node,
                        name: UnsafeRawBufferPointer(start: bytes + name, count: position - name - 1)
                    )
                    position = space(space(position) + 1)
                } else {
                    child = tree.child(node, element: number)
                    number += 1
                }
                if let child {
                    for slot in tree.nodes[child].below { found[base + slot] = nil }
                    position = try walk(tree, child, position, base)
                } else {
                    position = try skip(position)
                }
                position = space(position)
                if bytes[position] == UInt8(ascii: ",") { position = space(position + 1) }
            }
            position += 1
        }
        for slot in tree.nodes[node].slots { found[base + slot] = start..<position }
        return position
    }

    private func space(_ start: Int) -> Int {
        var position = start
        while position < end, bytes[position].isSpaceOfJSON { position += 1 }
        return position
    }

    private func endOfText(_ start: Int) throws(MappingFailure) -> Int {
        var position = start
        do throws(JSONFault) {
            guard try JSONTokenizer.text(bytes, &position, end) else { throw JSONFault(.end, isAtEnd: true) }
            return position
        } catch {
            throw MappingFailure(error)
        }
    }

    private mutating func skip(_ start: Int) throws(MappingFailure) -> Int {
        skipper.restart()
        do throws(JSONFault) { return try skipper.advance(bytes, from: start, to: end, isLast: true) } catch {
            throw MappingFailure(error)
        }
    }
}

extension UInt8 {
    /// The same as `JSONTokenizer.isSpace`, which a walk over a document would call over the border of its module, for
    /// each byte of structure.
    var isSpaceOfJSON: Bool { self == 0x20 || self == 0x0A || self == 0x0D || self == 0x09 }
}

extension MappingFailure {
    static let grammar = MappingFailure("the document is not well-formed JSON")
    static let end = MappingFailure("the document ends too early")
    static let depth = levels(MappingPlan.depthLimit)
    static let noArray = MappingFailure("it is no array")

    init(_ fault: JSONFault) {
        self =
            if fault.isAtEnd { .end } else if fault.kind == .depth { .depth } else { .grammar }
    }

    /// - Parameter limit: the most bytes that the property list may have as JSON.
    init(_ fault: PropertyListFault, limit: Int) {
        self =
            switch fault {
            case .malformed: MappingFailure("the document is no well-formed property list")
            case .depth: .levels(PropertyListBounds.depth)
            case .number: MappingFailure("the property list has a number that JSON has no form for")
            case .length: .tooLong(limit)
            }
    }

    private static func levels(_ limit: Int) -> MappingFailure {
        MappingFailure("the document has more than \(limit) levels")
    }

    static func tooLong(_ limit: Int) -> MappingFailure {
        MappingFailure("the mapped document would have more than \(limit) bytes")
    }
}

extension MappingRule {
    /// The text for a missing value; nil if it is left out.
    func whereMissing() throws(MappingFailure) -> [UInt8]? {
        if let standIn { return standIn }
        switch missing {
        case .null: return JSONWriter.null
        case .omit: return nil
        case .error: throw MappingFailure("'\(from.text)' is missing")
        }
    }
}

// MARK: - Documents in any form

// Maps a complete document in any format: JSON, or a property list as XML or binary.
extension MappingPlan {
    /// The most levels of nested arrays and objects in a document.
    static let depthLimit = 512

    /// The mapped document.
    /// - Parameters:
    ///   - bytes: the document.
    ///   - limit: the most bytes of the document; the result may have eight times as many.
    /// - Throws: the reason why it cannot be mapped, with the key path.
    package func map(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(MappingFailure) -> [UInt8] {
        guard bytes.count <= limit else { throw MappingFailure("the document has more than \(limit) bytes") }
        guard Self.isPropertyList(bytes) else { return try mapJSON(bytes, limit: limit) }
        let text: [UInt8]
        do throws(PropertyListFault) { text = try PropertyListReader.json(bytes, limit: limit * 8) } catch {
            throw MappingFailure(error, limit: limit * 8)
        }
        return try text.withUnsafeBytes { text -> Result<[UInt8], MappingFailure> in
            do throws(MappingFailure) { return .success(try mapJSON(text, limit: limit)) } catch {
                return .failure(error)
            }
        }.get()
    }

    private func mapJSON(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(MappingFailure) -> [UInt8] {
        // A whole document is never left out.
        try DocumentMapper.map(bytes, root, limit: limit * 8) ?? JSONWriter.null
    }

    /// Whether a document with this beginning is not JSON, but may be a property list, which has to be complete to be
    /// mapped.
    package static func isPropertyList(_ start: UnsafeRawBufferPointer) -> Bool {
        PropertyListReader.isPropertyList(start)
    }
}
