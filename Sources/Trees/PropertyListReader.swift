// Property lists as JSON: binary ones, and those in XML, of which only the parts that property lists have are read.

import HTTPWire

/// The reason why bytes have no form in JSON as a property list.
package enum PropertyListFault: Error, Sendable, Equatable {
    case malformed
    /// Arrays and dictionaries are nested deeper than ``PropertyListBounds/depth``.
    case depth
    /// There is a number for which JSON has no form.
    case number
    /// There would be more JSON than allowed.
    case length
}

/// Reads property lists as JSON: dates become texts in RFC 3339, and data becomes texts in Base64.
package enum PropertyListReader {
    /// Whether a document with this beginning is not JSON, but may be a property list, which has to be complete to be
    /// read.
    package static func isPropertyList(_ start: UnsafeRawBufferPointer) -> Bool {
        let text = start.starts(with: [0xEF, 0xBB, 0xBF] as [UInt8]) ? start.dropFirst(3) : start[...]
        return text.first { !JSONTokenizer.isSpace($0) } == UInt8(ascii: "<") || start.starts(with: "bplist0".utf8)
    }

    /// A property list as a JSON text.
    /// - Parameter limit: the most bytes of JSON that a binary list may become: an object with many references is written
    ///   for each of them. A list in XML becomes shorter.
    /// - Throws: an error if the bytes are not a property list, or have a value for which JSON has no form.
    package static func json(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(PropertyListFault) -> [UInt8] {
        if bytes.first == UInt8(ascii: "b") {
            var reader = try BinaryPropertyList(bytes, limit: limit)
            return try reader.json()
        }
        var reader = XMLPropertyList(bytes)
        return try reader.json()
    }
}

// MARK: - XML

/// Reads one property list in XML, once; not shared.
private struct XMLPropertyList {
    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0
    private var output: [UInt8] = []

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The property list as JSON.
    /// - Throws: an error if the bytes are not a property list, or have a value for which JSON has no form.
    mutating func json() throws(PropertyListFault) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF] as [UInt8]) { offset = 3 }
        guard try tag() == Tag(name: "plist", kind: .opening) else { throw .malformed }
        try value(try tag(), depth: 0)
        guard try tag() == Tag(name: "plist", kind: .closing) else { throw .malformed }
        try skipMiscellany()
        guard offset == bytes.count else { throw .malformed }
        return output
    }

    private struct Tag: Equatable {
        enum Kind { case opening, closing, empty }
        let name: String
        let kind: Kind
    }

    private mutating func value(_ tag: Tag, depth: Int) throws(PropertyListFault) {
        guard depth < PropertyListBounds.depth else { throw .depth }
        guard tag.kind != .closing else { throw .malformed }
        let isEmpty = tag.kind == .empty
        switch tag.name {
        case "dict":
            output.append(UInt8(ascii: "{"))
            var isFirst = true
            while !isEmpty {
                let next = try self.tag()
                if next == Tag(name: "dict", kind: .closing) { break }
                guard next.name == "key", next.kind != .closing else { throw .malformed }
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                output += JSONWriter.quoted(try text(of: next)) + [UInt8(ascii: ":")]
                try value(try self.tag(), depth: depth + 1)
            }
            output.append(UInt8(ascii: "}"))
        case "array":
            output.append(UInt8(ascii: "["))
            var isFirst = true
            while !isEmpty {
                let next = try self.tag()
                if next == Tag(name: "array", kind: .closing) { break }
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                try value(next, depth: depth + 1)
            }
            output.append(UInt8(ascii: "]"))
        case "true", "false":
            guard try text(of: tag).isEmpty else { throw .malformed }
            output += Array(tag.name.utf8)
        case "string": output += JSONWriter.quoted(try text(of: tag))
        case "date":
            guard let moment = DatePattern.moment(try text(of: tag), DatePattern.iso8601)?.text else {
                throw .malformed
            }
            output += JSONWriter.quoted(moment)
        case "data":
            let text = try text(of: tag).filter { !JSONTokenizer.isSpace($0) }
            guard
                text.allSatisfy({
                    65...90 ~= $0 || 97...122 ~= $0 || 43...57 ~= $0 && $0 != 44 && $0 != 45 && $0 != 46 || $0 == 61
                })
            else { throw .malformed }
            output += JSONWriter.quoted(text)
        case "integer", "real":
            var text = try text(of: tag)
            if text.first == UInt8(ascii: "+") { text.removeFirst() }
            guard JSONTokenizer.isNumber(text[...]) else {
                throw .number
            }
            output += text
        default: throw .malformed
        }
    }

    /// The content of a text element; its end tag is read, too.
    private mutating func text(of tag: Tag) throws(PropertyListFault) -> [UInt8] {
        if tag.kind == .empty { return [] }
        var text: [UInt8] = []
        while offset < bytes.count {
            let byte = bytes[offset]
            if byte == UInt8(ascii: "<") {
                if skip(past: "<![CDATA[") {
                    guard let end = find("]]>") else { throw .malformed }
                    text += bytes[offset..<end]
                    offset = end + 3
                    continue
                }
                if try skipMiscellaneous() { continue }
                guard try self.tag() == Tag(name: tag.name, kind: .closing),
                    String(validating: text, as: UTF8.self) != nil
                else { throw .malformed }
                return text
            }
            if byte == UInt8(ascii: "&") {
                guard let end = find(";"), end - offset <= 10 else { throw .malformed }
                text += try entity(String(decoding: bytes[(offset + 1)..<end], as: UTF8.self))
                offset = end + 1
            } else {
                text.append(byte)
                offset += 1
            }
        }
        throw .malformed
    }

    private func entity(_ name: String) throws(PropertyListFault) -> [UInt8] {
        switch name {
        case "lt": return [UInt8(ascii: "<")]
        case "gt": return [UInt8(ascii: ">")]
        case "amp": return [UInt8(ascii: "&")]
        case "quot": return [UInt8(ascii: "\"")]
        case "apos": return [UInt8(ascii: "'")]
        default:
            let code =
                name.hasPrefix("#x")
                ? UInt32(name.dropFirst(2), radix: 16) : name.hasPrefix("#") ? UInt32(name.dropFirst()) : nil
            guard let code, code != 0, let scalar = Unicode.Scalar(code) else { throw .malformed }
            return Array(String(Character(scalar)).utf8)
        }
    }

    /// The next tag, after spaces, comments and declarations.
    private mutating func tag() throws(PropertyListFault) -> Tag {
        try skipMiscellany()
        guard offset < bytes.count, bytes[offset] == UInt8(ascii: "<"), let end = find(">") else { throw .malformed }
        var inner = bytes[(offset + 1)..<end]
        offset = end + 1
        var kind = Tag.Kind.opening
        if inner.first == UInt8(ascii: "/") {
            kind = .closing
            inner = inner.dropFirst()
        } else if inner.last == UInt8(ascii: "/") {
            kind = .empty
            inner = inner.dropLast()
        }
        let name = inner.prefix { !JSONTokenizer.isSpace($0) }
        return Tag(name: String(decoding: name, as: UTF8.self), kind: kind)
    }

    private mutating func skipMiscellany() throws(PropertyListFault) {
        repeat {
            while offset < bytes.count, JSONTokenizer.isSpace(bytes[offset]) { offset += 1 }
        } while try skipMiscellaneous()
    }

    private mutating func skipMiscellaneous() throws(PropertyListFault) -> Bool {
        for (start, end) in [("<!--", "-->"), ("<?", "?>"), ("<!DOCTYPE", ">")] where skip(past: start) {
            guard let stop = find(end) else { throw .malformed }
            // Internal declarations could name entities, which property lists do not have.
            if start == "<!DOCTYPE", bytes[offset..<stop].contains(UInt8(ascii: "[")) { throw .malformed }
            offset = stop + end.utf8.count
            return true
        }
        return false
    }

    private mutating func skip(past text: String) -> Bool {
        guard bytes[offset...].starts(with: text.utf8) else { return false }
        offset += text.utf8.count
        return true
    }

    private func find(_ text: String) -> Int? { bytes.offset(of: text, from: offset) }
}

// MARK: - Binary

/// Reads one binary property list, once; not shared.
private struct BinaryPropertyList {
    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private let limit: Int
    private var output: [UInt8] = []
    private let list: BinaryObjects

    /// - Parameter limit: the most bytes of JSON: an object with many references is written for each.
    /// - Throws: an error if the bytes have no table of objects.
    init(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(PropertyListFault) {
        self.bytes = bytes
        self.limit = limit
        list = try BinaryObjects(bytes)
    }

    /// The property list as JSON.
    /// - Throws: an error if the bytes are not a property list, or have a value for which JSON has no form.
    mutating func json() throws(PropertyListFault) -> [UInt8] {
        guard bytes.starts(with: "bplist00".utf8) else { throw .malformed }
        try value(list.top, depth: 0)
        return output
    }

    private mutating func value(_ reference: Int, depth: Int) throws(PropertyListFault) {
        guard depth < PropertyListBounds.depth else { throw .depth }
        guard output.count <= limit else { throw .length }
        var offset = try list.offset(of: reference)
        let (kind, low) = (bytes[offset] >> 4, Int(bytes[offset] & 15))
        offset += 1
        switch kind {
        case 0 where low == 8 || low == 9: output += Array((low == 9 ? "true" : "false").utf8)
        case 1:
            // The upper eight of 16 bytes are only the sign of a number that fits into eight.
            let size = 1 << low
            guard size <= 16, offset <= bytes.count - size else { throw .malformed }
            let bits = bytes[offset..<(offset + size)].suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            output += Array((size == 8 ? String(Int64(bitPattern: bits)) : String(bits)).utf8)
        case 2:
            guard let number = try real(offset, low), number.isFinite else {
                throw .number
            }
            output += Array(String(number).utf8)
        case 3:
            guard let number = try real(offset, low), number.magnitude < 1e12 else { throw .malformed }
            // Dates are counted from 2001-01-01; this is the count in thousandths.
            let thousandths = Int64((number * 1000).rounded()) + 978_307_200_000
            guard let text = Moment(unix: Array(String(thousandths).utf8)[...], milliseconds: true)?.text else {
                throw .malformed
            }
            output += JSONWriter.quoted(text)
        case 4:
            let count = try list.count(low, &offset)
            output += JSONWriter.quoted(Base64.encode(Array(try part(offset, count))))
        case 5:
            let text = try part(offset, try list.count(low, &offset))
            guard text.allSatisfy({ $0 < 0x80 }) else { throw .malformed }
            output += JSONWriter.quoted(Array(text))
        case 6: output += try wideText(low, offset)
        case 10:
            let count = try list.count(low, &offset)
            output.append(UInt8(ascii: "["))
            for index in 0..<count {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                try value(try list.reference(offset + index * list.referenceSize), depth: depth + 1)
            }
            output.append(UInt8(ascii: "]"))
        case 13:
            let count = try list.count(low, &offset)
            output.append(UInt8(ascii: "{"))
            for index in 0..<count {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                let key = try list.reference(offset + index * list.referenceSize)
                let start = output.count
                try value(key, depth: depth + 1)
                guard output[start] == UInt8(ascii: "\"") else { throw .malformed }
                output.append(UInt8(ascii: ":"))
                try value(try list.reference(offset + (count + index) * list.referenceSize), depth: depth + 1)
            }
            output.append(UInt8(ascii: "}"))
        default: throw .malformed
        }
    }

    private func part(_ offset: Int, _ count: Int) throws(PropertyListFault) -> UnsafeRawBufferPointer {
        guard count >= 0, offset <= bytes.count - count else { throw .malformed }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }

    private func wideText(_ low: Int, _ start: Int) throws(PropertyListFault) -> [UInt8] {
        var offset = start
        let raw = try part(offset, try list.count(low, &offset) * 2)
        let units = stride(from: 0, to: raw.count, by: 2).map { UInt16(raw[$0]) << 8 | UInt16(raw[$0 + 1]) }
        return JSONWriter.quoted(String(decoding: units, as: UTF16.self))
    }

    private func real(_ offset: Int, _ low: Int) throws(PropertyListFault) -> Double? {
        let raw = try part(offset, 1 << low)
        let bits = raw.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return low == 3
            ? Double(bitPattern: bits) : low == 2 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : nil
    }
}

/// The table of objects of a binary property list, which values of the list name by their numbers.
struct BinaryObjects {
    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private let offsetSize: Int
    let referenceSize: Int
    private let objectCount: Int
    private let table: Int
    /// The number of the outermost object.
    let top: Int

    init(_ bytes: UnsafeRawBufferPointer) throws(PropertyListFault) {
        guard bytes.count >= 40 else { throw .malformed }
        self.bytes = bytes
        let trailer = bytes.count - 32
        (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard 1...8 ~= offsetSize, 1...8 ~= referenceSize else { throw .malformed }
        objectCount = try Self.number(bytes, trailer + 8, size: 8)
        top = try Self.number(bytes, trailer + 16, size: 8)
        table = try Self.number(bytes, trailer + 24, size: 8)
        guard objectCount <= bytes.count, table <= trailer, objectCount * offsetSize <= trailer - table else {
            throw .malformed
        }
    }

    /// An unsigned number of `size` bytes.
    private static func number(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: Int,
        size: Int
    ) throws(PropertyListFault) -> Int {
        guard offset >= 0, offset <= bytes.count - size else { throw .malformed }
        let value = bytes[offset..<(offset + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value < 1 << 48 else { throw .malformed }
        return Int(value)
    }

    /// The offset of an object's first byte.
    func offset(of object: Int) throws(PropertyListFault) -> Int {
        guard object < objectCount else { throw .malformed }
        let offset = try Self.number(bytes, table + object * offsetSize, size: offsetSize)
        guard offset < bytes.count else { throw .malformed }
        return offset
    }

    /// The number of the object that is named at an offset.
    func reference(_ offset: Int) throws(PropertyListFault) -> Int {
        try Self.number(bytes, offset, size: referenceSize)
    }

    /// The count of an object, which may be in a number after its first byte.
    /// - Parameters:
    ///   - low: the lower half of the object's first byte.
    ///   - offset: the offset after that byte; afterwards that of the content.
    func count(_ low: Int, _ offset: inout Int) throws(PropertyListFault) -> Int {
        guard low == 15 else { return low }
        guard offset < bytes.count, bytes[offset] >> 4 == 1, bytes[offset] & 15 <= 3 else { throw .malformed }
        let size = 1 << Int(bytes[offset] & 15)
        let count = try Self.number(bytes, offset + 1, size: size)
        offset += 1 + size
        guard count <= bytes.count else { throw .malformed }
        return count
    }
}

extension UnsafeRawBufferPointer {
    /// The offset of the next occurrence of a text; nil if there is none.
    func offset(of text: String, from start: Int) -> Int? {
        let wanted = Array(text.utf8)
        var offset = start
        while offset + wanted.count <= count {
            if self[offset] == wanted[0], self[offset..<(offset + wanted.count)].elementsEqual(wanted) { return offset }
            offset += 1
        }
        return nil
    }
}
