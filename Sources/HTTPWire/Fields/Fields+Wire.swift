// Field lines as bytes: in runs that are written at once, compared, and shown.

extension Fields {
    /// Calls `body` with the lines as they are written on the wire, each with its CRLF; adjacent lines come in one
    /// call. The pointers are valid during the call.
    /// - Parameter omitted: lines of this name are left out; `.other` leaves none out.
    public func forEachRun(without omitted: KnownField = .other, _ body: (UnsafeRawBufferPointer) -> Void) {
        var names: FieldSet = []
        if omitted != .other { names.insert(omitted) }
        forEachRun(without: names, body)
    }

    /// As above, without the lines of several names; `.other` must not be among them.
    public func forEachRun(without omitted: FieldSet, _ body: (UnsafeRawBufferPointer) -> Void) {
        wire.withUnsafeBytes { bytes in
            var (start, end) = (0, 0)
            for line in index where !omitted.contains(line.known) {
                let lineStart = Int(line.start)
                if lineStart != end {
                    if end > start { body(bytes.part(start..<end)) }
                    start = lineStart
                }
                end = lineStart &+ Int(line.nameLength) &+ Int(line.valueLength) &+ 4
            }
            if end > start { body(bytes.part(start..<end)) }
        }
    }
}

extension Fields {
    /// Where lines lie that follow each other in order, each written as it would be here; nil where one does not.
    static func block(_ buffer: UnsafeRawBufferPointer, _ entries: [FieldEntry]) -> Range<Int>? {
        guard let first = entries.first else { return nil }
        var end = Int(first.nameOffset)
        for entry in entries {
            let nameEnd = Int(entry.nameOffset) + Int(entry.nameLength)
            let valueEnd = nameEnd + 2 + Int(entry.valueLength)
            // The bytes of an entry lie in the buffer; those around it are looked at only where they do.
            guard Int(entry.nameOffset) == end, Int(entry.valueOffset) == nameEnd + 2, valueEnd + 2 <= buffer.count,
                buffer[nameEnd + 1] == 0x20, buffer[valueEnd] == 0x0D
            else { return nil }
            end = valueEnd + 2
        }
        return Int(first.nameOffset)..<end
    }

    /// Whether one line of a name, and no other, says a number, both just as they would be written here.
    public func hasOnly(_ field: KnownField, equalTo number: UInt64) -> Bool {
        guard present.contains(field) else { return false }
        return wire.withUnsafeBytes { bytes in
            var isFound = false
            for line in index where line.known == field {
                guard !isFound, bytes.part(line.value).spells(number),
                    bytes.part(line.name).holdsSame(as: field.nameBytes)
                else { return false }
                isFound = true
            }
            return isFound
        }
    }

    /// Whether both are one value in memory, so that they hold the same; false says nothing.
    public func sharesStorage(with other: Fields) -> Bool {
        // Empty arrays have a place in common, too.
        present == other.present && index.count == other.index.count
            && wire.withUnsafeBytes { wire in
                other.wire.withUnsafeBytes { $0.baseAddress == wire.baseAddress && $0.count == wire.count }
            }
            && index.withUnsafeBytes { index in other.index.withUnsafeBytes { $0.baseAddress == index.baseAddress } }
    }
}

extension Fields: Equatable {
    /// The same lines in the same order, byte for byte.
    public static func == (left: Fields, right: Fields) -> Bool {
        guard left.index.count == right.index.count, left.present == right.present else { return false }
        return left.wire.withUnsafeBytes { leftBytes in
            right.wire.withUnsafeBytes { rightBytes in
                zip(left.index, right.index).allSatisfy {
                    leftBytes.part($0.whole).elementsEqual(rightBytes.part($1.whole))
                }
            }
        }
    }
}

extension Fields: CustomStringConvertible {
    public var description: String { lines.map { "\($0.name): \($0.value)" }.joined(separator: "\n") }
}

extension UnsafeRawBufferPointer {
    /// Whether these are the digits of a number, as they are written here.
    fileprivate func spells(_ number: UInt64) -> Bool {
        var rest = number
        for byte in reversed() {
            guard byte == 0x30 + UInt8(truncatingIfNeeded: rest % 10) else { return false }
            rest /= 10
        }
        // A number of fewer digits would have a zero in front.
        return rest == 0 && !isEmpty && (count == 1 || first != 0x30)
    }
}
