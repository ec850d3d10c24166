// A property list in XML as JSON: of XML only what property lists have.

/// One use; not shared.
struct XMLPropertyList {
    /// Arrays and dictionaries within one another, at most.
    static let depthLimit = 128

    // The caller holds the bytes while it uses this.
    private let bytes: UnsafeRawBufferPointer
    private var place = 0
    private var output: [UInt8] = []

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private static let malformed = MappingFailure("the document is no well-formed property list")

    /// - Throws: that it is no property list, or holds what JSON has no form for.
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

    /// The content of an element of text; what ends it is read, too.
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
            // Declarations of its own could name entities: property lists have none.
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

    /// Where a text stands next.
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
