// Property lists as JSON: binary ones, and those in XML, of which only the parts that property lists have are read.

import HTTPWire

/// Reads one property list in XML, once; not shared.
struct XMLPropertyList {
    /// The most levels of nested arrays and dictionaries.
    static let depthLimit = 128

    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private var place = 0
    private var output: [UInt8] = []

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private static let malformed = MappingFailure("the document is no well-formed property list")

    /// The property list as JSON.
    /// - Throws: an error if the bytes are not a property list, or have a value for which JSON has no form.
    mutating func json() throws(MappingFailure) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF] as [UInt8]) { place = 3 }
        guard try tag() == Tag(name: "plist", kind: .opening) else { throw Self.malformed }
        try value(try tag(), depth: 0)
        guard try tag() == Tag(name: "plist", kind: .closing) else { throw Self.malformed }
        try skipMiscellany()
        guard place == bytes.count else { throw Self.malformed }
        return output
    }

    private struct Tag: Equatable {
        enum Kind { case opening, closing, empty }
        let name: String
        let kind: Kind
    }

    private mutating func value(_ tag: Tag, depth: Int) throws(MappingFailure) {
        guard depth < Self.depthLimit else {
            throw MappingFailure("the document has more than \(Self.depthLimit) levels")
        }
        guard tag.kind != .closing else { throw Self.malformed }
        let isEmpty = tag.kind == .empty
        switch tag.name {
        case "dict":
            output.append(UInt8(ascii: "{"))
            var isFirst = true
            while !isEmpty {
                let next = try self.tag()
                if next == Tag(name: "dict", kind: .closing) { break }
                guard next.name == "key", next.kind != .closing else { throw Self.malformed }
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                output += JSONText.quoted(try text(of: next)) + [UInt8(ascii: ":")]
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
            guard try text(of: tag).isEmpty else { throw Self.malformed }
            output += Array(tag.name.utf8)
        case "string": output += JSONText.quoted(try text(of: tag))
        case "date":
            guard let moment = DatePattern.moment(try text(of: tag), DatePattern.iso8601)?.text else {
                throw Self.malformed
            }
            output += JSONText.quoted(moment)
        case "data":
            let text = try text(of: tag).filter { !JSONSkipper.isSpace($0) }
            guard
                text.allSatisfy({
                    65...90 ~= $0 || 97...122 ~= $0 || 43...57 ~= $0 && $0 != 44 && $0 != 45 && $0 != 46 || $0 == 61
                })
            else { throw Self.malformed }
            output += JSONText.quoted(text)
        case "integer", "real":
            var text = try text(of: tag)
            if text.first == UInt8(ascii: "+") { text.removeFirst() }
            guard JSONText.isNumber(text) else {
                throw MappingFailure("the property list has a number that JSON has no form for")
            }
            output += text
        default: throw Self.malformed
        }
    }

    /// The content of a text element; its end tag is read, too.
    private mutating func text(of tag: Tag) throws(MappingFailure) -> [UInt8] {
        if tag.kind == .empty { return [] }
        var text: [UInt8] = []
        while place < bytes.count {
            let byte = bytes[place]
            if byte == UInt8(ascii: "<") {
                if skip(past: "<![CDATA[") {
                    guard let end = find("]]>") else { throw Self.malformed }
                    text += bytes[place..<end]
                    place = end + 3
                    continue
                }
                if try skipMiscellaneous() { continue }
                guard try self.tag() == Tag(name: tag.name, kind: .closing),
                    String(validating: text, as: UTF8.self) != nil
                else { throw Self.malformed }
                return text
            }
            if byte == UInt8(ascii: "&") {
                guard let end = find(";"), end - place <= 10 else { throw Self.malformed }
                text += try entity(String(decoding: bytes[(place + 1)..<end], as: UTF8.self))
                place = end + 1
            } else {
                text.append(byte)
                place += 1
            }
        }
        throw Self.malformed
    }

    private func entity(_ name: String) throws(MappingFailure) -> [UInt8] {
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
            guard let code, code != 0, let scalar = Unicode.Scalar(code) else { throw Self.malformed }
            return Array(String(Character(scalar)).utf8)
        }
    }

    /// The next tag, after spaces, comments and declarations.
    private mutating func tag() throws(MappingFailure) -> Tag {
        try skipMiscellany()
        guard place < bytes.count, bytes[place] == UInt8(ascii: "<"), let end = find(">") else { throw Self.malformed }
        var inner = bytes[(place + 1)..<end]
        place = end + 1
        var kind = Tag.Kind.opening
        if inner.first == UInt8(ascii: "/") {
            kind = .closing
            inner = inner.dropFirst()
        } else if inner.last == UInt8(ascii: "/") {
            kind = .empty
            inner = inner.dropLast()
        }
        let name = inner.prefix { !JSONSkipper.isSpace($0) }
        return Tag(name: String(decoding: name, as: UTF8.self), kind: kind)
    }

    private mutating func skipMiscellany() throws(MappingFailure) {
        repeat {
            while place < bytes.count, JSONSkipper.isSpace(bytes[place]) { place += 1 }
        } while try skipMiscellaneous()
    }

    private mutating func skipMiscellaneous() throws(MappingFailure) -> Bool {
        for (start, end) in [("<!--", "-->"), ("<?", "?>"), ("<!DOCTYPE", ">")] where skip(past: start) {
            guard let stop = find(end) else { throw Self.malformed }
            // Internal declarations could name entities, which property lists do not have.
            if start == "<!DOCTYPE", bytes[place..<stop].contains(UInt8(ascii: "[")) { throw Self.malformed }
            place = stop + end.utf8.count
            return true
        }
        return false
    }

    private mutating func skip(past text: String) -> Bool {
        guard bytes[place...].starts(with: text.utf8) else { return false }
        place += text.utf8.count
        return true
    }

    /// The place of the next occurrence of a text; nil if there is none.
    private func find(_ text: String) -> Int? {
        let wanted = Array(text.utf8)
        var start = place
        while start + wanted.count <= bytes.count {
            if bytes[start] == wanted[0], bytes[start..<(start + wanted.count)].elementsEqual(wanted) { return start }
            start += 1
        }
        return nil
    }
}

// MARK: - Binary

/// Reads one binary property list, once; not shared.
struct BinaryPropertyList {
    // The caller holds the bytes while it uses this value.
    private let bytes: UnsafeRawBufferPointer
    private let limit: Int
    private var output: [UInt8] = []
    private var offsetSize = 0
    private var referenceSize = 0
    private var objectCount = 0
    private var table = 0

    /// - Parameter limit: the most bytes of JSON: an object with many references is written for each.
    init(_ bytes: UnsafeRawBufferPointer, limit: Int) {
        self.bytes = bytes
        self.limit = limit
    }

    private static let malformed = MappingFailure("the document is no well-formed property list")

    /// The property list as JSON.
    /// - Throws: an error if the bytes are not a property list, or have a value for which JSON has no form.
    mutating func json() throws(MappingFailure) -> [UInt8] {
        guard bytes.count >= 40, bytes.starts(with: "bplist00".utf8) else { throw Self.malformed }
        let trailer = bytes.count - 32
        (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard 1...8 ~= offsetSize, 1...8 ~= referenceSize else { throw Self.malformed }
        objectCount = try number(trailer + 8, 8)
        let top = try number(trailer + 16, 8)
        table = try number(trailer + 24, 8)
        guard objectCount <= bytes.count, table <= trailer, objectCount * offsetSize <= trailer - table else {
            throw Self.malformed
        }
        try value(top, depth: 0)
        return output
    }

    /// An unsigned number of `size` bytes.
    private func number(_ place: Int, _ size: Int) throws(MappingFailure) -> Int {
        guard place >= 0, size <= 8, place <= bytes.count - size else { throw Self.malformed }
        let value = bytes[place..<(place + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value < 1 << 48 else { throw Self.malformed }
        return Int(value)
    }

    private mutating func value(_ reference: Int, depth: Int) throws(MappingFailure) {
        guard reference < objectCount else { throw Self.malformed }
        guard depth < XMLPropertyList.depthLimit else {
            throw MappingFailure("the document has more than \(XMLPropertyList.depthLimit) levels")
        }
        guard output.count <= limit else { throw .tooLong(limit) }
        var place = try number(table + reference * offsetSize, offsetSize)
        guard place < bytes.count else { throw Self.malformed }
        let (kind, low) = (bytes[place] >> 4, Int(bytes[place] & 15))
        place += 1
        switch kind {
        case 0 where low == 8 || low == 9: output += Array((low == 9 ? "true" : "false").utf8)
        case 1:
            // The upper eight of 16 bytes are only the sign of a number that fits into eight.
            let size = 1 << low
            guard size <= 16, place <= bytes.count - size else { throw Self.malformed }
            let bits = bytes[place..<(place + size)].suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            output += Array((size == 8 ? String(Int64(bitPattern: bits)) : String(bits)).utf8)
        case 2:
            guard let number = try real(place, low), number.isFinite else {
                throw MappingFailure("the property list has a number that JSON has no form for")
            }
            output += Array(String(number).utf8)
        case 3:
            guard let number = try real(place, low), number.magnitude < 1e12 else { throw Self.malformed }
            // Dates are counted from 2001-01-01; this is the count in thousandths.
            let thousandths = Int64((number * 1000).rounded()) + 978_307_200_000
            guard let text = Moment(unix: Array(String(thousandths).utf8), milliseconds: true)?.text else {
                throw Self.malformed
            }
            output += JSONText.quoted(text)
        case 4:
            let count = try self.count(low, &place)
            output += JSONText.quoted(Base64.encode(Array(try part(place, count))).utf8)
        case 5:
            let text = try part(place, try self.count(low, &place))
            guard text.allSatisfy({ $0 < 0x80 }) else { throw Self.malformed }
            output += JSONText.quoted(text)
        case 6: output += try wideText(low, place)
        case 10:
            let count = try self.count(low, &place)
            output.append(UInt8(ascii: "["))
            for index in 0..<count {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                try value(try number(place + index * referenceSize, referenceSize), depth: depth + 1)
            }
            output.append(UInt8(ascii: "]"))
        case 13:
            let count = try self.count(low, &place)
            output.append(UInt8(ascii: "{"))
            for index in 0..<count {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                let key = try number(place + index * referenceSize, referenceSize)
                let start = output.count
                try value(key, depth: depth + 1)
                guard output[start] == UInt8(ascii: "\"") else { throw Self.malformed }
                output.append(UInt8(ascii: ":"))
                try value(try number(place + (count + index) * referenceSize, referenceSize), depth: depth + 1)
            }
            output.append(UInt8(ascii: "}"))
        default: throw Self.malformed
        }
    }

    /// The count of an object, which may be in a number after its first byte.
    private func count(_ low: Int, _ place: inout Int) throws(MappingFailure) -> Int {
        guard low == 15 else { return low }
        guard place < bytes.count, bytes[place] >> 4 == 1, bytes[place] & 15 <= 3 else { throw Self.malformed }
        let size = 1 << Int(bytes[place] & 15)
        let count = try number(place + 1, size)
        place += 1 + size
        guard count <= bytes.count else { throw Self.malformed }
        return count
    }

    private func part(_ place: Int, _ count: Int) throws(MappingFailure) -> UnsafeRawBufferPointer {
        guard count >= 0, place <= bytes.count - count else { throw Self.malformed }
        return UnsafeRawBufferPointer(rebasing: bytes[place..<(place + count)])
    }

    private func wideText(_ low: Int, _ start: Int) throws(MappingFailure) -> [UInt8] {
        var place = start
        let raw = try part(place, try count(low, &place) * 2)
        let units = stride(from: 0, to: raw.count, by: 2).map { UInt16(raw[$0]) << 8 | UInt16(raw[$0 + 1]) }
        return JSONText.quoted(String(decoding: units, as: UTF16.self).utf8)
    }

    private func real(_ place: Int, _ low: Int) throws(MappingFailure) -> Double? {
        let raw = try part(place, 1 << low)
        let bits = raw.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return low == 3
            ? Double(bitPattern: bits) : low == 2 ? Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits))) : nil
    }
}
