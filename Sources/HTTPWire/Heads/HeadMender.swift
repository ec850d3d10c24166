// Repairs a malformed response head, if there is only one way to read it.

/// Collects one head to its end and mends it: lines that end in LF alone, whitespace before a colon (RFC 9112 section
/// 5.1), folded lines (section 5.2), control characters in values, and a Content-Length that says one number more than
/// once (RFC 9110 section 8.6).
///
/// It leaves other errors as they are: the strict parser parses the result, and decides. Lines that delimit the message
/// are never repaired into existence: whitespace before their colon, folds and control characters stay in them.
struct HeadMender: Sendable {
    /// The kinds of lines, which decide how a folded line is joined.
    private enum Line { case status, field, framing }

    /// Bytes that a head may have.
    private let limit: Int
    /// The next byte to look at; once the head is complete, its length.
    private(set) var position = 0
    private var lineStart = 0
    /// The head as it should have been, once it is complete.
    private(set) var mended: [UInt8] = []
    /// Why another reader may find the end of the message elsewhere, the first of the reasons; nil: it will not.
    private(set) var oddFraming: WireReason?
    private var last = Line.status
    /// The value of Content-Length so far.
    private var length: UInt64?

    init(limit: Int) { self.limit = limit }

    /// Looks at the bytes that were not there at the last call; true where the head is
    /// complete. Throws with status 502.
    mutating func take(_ buffer: UnsafeRawBufferPointer) throws(WireError) -> Bool {
        let end = min(buffer.count, limit)
        while position < end {
            let byte = buffer[position]
            position += 1
            guard byte == 0x0A else { continue }
            let line = buffer.part(lineStart..<position - 1)
            lineStart = position
            if line.isEmpty || line.count == 1 && line[0] == 0x0D {
                try write(buffer.part(0..<position))
                return true
            }
        }
        if position >= limit { throw WireError(.headTooLong, side: .response, offset: limit) }
        return false
    }

    private mutating func write(_ head: UnsafeRawBufferPointer) throws(WireError) {
        mended.reserveCapacity(head.count + 64)
        var start = 0
        while start < head.count {
            let next = head[start...].firstIndex(of: 0x0A) ?? head.count - 1
            var end = next
            if end > start, head[end - 1] == 0x0D { end -= 1 } else { note(.bareLineFeed) }
            let line = head.part(start..<end)
            try check(line, start)
            switch line.first {
            case nil: mended.append(contentsOf: [0x0D, 0x0A, 0x0D, 0x0A])
            case _ where start == 0: writeStatus(line)
            case 0x20, 0x09: try writeFold(line, start)
            default: try writeField(line, start)
            }
            start = next + 1
        }
    }

    private mutating func note(_ reason: WireReason) {
        if oddFraming == nil { oddFraming = reason }
    }

    /// CR and NUL are never mended: they end lines and strings for others.
    private func check(_ line: UnsafeRawBufferPointer, _ start: Int) throws(WireError) {
        for (offset, byte) in line.enumerated() where byte == 0 || byte == 0x0D {
            let reason: WireReason = byte == 0 ? .fieldValueControl : .bareCarriageReturn
            throw WireError(reason, side: .response, offset: start + offset)
        }
    }

    private mutating func writeStatus(_ line: UnsafeRawBufferPointer) {
        // A reason begins behind `HTTP/1.1 200 `.
        let reasonStart = min(line.count, 13)
        mended.append(contentsOf: line.part(0..<reasonStart))
        append(line.part(reasonStart..<line.count))
    }

    private mutating func writeFold(_ line: UnsafeRawBufferPointer, _ start: Int) throws(WireError) {
        guard last == .field else { throw WireError(.foldedLine, side: .response, offset: start) }
        let content = line.trimmingWhitespace()
        guard !content.isEmpty else { return }
        mended.append(0x20)
        append(content)
    }

    private mutating func writeField(_ line: UnsafeRawBufferPointer, _ start: Int) throws(WireError) {
        guard let colon = line.firstIndex(of: 0x3A) else {
            // The parser reports the error.
            mended.append(contentsOf: [0x0D, 0x0A])
            mended.append(contentsOf: line)
            last = .field
            return
        }
        let name = line.part(0..<colon).trimmingWhitespace()
        let value = line.part(colon + 1..<line.count).trimmingWhitespace()
        let known = KnownField.find(name)
        last = known == .contentLength || known == .transferEncoding ? .framing : .field
        if last == .framing {
            if name.count < colon { throw WireError(.spaceBeforeColon, side: .response, offset: start + name.count) }
            if !value.isEmpty, !ByteClass.all(value, are: ByteClass.value) {
                throw WireError(.fieldValueControl, side: .response, offset: start + colon + 1)
            }
        }
        var content = value
        if known == .contentLength {
            guard let one = newLength(value) else { return }
            content = one
        }
        mended.append(contentsOf: [0x0D, 0x0A])
        mended.append(contentsOf: name)
        mended.append(contentsOf: [0x3A, 0x20])
        append(content)
    }

    /// The repaired value of a Content-Length: one of its equal members, or all of it, which the parser then refuses;
    /// nil if the line repeats an earlier one.
    private mutating func newLength(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let before = length
        var (number, isOne, count) = (before, true, 0)
        var first = value
        value.forEachMember { member in
            count += 1
            if count == 1 { first = member }
            let parsed = Decimal.parse(member)
            if parsed == nil || number ?? parsed != parsed { isOne = false }
            number = parsed
        }
        guard isOne else { return value }
        length = number
        if before != nil || count > 1 { note(.contentLengthRepeated) }
        return before == nil ? first : nil
    }

    /// Control characters become spaces (RFC 9110 section 5.5).
    private mutating func append(_ content: UnsafeRawBufferPointer) {
        let table = ByteClass.table
        for byte in content { mended.append(table[Int(byte)] & ByteClass.value == 0 ? 0x20 : byte) }
    }
}
