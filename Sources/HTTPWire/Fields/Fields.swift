// An ordered list of field lines whose bytes are kept as they were received, in one array, ready to write.

/// The field lines of a head or of trailers, in order.
///
/// Names compare without regard to case. A value is bytes; as a String each byte is the scalar of the same number
/// (`Latin1`), which loses nothing. Appended values are made safe: surrounding whitespace is trimmed, and a control
/// character other than HTAB becomes SP (RFC 9110 section 5.5), so that no value can end its line.
public struct Fields: Sendable {
    /// The range of one line in `wire`, which has the name, `: `, the value and CRLF.
    struct Line: Sendable {
        var start: UInt32
        var nameLength: UInt32
        var valueLength: UInt32
        var known: KnownField

        var name: Range<Int> { Int(start)..<Int(start) + Int(nameLength) }
        var value: Range<Int> { name.upperBound + 2..<name.upperBound + 2 + Int(valueLength) }
        var whole: Range<Int> { name.lowerBound..<value.upperBound + 2 }
    }

    private(set) var wire: [UInt8] = []
    private(set) var index: [Line] = []
    /// The known fields among the lines.
    public private(set) var present: FieldSet = []

    public init() {}

    public init(_ pairs: [(String, String)]) {
        for (name, value) in pairs { append(name, value) }
    }

    /// Takes lines that a parser has already checked.
    init(_ buffer: UnsafeRawBufferPointer, _ entries: [FieldEntry], _ present: FieldSet) {
        if let block = Self.block(buffer, entries) {
            // The lines are usually adjacent, and need one copy.
            wire.append(contentsOf: buffer.part(block))
            index.reserveCapacity(entries.count)
            for entry in entries {
                let start = entry.nameOffset &- UInt32(truncatingIfNeeded: block.lowerBound)
                index.append(
                    Line(
                        start: start,
                        nameLength: entry.nameLength,
                        valueLength: entry.valueLength,
                        known: entry.known
                    )
                )
            }
            self.present = present
            return
        }
        var total = 0
        for entry in entries { total += Int(entry.nameLength) + Int(entry.valueLength) + 4 }
        wire.reserveCapacity(total)
        index.reserveCapacity(entries.count)
        // Adjacent lines are copied together.
        var run = 0..<0
        for entry in entries {
            let valueEnd = Int(entry.valueOffset) + Int(entry.valueLength)
            let whole = buffer.part(Int(entry.nameOffset)..<valueEnd + 2)
            let isAsWritten =
                entry.valueOffset == entry.nameOffset + entry.nameLength + 2
                && whole.count > 4 && whole[Int(entry.nameLength) + 1] == 0x20 && whole[whole.count - 2] == 0x0D
            let start = Int(entry.nameOffset)
            if !isAsWritten || start != run.upperBound {
                wire.append(contentsOf: buffer.part(run))
                run = start..<start
            }
            if isAsWritten {
                note(entry.nameLength, entry.valueLength, entry.known, behind: run.count)
                run = run.lowerBound..<valueEnd + 2
            } else {
                write(entry.name(in: buffer), entry.value(in: buffer), entry.known)
            }
        }
        wire.append(contentsOf: buffer.part(run))
        self.present = present
    }

    /// The number of lines.
    public var count: Int { index.count }
    public var isEmpty: Bool { index.isEmpty }

    /// The number of bytes the lines take on the wire, each with its CRLF.
    public var wireLength: Int {
        var total = 0
        for line in index { total += Int(line.nameLength) + Int(line.valueLength) + 4 }
        return total
    }

    // MARK: Reading

    /// Calls `body` with each line in order, with its exact bytes; used for forwarding. The pointers are valid during
    /// the call.
    public func forEachLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    ) {
        wire.withUnsafeBytes { bytes in
            for line in index {
                body(bytes.part(line.name), bytes.part(line.value), line.known)
            }
        }
    }

    /// Calls `body` with the value of each line of this name; if the field is absent, no line is read.
    public func forEachValue(_ field: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        guard present.contains(field) else { return }
        wire.withUnsafeBytes { bytes in
            for line in index where line.known == field { body(bytes.part(line.value)) }
        }
    }

    public func contains(_ field: KnownField) -> Bool { present.contains(field) }

    /// Whether there is a line with one of two names that are not known fields.
    func contains(other name: StaticString, or second: StaticString) -> Bool {
        guard present.contains(.other) else { return false }
        return wire.withUnsafeBytes { bytes in
            index.contains { line in
                guard line.known == .other else { return false }
                let length = Int(line.nameLength)
                return length == name.utf8CodeUnitCount && bytes.part(line.name).equalsIgnoringCase(name)
                    || length == second.utf8CodeUnitCount && bytes.part(line.name).equalsIgnoringCase(second)
            }
        }
    }

    public func contains(_ name: String) -> Bool { positions(of: name, limit: 1).first != nil }

    /// The value of the first line of this name.
    public func first(_ field: KnownField) -> String? { withFirst(field) { Latin1.string($0) } }

    /// The value of the first line of this name.
    public func first(_ name: String) -> String? {
        positions(of: name, limit: 1).first.map { valueString(index[$0]) }
    }

    /// The values of all lines of this name, one per line, in order.
    public func all(_ field: KnownField) -> [String] {
        guard present.contains(field) else { return [] }
        return index.filter { $0.known == field }.map { valueString($0) }
    }

    /// The values of all lines of this name, one per line, in order.
    public func all(_ name: String) -> [String] { positions(of: name).map { valueString(index[$0]) } }

    /// The values of all lines of this name joined with `, ` (RFC 9110 section 5.3).
    public func combined(_ field: KnownField) -> String? {
        present.contains(field) ? all(field).joined(separator: ", ") : nil
    }

    /// The values of all lines of this name joined with `, `.
    public func combined(_ name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Calls `body` with the bytes of the first line of this name; no String is made. The pointer
    /// is valid during the call.
    public func withFirst<R>(_ field: KnownField, _ body: (UnsafeRawBufferPointer) -> R) -> R? {
        guard present.contains(field), let line = index.first(where: { $0.known == field }) else { return nil }
        return wire.withUnsafeBytes { body($0.part(line.value)) }
    }

    /// The lines as Strings, for slow paths and tests.
    public var lines: [(name: String, value: String)] {
        index.map { line in (name: wire.withUnsafeBytes { Latin1.string($0.part(line.name)) }, value: valueString(line))
        }
    }

    // MARK: Changing

    /// Makes room for a line that will be appended, and makes the storage unique, so that both cost one copy.
    public mutating func reserve(_ field: KnownField, _ value: String) {
        index.reserveCapacity(index.count + 1)
        wire.reserveCapacity(wire.count + field.nameBytes.count + value.utf8.count + 4)
    }

    /// Appends a line; `.other` has no name and appends nothing.
    public mutating func append(_ field: KnownField, _ value: String) {
        guard field != .other else { return }
        Latin1.withBytes(value) { insert(field.nameBytes, $0, field) }
    }

    /// Appends a line. False if the name is not a token; then nothing is appended.
    @discardableResult
    public mutating func append(_ name: String, _ value: String) -> Bool {
        Latin1.withBytes(name) { name in
            Latin1.withBytes(value) { append(nameBytes: name, valueBytes: $0) }
        }
    }

    /// Appends a line byte for byte. False if the name is not a token; then nothing is appended.
    @discardableResult
    public mutating func append(nameBytes: UnsafeRawBufferPointer, valueBytes: UnsafeRawBufferPointer) -> Bool {
        guard ByteClass.all(nameBytes, are: ByteClass.token) else { return false }
        insert(nameBytes, valueBytes, KnownField.find(nameBytes))
        return true
    }

    /// Adds a member to a field whose value is a list: to its only line, or as its first member (RFC 9110 section 5.3).
    public mutating func appendMember(_ field: KnownField, _ member: String) {
        guard present.contains(field) else { return append(field, member) }
        set(field, combined(field).map { "\($0), \(member)" } ?? member)
    }

    /// Replaces all lines of this name by one, at the position of the first.
    public mutating func set(_ field: KnownField, _ value: String) {
        guard field != .other else { return }
        guard present.contains(field) else { return append(field, value) }
        if overwrite(field, value) { return }
        replace(index.indices.filter { index[$0].known == field }) { $0.append(field, value) }
    }

    /// Replaces all lines of this name by one, at the position of the first. A name that is not a token changes nothing.
    public mutating func set(_ name: String, _ value: String) {
        replace(positions(of: name)) { $0.append(name, value) }
    }

    public mutating func remove(_ field: KnownField) {
        guard field != .other, present.contains(field) else { return }
        index.removeAll { $0.known == field }
        present.remove(field)
        compactIfWasteful()
    }

    public mutating func remove(_ name: String) {
        let found = positions(of: name)
        guard !found.isEmpty else { return }
        keep(index.indices.filter { !found.contains($0) }.map { index[$0] })
    }

    /// Removes the lines for which `predicate` returns true.
    public mutating func removeAll(where predicate: (_ name: UnsafeRawBufferPointer, KnownField) -> Bool) {
        let first = wire.withUnsafeBytes { bytes in
            index.firstIndex { predicate(bytes.part($0.name), $0.known) }
        }
        // Usually there is nothing to remove, and nothing is copied.
        guard let first else { return }
        var kept = first
        present = []
        for position in 0..<first { present.insert(index[position].known) }
        wire.withUnsafeBytes { bytes in
            for position in first + 1..<index.count {
                let line = index[position]
                if predicate(bytes.part(line.name), line.known) { continue }
                present.insert(line.known)
                index[kept] = line
                kept += 1
            }
        }
        index.removeLast(index.count - kept)
        compactIfWasteful()
    }

    // MARK: Storage

    private func valueString(_ line: Line) -> String {
        wire.withUnsafeBytes { Latin1.string($0.part(line.value)) }
    }

    private func positions(of name: String, limit: Int = .max) -> [Int] {
        Latin1.withBytes(name) { wanted in
            let known = KnownField.find(wanted)
            if known != .other, !present.contains(known) { return [] }
            return wire.withUnsafeBytes { bytes in
                var found: [Int] = []
                for position in index.indices where found.count < limit {
                    let line = index[position]
                    guard line.known == known else { continue }
                    if known != .other || bytes.part(line.name).equalsIgnoringCase(wanted) { found.append(position) }
                }
                return found
            }
        }
    }

    /// Overwrites the value of the only line of this name, if it fits and the line has the form that `append` writes.
    private mutating func overwrite(_ field: KnownField, _ value: String) -> Bool {
        guard let position = index.firstIndex(where: { $0.known == field }),
            !index[(position + 1)...].contains(where: { $0.known == field })
        else { return false }
        let line = index[position]
        return Latin1.withBytes(value) { bytes in
            guard bytes.count == Int(line.valueLength) else { return false }
            // An equal value is not written again, so that shared storage is not copied.
            if isWritten(line, field, bytes) { return true }
            guard ByteClass.all(bytes, are: ByteClass.value),
                bytes.trimmingWhitespace().count == bytes.count
            else { return false }
            return wire.withUnsafeMutableBytes { wire in
                let isCanonical = UnsafeRawBufferPointer(wire).part(line.name).holdsSame(as: field.nameBytes)
                if isCanonical { UnsafeMutableRawBufferPointer(rebasing: wire[line.value]).copyMemory(from: bytes) }
                return isCanonical
            }
        }
    }

    /// Whether a line has, byte for byte, the form that `append` writes.
    private func isWritten(_ line: Line, _ field: KnownField, _ value: UnsafeRawBufferPointer) -> Bool {
        wire.withUnsafeBytes { wire in
            wire.part(line.value).holdsSame(as: value) && wire.part(line.name).holdsSame(as: field.nameBytes)
        }
    }

    private mutating func replace(_ found: [Int], by append: (inout Fields) -> Void) {
        let before = index.count
        append(&self)
        guard index.count > before, let first = found.first else { return }
        index[first] = index.removeLast()
        let doomed = found.dropFirst()
        keep(index.indices.filter { !doomed.contains($0) }.map { index[$0] })
    }

    private mutating func keep(_ lines: [Line]) {
        guard lines.count < index.count else { return compactIfWasteful() }
        index = lines
        present = []
        for line in lines { present.insert(line.known) }
        compactIfWasteful()
    }

    private mutating func insert(
        _ name: UnsafeRawBufferPointer,
        _ value: UnsafeRawBufferPointer,
        _ known: KnownField
    ) {
        present.insert(known)
        if value.isEmpty || ByteClass.all(value, are: ByteClass.value) {
            write(name, value.trimmingWhitespace(), known)
        } else {
            let table = ByteClass.table
            let safe = value.map { table[Int($0)] & ByteClass.value == 0 ? 0x20 : $0 }
            safe.withUnsafeBytes { write(name, $0.trimmingWhitespace(), known) }
        }
    }

    private mutating func write(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) {
        note(UInt32(truncatingIfNeeded: name.count), UInt32(truncatingIfNeeded: value.count), known)
        wire.append(contentsOf: name)
        wire.append(0x3A)
        wire.append(0x20)
        wire.append(contentsOf: value)
        wire.append(0x0D)
        wire.append(0x0A)
    }

    /// Adds the line to the index before its bytes are written, `behind` bytes after the present end.
    private mutating func note(_ nameLength: UInt32, _ valueLength: UInt32, _ known: KnownField, behind: Int = 0) {
        let start = UInt32(truncatingIfNeeded: wire.count + behind)
        index.append(Line(start: start, nameLength: nameLength, valueLength: valueLength, known: known))
    }

    /// Drops the bytes of removed lines once they outweigh the others.
    private mutating func compactIfWasteful() {
        guard wire.count > 512, wire.count > 2 * wireLength else { return }
        var compacted = Fields()
        forEachLine { name, value, known in compacted.write(name, value, known) }
        wire = compacted.wire
        index = compacted.index
    }
}

// MARK: - As bytes

// Field lines as bytes: written in runs, compared, and shown.
extension Fields {
    /// Calls `body` with the lines as they are written on the wire, each with its CRLF; adjacent lines come in one
    /// call. The pointers are valid during the call.
    /// - Parameter omitted: the name of lines that are left out; `.other` leaves none out.
    public func forEachRun(without omitted: KnownField = .other, _ body: (UnsafeRawBufferPointer) -> Void) {
        var names: FieldSet = []
        if omitted != .other { names.insert(omitted) }
        forEachRun(without: names, body)
    }

    /// Calls `body` with each run of lines, without the lines of several names; `.other` must not be one of them.
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
    /// The range of lines that are adjacent and in order, each in the form that `append` writes; nil if they are not.
    static func block(_ buffer: UnsafeRawBufferPointer, _ entries: [FieldEntry]) -> Range<Int>? {
        guard let first = entries.first else { return nil }
        var end = Int(first.nameOffset)
        for entry in entries {
            let nameEnd = Int(entry.nameOffset) + Int(entry.nameLength)
            let valueEnd = nameEnd + 2 + Int(entry.valueLength)
            // The bytes of an entry are within the buffer; those around it are read only after a check.
            guard Int(entry.nameOffset) == end, Int(entry.valueOffset) == nameEnd + 2, valueEnd + 2 <= buffer.count,
                buffer[nameEnd + 1] == 0x20, buffer[valueEnd] == 0x0D
            else { return nil }
            end = valueEnd + 2
        }
        return Int(first.nameOffset)..<end
    }

    /// Whether the only line of a name has this number as its value, both in the form that `append` writes.
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

    /// Whether both share their storage, so that they have the same lines; false decides nothing.
    public func sharesStorage(with other: Fields) -> Bool {
        // Empty arrays share a buffer, too.
        present == other.present && index.count == other.index.count
            && wire.withUnsafeBytes { wire in
                other.wire.withUnsafeBytes { $0.baseAddress == wire.baseAddress && $0.count == wire.count }
            }
            && index.withUnsafeBytes { index in other.index.withUnsafeBytes { $0.baseAddress == index.baseAddress } }
    }
}

extension Fields: Equatable {
    /// Whether both have the same lines in the same order, byte for byte.
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
    /// Whether the bytes are the decimal digits of a number, without leading zeros.
    fileprivate func spells(_ number: UInt64) -> Bool {
        var rest = number
        for byte in reversed() {
            guard byte == 0x30 + UInt8(truncatingIfNeeded: rest % 10) else { return false }
            rest /= 10
        }
        // A number of fewer digits would have a leading zero.
        return rest == 0 && !isEmpty && (count == 1 || first != 0x30)
    }
}
