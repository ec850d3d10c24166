// The field lines of a head or of trailers: scanned once, resumable at any byte, kept as offsets, and cached for the
// next request of a connection.

import Glibc

/// Scans field lines up to and including the empty line that ends them (RFC 9112 section 5).
///
/// The meaning of a byte depends only on the bytes before it, and no byte beyond a limit is read: so the result is the
/// same however the bytes are split over reads.
struct FieldScanner: Sendable {
    /// The part of the line that the next byte belongs to. Transitions: lineStart → name → valueStart → value →
    /// lineFeed → lineStart; lineStart → lastLineFeed → done.
    private enum State: UInt8 {
        case lineStart, name, valueStart, value, lineFeed, lastLineFeed, done
    }

    private(set) var entries: [FieldEntry] = []
    /// The known fields of the section.
    private(set) var present: FieldSet = []
    /// The known fields that are on more than one line.
    private(set) var repeated: FieldSet = []
    private var state = State.lineStart
    private var lineStart = 0
    private var nameEnd = 0
    private var valueStart = 0

    /// Whether the empty line has been read.
    var isDone: Bool { state == .done }

    /// Prepares for the next head and keeps the capacity.
    mutating func reset() {
        entries.removeAll(keepingCapacity: true)
        present = []
        repeated = []
        state = .lineStart
    }

    /// Scans the bytes from `start` on, and returns where it stopped: at their end, or at the byte after the empty
    /// line.
    mutating func scan(
        _ bytes: RawSpan,
        from start: Int,
        limits: HeadLimits,
        side: MessageSide
    ) throws(WireError) -> Int {
        let end = bytes.byteCount
        var position = start
        while position < end {
            switch state {
            case .lineStart:
                let byte = bytes[at: position]
                if byte == 0x0D {
                    state = .lastLineFeed
                    position &+= 1
                    continue
                }
                if byte == 0x20 || byte == 0x09 { throw WireError(.foldedLine, side: side, offset: position) }
                if entries.count >= limits.fields { throw WireError(.tooManyFields, side: side, offset: position) }
                lineStart = position
                state = .name
            case .name:
                let bound = min(end, lineStart &+ limits.field)
                position = Self.skipName(bytes, from: position, to: bound)
                if position &- lineStart >= limits.field {
                    throw WireError(.fieldTooLong, side: side, offset: position)
                }
                if position == end { return position }
                guard bytes[at: position] == 0x3A, position > lineStart else {
                    throw nameError(bytes, position, side)
                }
                nameEnd = position
                state = .valueStart
                position &+= 1
            case .valueStart:
                let bound = min(end, lineStart &+ limits.field)
                while position < bound, Self.isSpace(bytes, position) { position &+= 1 }
                if position == end { return position }
                valueStart = position
                state = .value
            case .value:
                position = Self.skipValue(bytes, from: position, to: min(end, lineStart &+ limits.field))
                if position == end { return position }
                guard bytes[at: position] == 0x0D else {
                    throw valueError(bytes, position, limits, side)
                }
                addLine(bytes, valueEnd: position)
                state = .lineFeed
                position &+= 1
            case .lineFeed, .lastLineFeed:
                guard bytes[at: position] == 0x0A else {
                    throw WireError(.bareCarriageReturn, side: side, offset: position)
                }
                position &+= 1
                if state == .lastLineFeed {
                    state = .done
                    return position
                }
                state = .lineStart
            case .done:
                return position
            }
        }
        return position
    }

    /// Moves the offsets, because the same lines have another offset in the next buffer.
    mutating func move(by offset: Int) {
        guard offset != 0 else { return }
        for index in entries.indices {
            // The offsets fit there as they fit here.
            entries[index].nameOffset &+= UInt32(truncatingIfNeeded: offset)
            entries[index].valueOffset &+= UInt32(truncatingIfNeeded: offset)
        }
    }

    /// The first line of this name.
    func entry(_ field: KnownField) -> FieldEntry? {
        guard present.contains(field) else { return nil }
        for index in 0..<entries.count where entries[index].known == field { return entries[index] }
        return nil
    }

    /// The lines as a value that does not need the buffer.
    func fields(_ buffer: UnsafeRawBufferPointer) -> Fields { Fields(buffer, entries, present) }

    /// Removes all lines of this name.
    mutating func drop(_ field: KnownField) {
        entries.removeAll { $0.known == field }
        present.remove(field)
        repeated.remove(field)
    }

    /// Skips the bytes that a field name may have, and returns the offset of the first other byte, or `end`.
    @inline(__always)
    static func skipName(_ bytes: RawSpan, from start: Int, to end: Int) -> Int {
        ByteClass.skip(ByteClass.token, bytes, from: start, to: end) { word in
            // The mask finds all bytes but letters and `-`. No sum carries into the next byte. Each word sets the top
            // bit of its bytes: `least` from `a` on, `over` beyond `z`, `other` unless the byte is `-`.
            let folded = (word | 0x2020_2020_2020_2020) & 0x7F7F_7F7F_7F7F_7F7F
            let least = folded &+ 0x1F1F_1F1F_1F1F_1F1F
            let over = folded &+ 0x0505_0505_0505_0505
            let other = ((word ^ 0x2D2D_2D2D_2D2D_2D2D) & 0x7F7F_7F7F_7F7F_7F7F) &+ 0x7F7F_7F7F_7F7F_7F7F
            return ~(((least & ~over) | ~other) & ~word)
        }
    }

    /// Skips the bytes that a field value may have, and returns the offset of the first other byte, or `end`.
    @inline(__always)
    static func skipValue(_ bytes: RawSpan, from start: Int, to end: Int) -> Int {
        ByteClass.skip(ByteClass.value, bytes, from: start, to: end) { word in
            // The top bit of a byte of `low` is set if the byte is below 0x20, and of `delete` if it is 0x7F; HTAB is
            // the only control character that a value may have.
            let low = (word &- 0x2020_2020_2020_2020) & ~word
            let unequal = word ^ 0x7F7F_7F7F_7F7F_7F7F
            return low | (unequal &- 0x0101_0101_0101_0101) & ~unequal
        }
    }

    @inline(__always)
    private static func isSpace(_ bytes: RawSpan, _ position: Int) -> Bool {
        let byte = bytes[at: position]
        return byte == 0x20 || byte == 0x09
    }

    @inline(__always)
    private mutating func addLine(_ bytes: RawSpan, valueEnd: Int) {
        var end = valueEnd
        while end > valueStart, Self.isSpace(bytes, end &- 1) { end &-= 1 }
        let known = bytes.extracting(unchecked: lineStart..<nameEnd).withUnsafeBytes { KnownField.find($0) }
        if known != .other, present.contains(known) { repeated.insert(known) }
        present.insert(known)
        // The offsets fit: `HeadLimits` keeps every head below 1 GiB.
        entries.append(
            FieldEntry(
                nameOffset: UInt32(truncatingIfNeeded: lineStart),
                nameLength: UInt32(truncatingIfNeeded: nameEnd &- lineStart),
                valueOffset: UInt32(truncatingIfNeeded: valueStart),
                valueLength: UInt32(truncatingIfNeeded: end &- valueStart),
                known: known
            )
        )
    }

    private func nameError(_ bytes: RawSpan, _ position: Int, _ side: MessageSide) -> WireError {
        let reason: WireReason =
            switch bytes[at: position] {
            case 0x0A: .bareLineFeed
            case 0x20, 0x09: .spaceBeforeColon
            case 0x3A: .fieldNameEmpty
            default: .fieldNameMalformed
            }
        return WireError(reason, side: side, offset: position)
    }

    private func valueError(
        _ bytes: RawSpan,
        _ position: Int,
        _ limits: HeadLimits,
        _ side: MessageSide
    ) -> WireError {
        if position &- lineStart >= limits.field { return WireError(.fieldTooLong, side: side, offset: position) }
        let isLineFeed = bytes[at: position] == 0x0A
        return WireError(isLineFeed ? .bareLineFeed : .fieldValueControl, side: side, offset: position)
    }
}

// MARK: - The cache of a connection

/// The bytes of an accepted field section: the next section with the same bytes need not be parsed.
///
/// The meaning of a section depends only on its bytes and on the limits, which a parser never changes;
/// `RequestParser.remember(_:)` decides which sections are cached.
struct FieldSectionCache: Sendable {
    /// The most bytes of a section: a connection keeps them for as long as it is open.
    private static let limit = 1024

    /// The section, with the empty line at its end; empty if none is cached.
    private var bytes: [UInt8] = []
    /// The offset in its buffer at which the section began.
    private(set) var start = 0

    var count: Int { bytes.count }
    var isEmpty: Bool { bytes.isEmpty }

    /// Whether the whole section is at `position` again.
    func isRepeated(_ read: RawSpan, at position: Int) -> Bool {
        guard !isEmpty, bytes.count <= read.byteCount - position else { return false }
        return read.withUnsafeBytes { read in
            bytes.withUnsafeBytes { known in
                // At least as many bytes follow `position`, and a buffer that is not empty has a base.
                guard let base = read.baseAddress, let start = known.baseAddress else { return false }
                return memcmp(base + position, start, known.count) == 0
            }
        }
    }

    /// Keeps a copy of a section that is not too long.
    mutating func note(_ section: UnsafeRawBufferPointer, from start: Int) {
        forget()
        guard section.count <= Self.limit else { return }
        bytes.append(contentsOf: section)
        self.start = start
    }

    /// Moves the section, because the same bytes have another offset now.
    mutating func move(to start: Int) { self.start = start }

    /// Forgets the section and keeps the capacity.
    mutating func forget() { bytes.removeAll(keepingCapacity: true) }
}
