// Property lists: the limits of one that is decoded, and a tree written as one in XML.

import HTTPWire

/// The limits of a property list that is decoded. The decoder reports all other mistakes.
package enum PropertyListBounds {
    /// The most levels of nested arrays and dictionaries.
    package static let depth = 128
    /// The number of values that any list may have; a longer list may have as many as it has bytes.
    private static let values = 100_000

    /// The reason why a property list must not be decoded; nil if it may be.
    package static func fault(in bytes: UnsafeRawBufferPointer) -> String? {
        do throws(TreeError) {
            try check(bytes)
            return nil
        } catch {
            return error.description
        }
    }

    private static func check(_ bytes: UnsafeRawBufferPointer) throws(TreeError) {
        if bytes.starts(with: "bplist".utf8) {
            var list = try BinaryShape(bytes, values: max(values, bytes.count))
            try list.check()
        } else if let units = utf16(bytes) {
            // The decoder accepts UTF-16, too.
            let text = Array(String(decoding: units, as: UTF16.self).utf8)
            if let reason = text.withUnsafeBytes({ fault(in: $0) }) { throw TreeError(reason) }
        } else {
            try checkXML(bytes)
        }
    }

    fileprivate static let tooDeep = TreeError("it is nested more than \(depth) levels deep")

    // MARK: - XML

    /// The units of a text in UTF-16; nil for every other text.
    private static func utf16(_ bytes: UnsafeRawBufferPointer) -> [UInt16]? {
        guard bytes.count >= 4 else { return nil }
        let isBig: Bool
        switch (bytes[0], bytes[1]) {
        case (0xFE, 0xFF), (0, 1...): isBig = true
        case (0xFF, 0xFE), (1..., 0): isBig = false
        default: return nil
        }
        return stride(from: 0, to: bytes.count - 1, by: 2).map { offset in
            let (first, second) = (UInt16(bytes[offset]), UInt16(bytes[offset + 1]))
            return isBig ? first << 8 | second : second << 8 | first
        }
    }

    /// Checks the depth of nested elements. An unclosed one is left to the decoder, which stops there.
    private static func checkXML(_ bytes: UnsafeRawBufferPointer) throws(TreeError) {
        var offset = 0
        var open = 0
        while let start = bytes.offset(of: "<", from: offset) {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
            let mark = skipped.first { rest.starts(with: $0.start.utf8) }
            guard let end = bytes.offset(of: mark?.end ?? ">", from: start + (mark?.start.utf8.count ?? 1)) else {
                return
            }
            offset = end + (mark?.end.utf8.count ?? 1)
            if let mark {
                // Property lists have no declarations of their own, inside of which a tag would not be one.
                if mark.start == "<!", bytes[start..<end].contains(UInt8(ascii: "[")) {
                    throw TreeError("it has declarations of its own")
                }
            } else if rest.count > 1, rest[1] == UInt8(ascii: "/") {
                open -= 1
                guard open >= 0 else { throw TreeError("an element ends that has not begun") }
            } else if bytes[end - 1] != UInt8(ascii: "/") {
                open += 1
                // The list itself is an element, and so is each of its scalars.
                guard open <= depth + 2 else { throw tooDeep }
            }
        }
    }

    /// The beginnings of markup that is not an element, each with its end; the longest come first.
    private static let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<!", ">"), ("<?", "?>")]
        .map { (start: $0.0, end: $0.1) }
}

/// The objects of a binary list and their contents; used once.
private struct BinaryShape {
    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private let mostValues: Int
    private let objects: BinaryObjects
    /// The levels and the number of values of the objects that were examined; a value counts for each reference to it.
    private var known: [Int: (levels: Int, values: Int)] = [:]
    private var references = 0

    init(_ bytes: UnsafeRawBufferPointer, values: Int) throws(TreeError) {
        self.bytes = bytes
        mostValues = values
        objects = try Self.wellFormed { () throws(PropertyListFault) in try BinaryObjects(bytes) }
    }

    /// The result of reading a part of the table.
    private static func wellFormed<Value>(_ read: () throws(PropertyListFault) -> Value) throws(TreeError) -> Value {
        do throws(PropertyListFault) { return try read() } catch {
            throw TreeError("it is no well-formed property list")
        }
    }

    mutating func check() throws(TreeError) { _ = try look(objects.top, level: 0) }

    /// Counts the levels and values of an object. Each object is examined once; one that contains itself is too deep.
    private mutating func look(_ object: Int, level: Int) throws(TreeError) -> (levels: Int, values: Int) {
        if let found = known[object] {
            guard level + found.levels <= PropertyListBounds.depth else { throw PropertyListBounds.tooDeep }
            return found
        }
        let objects = objects
        let offset = try Self.wellFormed { () throws(PropertyListFault) in try objects.offset(of: object) }
        var found = (levels: 0, values: 1)
        let kind = bytes[offset] >> 4
        // These kinds are arrays, sets and dictionaries.
        if kind == 10 || kind == 12 || kind == 13 {
            guard level < PropertyListBounds.depth else { throw PropertyListBounds.tooDeep }
            let low = Int(bytes[offset] & 15)
            var first = offset + 1
            let count = try Self.wellFormed { () throws(PropertyListFault) in try objects.count(low, &first) }
            let total = kind == 13 ? 2 * count : count
            references += total
            guard references <= mostValues else { throw tooMany }
            for index in 0..<total {
                let next = first + index * objects.referenceSize
                let inner = try look(
                    try Self.wellFormed { () throws(PropertyListFault) in try objects.reference(next) },
                    level: level + 1
                )
                found.levels = max(found.levels, inner.levels)
                found.values += inner.values
                guard found.values <= mostValues else { throw tooMany }
            }
            found.levels += 1
        }
        known[object] = found
        return found
    }

    private var tooMany: TreeError { TreeError("it has more than \(mostValues) values where each is written out") }
}

// MARK: - Writing

/// Writes a tree as a property list in XML.
package enum PropertyListWriter {
    /// A document of version 1.0. A property list has no null, so such members and elements must be removed before.
    /// - Throws: an error if there is a null, or a text with a character that XML cannot have.
    package static func bytes(_ tree: ContentTree) throws(TreeError) -> [UInt8] {
        var text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">

            """
        try append(tree, to: &text)
        return Array((text + "</plist>\n").utf8)
    }

    private static func append(_ tree: ContentTree, to text: inout String) throws(TreeError) {
        switch tree {
        case .null: throw TreeError("a property list has no null; remove it, or set body.strip_nulls")
        case .bool(let value): text += value ? "<true/>\n" : "<false/>\n"
        case .number(let number):
            let isReal = number.contains { ".eE".contains($0) }
            text += isReal ? "<real>\(number)</real>\n" : "<integer>\(number)</integer>\n"
        case .string(let string): text += "<string>\(try escaped(string))</string>\n"
        case .data(let bytes): text += "<data>\(Base64.encode(bytes))</data>\n"
        case .date(let seconds): text += "<date>\(CalendarTime(seconds).iso8601)</date>\n"
        case .array(let values):
            text += "<array>\n"
            for value in values { try append(value, to: &text) }
            text += "</array>\n"
        case .object(let members):
            text += "<dict>\n"
            for member in members {
                text += "<key>\(try escaped(member.name))</key>\n"
                try append(member.value, to: &text)
            }
            text += "</dict>\n"
        }
    }

    private static func escaped(_ string: String) throws(TreeError) -> String {
        var result = ""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            // An XML parser would read a carriage return as a line feed.
            case "\r": result += "&#13;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
                throw TreeError("a property list cannot have the character U+\(String(scalar.value, radix: 16))")
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
