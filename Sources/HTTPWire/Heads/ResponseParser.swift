// The head of a response, parsed in place or line by line: strictly, and once more after a repair if that is possible.

/// Parses one response head, interim ones included, over a buffer that grows between calls or
/// from lines fed one at a time.
///
/// Every refusal has status 502 and is final until `reset()`: the connection must be closed. A lenient parser
/// collects a head that was refused for a reason that ``HeadMender`` can repair, repairs it and parses it again:
/// the result is always a head that the strict parser accepts. Not copyable, since a copy of the state would
/// cost more than a short head.
public struct ResponseParser: ~Copyable, Sendable {
    /// The part that the next byte belongs to, in the order of the transitions; `afterStatus` may skip `reason`.
    private enum State: UInt8 {
        case version, status, afterStatus, reason, lineFeed, fields, done
    }

    public let limits: HeadLimits
    /// Whether the mistakes that ``HeadMender`` repairs, statuses up to 999 and the chunked coding in HTTP/1.0 are
    /// accepted.
    public let isLenient: Bool
    private let acceptsHTTP2: Bool
    private var state = State.version
    /// The mender: one element while a head is collected for repair, otherwise empty. A mender is large: an optional
    /// would be moved and copied member by member, even if nil.
    private var menders: [HeadMender] = []
    private var scanner = FieldScanner()
    /// The offset of the next byte to read.
    private var position = 0
    private var partStart = 0
    private var failure: WireError?
    private var isHTTP2 = false
    /// The lines that `feedLine` was given.
    private var lines: [UInt8] = []

    /// The status: 100 to 599; up to 999 if the parser is lenient.
    public private(set) var status = 0
    public private(set) var reasonRange = 0..<0
    public private(set) var version = HTTPVersion.http11
    public private(set) var framing = BodyFraming.none
    /// Whether the server allows the connection to be reused; also false if the body ends with the connection, or its
    /// framing is dubious.
    public private(set) var keepAlive = true
    /// The reason why another parser may find the end of the message elsewhere: lines that end in LF alone
    /// (`bareLineFeed`), Content-Length twice (`contentLengthRepeated`), or the chunked coding in HTTP/1.0
    /// (`transferEncodingInHTTP10`); nil for none. Only a lenient parser sets it.
    public private(set) var oddFraming: WireReason?

    /// - Parameter acceptsHTTP2: whether the status line `HTTP/2 200` is accepted, which libcurl puts before the fields
    ///   of an HTTP/2 response.
    public init(limits: HeadLimits = HeadLimits(), isLenient: Bool = false, acceptsHTTP2: Bool = false) {
        self.limits = limits
        self.isLenient = isLenient
        self.acceptsHTTP2 = acceptsHTTP2
    }

    /// The known fields of the head.
    public var present: FieldSet { scanner.present }
    /// The field lines in order; without Content-Length if Transfer-Encoding overrode it.
    public var entries: [FieldEntry] { scanner.entries }

    /// Prepares for the next head; keeps the capacity.
    public mutating func reset() {
        lines.removeAll(keepingCapacity: true)
        failure = nil
        if !menders.isEmpty { menders = [] }
        startOver()
    }

    private mutating func startOver() {
        scanner.reset()
        state = .version
        position = 0
        partStart = 0
        isHTTP2 = false
        status = 0
        framing = .none
        keepAlive = true
        oddFraming = nil
    }

    /// Parses the bytes that are new since the last call. The buffer holds the same bytes as before and possibly more
    /// after them; it may have another address.
    ///
    /// The method of the request decides whether a body follows. Throws with status 502.
    public mutating func parse(
        _ buffer: UnsafeRawBufferPointer,
        requestMethod: Method
    ) throws(WireError) -> ParseProgress {
        if let failure { throw failure }
        do throws(WireError) {
            if !menders.isEmpty { return try mend(buffer, requestMethod) }
            return try advance(buffer, requestMethod)
        } catch {
            guard menders.isEmpty, mayMend(error, buffer) else {
                failure = error
                throw error
            }
        }
        menders = [HeadMender(limit: limits.head)]
        return try parse(buffer, requestMethod: requestMethod)
    }

    /// Takes one raw line with its CRLF, as libcurl delivers them; the empty line completes the head. A line after a
    /// complete head begins the next one, so that interim responses need no `reset()`. Throws with status 502.
    public mutating func feedLine(
        _ line: UnsafeRawBufferPointer,
        requestMethod: Method
    ) throws(WireError) -> ParseProgress {
        hold(line)
        return try parseHeld(requestMethod: requestMethod)
    }

    /// Takes one raw line like `feedLine`, but parses it later: to parse many lines at once is faster.
    public mutating func hold(_ line: UnsafeRawBufferPointer) {
        if state == .done { reset() }
        lines.append(contentsOf: line)
    }

    /// The number of bytes that were given line by line and are not parsed yet.
    public var unseen: Int { lines.count - (menders.first?.position ?? position) }

    /// Parses the lines that `hold` was given. Throws with status 502.
    public mutating func parseHeld(requestMethod: Method) throws(WireError) -> ParseProgress {
        let held = lines
        let result: Result<ParseProgress, WireError> = held.withUnsafeBytes { buffer in
            do throws(WireError) {
                return .success(try parse(buffer, requestMethod: requestMethod))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The head as a value that does not need the buffer; valid after `.complete` of `parse`.
    public func makeHead(_ buffer: UnsafeRawBufferPointer) -> ResponseHead {
        if menders.isEmpty { return head(in: buffer) }
        return menders[0].mended.withUnsafeBytes { head(in: $0) }
    }

    private func head(in buffer: UnsafeRawBufferPointer) -> ResponseHead {
        ResponseHead(
            status: status,
            reason: Latin1.string(buffer.part(reasonRange)),
            version: version,
            fields: scanner.fields(buffer),
            isOddlyFramed: oddFraming != nil
        )
    }

    /// The head that `feedLine` completed.
    public func makeHead() -> ResponseHead { lines.withUnsafeBytes { makeHead($0) } }

    // MARK: A head that is mended

    /// Whether a refused head may be repaired once it has arrived completely. Bytes that do not begin like a response
    /// are not repaired.
    private func mayMend(_ error: WireError, _ buffer: UnsafeRawBufferPointer) -> Bool {
        guard isLenient, state.rawValue >= State.afterStatus.rawValue else { return false }
        switch error.reason {
        case .bareLineFeed, .spaceBeforeColon, .foldedLine, .contentLengthRepeated: return true
        // A control character may be repaired, but never a NUL.
        case .fieldValueControl: return error.offset < buffer.count && buffer[error.offset] != 0
        case .statusLineMalformed: return state == .reason && position < buffer.count && buffer[position] != 0
        default: return false
        }
    }

    private mutating func mend(
        _ buffer: UnsafeRawBufferPointer,
        _ requestMethod: Method
    ) throws(WireError) -> ParseProgress {
        if state == .done { return .complete(headLength: menders[0].position) }
        guard try menders[0].take(buffer) else { return .needMore }
        let mender = menders[0]
        startOver()
        let progress: Result<ParseProgress, WireError> = mender.mended.withUnsafeBytes { mended in
            do throws(WireError) {
                return .success(try advance(mended, requestMethod))
            } catch {
                return .failure(error)
            }
        }
        guard case .complete = try progress.get() else { throw refuse(.statusLineMalformed) }
        if let reason = mender.oddFraming { distrust(reason) }
        return .complete(headLength: mender.position)
    }

    private mutating func distrust(_ reason: WireReason) {
        oddFraming = reason
        keepAlive = false
    }

    // MARK: A head as it came

    private mutating func advance(
        _ buffer: UnsafeRawBufferPointer,
        _ requestMethod: Method
    ) throws(WireError) -> ParseProgress {
        guard state != .done else { return .complete(headLength: position) }
        // A repair makes a head longer by a few bytes, but its length has been checked before.
        let limit = menders.isEmpty ? limits.head : buffer.count &+ 1
        let end = min(buffer.count, limit)
        guard position < end else { return .needMore }
        if state.rawValue < State.fields.rawValue { try scanStatusLine(buffer.bytes.extracting(first: end)) }
        if state == .fields {
            position = try scanner.scan(
                buffer.bytes.extracting(first: end),
                from: position,
                limits: limits,
                side: .response
            )
            if scanner.isDone {
                try judge(buffer, requestMethod)
                state = .done
                return .complete(headLength: position)
            }
        }
        if position >= limit { throw refuse(.headTooLong) }
        return .needMore
    }

    // MARK: The status line (RFC 9112 section 4)

    private mutating func scanStatusLine(_ bytes: RawSpan) throws(WireError) {
        let end = bytes.byteCount
        if position == 0, end > 9, bytes.unsafeLoadUnaligned(as: UInt64.self) == Self.usualVersion {
            // This has the same result as the code below, without reading byte by byte.
            version = .http11
            position = 8
        }
        while position < end {
            let byte = bytes[at: position]
            switch state {
            case .version: try takeVersion(byte)
            case .status:
                let digit = byte &- 0x30
                guard digit < 10 else { throw refuse(byte == 0x0A ? .bareLineFeed : .statusLineMalformed) }
                status = status * 10 + Int(digit)
                position &+= 1
                if position &- partStart == 3 {
                    // Statuses beyond 599 are undefined, and count as 5xx (RFC 9110 section 15).
                    guard status >= 100, status < 600 || isLenient else { throw refuse(.statusLineMalformed) }
                    state = .afterStatus
                }
            case .afterStatus:
                // Some servers leave out the space before an empty reason, against RFC 9112 section 4; this is
                // harmless.
                guard byte == 0x20 || byte == 0x0D else {
                    throw refuse(byte == 0x0A ? .bareLineFeed : .statusLineMalformed)
                }
                position &+= 1
                partStart = position
                reasonRange = position..<position
                state = byte == 0x20 ? .reason : .lineFeed
            case .reason: try scanReason(bytes)
            case .lineFeed:
                guard byte == 0x0A else { throw refuse(.bareCarriageReturn) }
                position &+= 1
                state = .fields
            case .fields, .done:
                return
            }
        }
    }

    /// `HTTP/1.1` as a word of memory.
    private static var usualVersion: UInt64 { UInt64(bigEndian: 0x4854_5450_2F31_2E31) }

    private mutating func takeVersion(_ byte: UInt8) throws(WireError) {
        let template: StaticString = "HTTP/1.x "
        let index = position &- partStart
        if index == 5, byte == 0x32, acceptsHTTP2 {
            isHTTP2 = true
        } else if index == 7 {
            guard byte == 0x30 || byte == 0x31 else { throw versionError(byte) }
            version = byte == 0x31 ? .http11 : .http10
        } else if byte != (isHTTP2 && index == 6 ? 0x20 : template.utf8Start[index]) {
            throw versionError(byte)
        }
        position &+= 1
        if index == 8 || isHTTP2 && index == 6 {
            if isHTTP2 { version = .http11 }
            partStart = position
            state = .status
        }
    }

    private func versionError(_ byte: UInt8) -> WireError {
        let index = position &- partStart
        if byte == 0x0A { return refuse(.bareLineFeed) }
        return refuse((index == 5 || index == 7) && byte &- 0x30 < 10 ? .versionUnsupported : .statusLineMalformed)
    }

    private mutating func scanReason(_ bytes: RawSpan) throws(WireError) {
        let end = bytes.byteCount
        let longest = partStart &+ 512
        position = FieldScanner.skipValue(bytes, from: position, to: min(end, longest))
        if position == end { return }
        let byte = bytes[at: position]
        guard byte == 0x0D else {
            if position >= longest { throw refuse(.reasonTooLong) }
            throw refuse(byte == 0x0A ? .bareLineFeed : .statusLineMalformed)
        }
        reasonRange = partStart..<position
        position &+= 1
        state = .lineFeed
    }

    private func refuse(_ reason: WireReason) -> WireError { WireError(reason, side: .response, offset: position) }

    // MARK: What the whole head says

    /// Decides the framing by RFC 9112 section 6.3. Ambiguous framing is refused, or ends the connection after this
    /// message.
    private mutating func judge(_ buffer: UnsafeRawBufferPointer, _ requestMethod: Method) throws(WireError) {
        let head = ScannedHead(buffer: buffer, side: .response)
        let length = try scanner.contentLength(head)
        let isChunked = try scanner.isChunked(head, isLenient ? .http11 : version)
        if isChunked, isHTTP2 { throw refuse(.transferEncodingMalformed) }
        keepAlive = scanner.keepAlive(head, version)
        // The sender of such a head may not have meant the coding (RFC 9112 section 6.1).
        if isChunked, version == .http10 { distrust(.transferEncodingInHTTP10) }
        if isChunked, length != nil {
            scanner.drop(.contentLength)
            keepAlive = false
        }
        if hasNoBody(requestMethod) {
            framing = .none
            // A server that announces chunks although none are allowed probably sends them (RFC 9112 section 6.1).
            if isChunked, status < 200 || status == 204 { keepAlive = false }
        } else if isChunked {
            framing = .chunked
        } else if let length {
            framing = .length(length)
        } else {
            framing = .untilClose
            if !isHTTP2 { keepAlive = false }
        }
    }

    private func hasNoBody(_ requestMethod: Method) -> Bool {
        switch requestMethod {
        case .head: true
        case .connect where status < 300: true
        default: status < 200 || status == 204 || status == 304
        }
    }
}

// MARK: - Repairs

/// Collects one complete head and repairs it: lines that end in LF alone, whitespace before a colon (RFC 9112 section
/// 5.1), folded lines (section 5.2), control characters in values, and a Content-Length that has one number more than
/// once (RFC 9110 section 8.6).
///
/// It leaves other errors as they are: the strict parser parses the result, and decides. A repair never creates a line
/// that delimits the message: whitespace before its colon, folds and control characters stay in it.
struct HeadMender: Sendable {
    /// The kinds of lines, which decide how a folded line is joined.
    private enum Line { case status, field, framing }

    /// The most bytes of a head.
    private let limit: Int
    /// The offset of the next byte to read; once the head is complete, its length.
    private(set) var position = 0
    private var lineStart = 0
    /// The repaired head, once it is complete.
    private(set) var mended: [UInt8] = []
    /// The first reason why another parser may find the end of the message elsewhere; nil for none.
    private(set) var oddFraming: WireReason?
    private var last = Line.status
    /// The value of Content-Length so far.
    private var length: UInt64?

    init(limit: Int) { self.limit = limit }

    /// Takes the bytes that are new since the last call; true if the head is complete. Throws with status 502.
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

    /// Refuses CR and NUL, which are never repaired: other parsers end lines and strings at them.
    private func check(_ line: UnsafeRawBufferPointer, _ start: Int) throws(WireError) {
        for (offset, byte) in line.enumerated() where byte == 0 || byte == 0x0D {
            let reason: WireReason = byte == 0 ? .fieldValueControl : .bareCarriageReturn
            throw WireError(reason, side: .response, offset: start + offset)
        }
    }

    private mutating func writeStatus(_ line: UnsafeRawBufferPointer) {
        // The reason begins after `HTTP/1.1 200 `.
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

    /// Appends content; control characters become spaces (RFC 9110 section 5.5).
    private mutating func append(_ content: UnsafeRawBufferPointer) {
        let table = ByteClass.table
        for byte in content { mended.append(table[Int(byte)] & ByteClass.value == 0 ? 0x20 : byte) }
    }
}
