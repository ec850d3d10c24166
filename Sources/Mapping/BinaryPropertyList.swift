// A binary property list as JSON.

import HTTPWire

/// One use; not shared.
struct BinaryPropertyList {
    // The caller holds the bytes while it uses this.
    private let bytes: UnsafeRawBufferPointer
    private let limit: Int
    private var output: [UInt8] = []
    private var offsetSize = 0
    private var referenceSize = 0
    private var objectCount = 0
    private var table = 0

    /// - Parameter limit: bytes of JSON, at most: an object that is named often is written often.
    init(_ bytes: UnsafeRawBufferPointer, limit: Int) {
        self.bytes = bytes
        self.limit = limit
    }

    private static let malformed = MappingFailure("the document is no well-formed property list")

    /// - Throws: that it is no property list, or holds what JSON has no form for.
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

    /// An unsigned number of so many bytes.
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
            // Of 16 bytes, the upper eight are the sign of what fits into eight.
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
            // Counted from 2001-01-01, in thousandths.
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

    /// The count of an object, which may stand in a number behind its first byte.
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
