// The head of a request, parsed in place: offsets into the read buffer, resumable at any byte, strict except for UTF-8
// in targets.

/// Parses one request head over a buffer that grows between calls.
///
/// Nothing is allocated once the entries have their capacity, except for the name of an unknown method over 15 bytes.
/// One CRLF before the request line is skipped (RFC 9112 section 2.2), a second is refused. A refusal is final until
/// `reset()`: the connection has to be closed. Not copyable, since a copy of the state would cost more than most
/// accesses.
public struct RequestParser: ~Copyable, Sendable {
    /// The part that the next byte belongs to, in the order of the transitions; `start` goes to `emptyLineFeed` or
    /// straight to `method`.
    private enum State: UInt8 {
        case start, emptyLineFeed, method, target, version, versionEnd, lineFeed, fields, done
    }

    public let limits: HeadLimits
    private var state = State.start
    private var scanner = FieldScanner()
    /// The last section whose scan is still valid; empty if there is none.
    private var section = FieldSectionCache()
    /// The lines of that section as a value, once they were needed.
    private var sectionFields: Fields?
    /// Whether that section keeps the connection open.
    private var keepsAlive = true
    private var sectionStart = 0
    /// The offset of the next byte to read.
    private var position = 0
    private var partStart = 0
    private var failure: WireError?

    public private(set) var method = Method.get
    /// The range of the request target, exactly as sent; see ``hasRawTarget``.
    public private(set) var targetRange = 0..<0
    public private(set) var version = HTTPVersion.http11
    public private(set) var framing = BodyFraming.none
    /// Whether the client allows the connection to be reused.
    public private(set) var keepAlive = true
    /// The properties that only few requests have; one byte, since every request reads it.
    private var traits: Traits = []

    private struct Traits: OptionSet {
        let rawValue: UInt8
        static let expectsContinue = Traits(rawValue: 1)
        static let requestsUpgrade = Traits(rawValue: 2)
        static let hasRawTarget = Traits(rawValue: 4)
    }

    /// Whether the client waits for a 100 before it sends the body (RFC 9110 section 10.1.1).
    public var expectsContinue: Bool { traits.contains(.expectsContinue) }
    /// Whether Upgrade is present and named in Connection, in HTTP/1.1 (RFC 9110 section 7.8).
    public var requestsUpgrade: Bool { traits.contains(.requestsUpgrade) }
    /// Whether the target has raw UTF-8 bytes. ``makeHead(_:)`` percent-encodes them, so that both spellings of a
    /// target are one resource.
    public var hasRawTarget: Bool { traits.contains(.hasRawTarget) }
    /// Whether the request has no Expect and no Upgrade, and its target needs no change.
    public var isOrdinary: Bool { traits.isEmpty }

    public init(limits: HeadLimits = HeadLimits()) { self.limits = limits }

    /// The known fields of the head.
    public var present: FieldSet { scanner.present }
    /// The field lines in order.
    public var entries: [FieldEntry] { scanner.entries }

    /// Whether the fields of the last head from `makeHead` are kept for a next head with the same section; those of
    /// long sections and of requests with a body are not.
    public var keepsFields: Bool { sectionFields != nil }

    /// Prepares for the next head, which starts at the start of the next buffer; keeps the capacity. Values of the
    /// earlier head must not be read afterwards.
    public mutating func reset() {
        if section.isEmpty { scanner.reset() }
        state = .start
        position = 0
        failure = nil
        method = .get
        framing = .none
        keepAlive = true
        traits = []
    }

    /// Parses the bytes that are new since the last call. The buffer holds the same bytes as before and possibly more
    /// after them; it may have another address.
    ///
    /// Throws the status to answer with: 400, 411, 414, 431, 501 or 505.
    public mutating func parse(_ buffer: UnsafeRawBufferPointer) throws(WireError) -> ParseProgress {
        if let failure { throw failure }
        do throws(WireError) {
            return try advance(buffer)
        } catch {
            failure = error
            throw error
        }
    }

    /// The head as a value that does not need the buffer; valid after `.complete`. A repeated field section gives the
    /// same fields as before, in the same memory.
    public mutating func makeHead(_ buffer: UnsafeRawBufferPointer) -> RequestHead {
        let fields = sectionFields ?? scanner.fields(buffer)
        if !section.isEmpty { sectionFields = fields }
        let bytes = buffer.part(targetRange)
        let target = hasRawTarget ? RequestTarget.encoded(bytes) : String(decoding: bytes, as: UTF8.self)
        return RequestHead(method: method, target: target, version: version, fields: fields)
    }

    /// The value of the first line of this name, without surrounding whitespace.
    public func value(_ field: KnownField, in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        scanner.entry(field)?.value(in: buffer)
    }

    /// The value of Host, and the known fields of the head. Mutating, since the compiler would load the whole parser
    /// for a read.
    public mutating func hostAndFields(in buffer: UnsafeRawBufferPointer) -> (UnsafeRawBufferPointer?, FieldSet) {
        (scanner.entry(.host)?.value(in: buffer), scanner.present)
    }

    private mutating func advance(_ buffer: UnsafeRawBufferPointer) throws(WireError) -> ParseProgress {
        guard state != .done else { return .complete(headLength: position) }
        let end = min(buffer.count, limits.head)
        guard position < end else { return .needMore }
        // No byte beyond the limit is read.
        let bytes = buffer.bytes.extracting(first: end)
        if state.rawValue < State.fields.rawValue { try scanRequestLine(bytes, buffer) }
        if state == .fields, !section.isEmpty, repeatsSection(bytes) { return .complete(headLength: position) }
        if state == .fields {
            position = try scanner.scan(bytes, from: position, limits: limits, side: .request)
            if scanner.isDone {
                try judge(buffer)
                remember(buffer)
                state = .done
                return .complete(headLength: position)
            }
        }
        if position >= limits.head { throw refuse(.headTooLong) }
        return .needMore
    }

    // MARK: The request line (RFC 9112 section 3)

    private mutating func scanRequestLine(_ bytes: RawSpan, _ buffer: UnsafeRawBufferPointer) throws(WireError) {
        while position < bytes.byteCount {
            switch state {
            case .start:
                if byte(bytes) == 0x0D {
                    state = .emptyLineFeed
                    position = 1
                } else {
                    partStart = position
                    state = .method
                }
            case .emptyLineFeed:
                try expectLineFeed(bytes)
                partStart = position
                state = .method
            case .method: try scanMethod(bytes, buffer)
            case .target: try scanTarget(bytes)
            case .version: try scanVersion(bytes, buffer)
            case .versionEnd:
                guard byte(bytes) == 0x0D else { throw refuse(byte(bytes) == 0x0A ? .bareLineFeed : .versionMalformed) }
                position &+= 1
                state = .lineFeed
            case .lineFeed:
                try expectLineFeed(bytes)
                try endRequestLine(bytes, buffer)
            case .fields, .done: return
            }
        }
    }

    private mutating func scanMethod(_ bytes: RawSpan, _ buffer: UnsafeRawBufferPointer) throws(WireError) {
        let end = bytes.byteCount
        // The usual method is found with one load.
        if position == partStart, end &- position >= 4, Method.isGet(bytes, at: position) {
            position &+= 3
            method = .get
        } else {
            let longest = partStart &+ 32
            let bound = min(end, longest &+ 1)
            while position < bound, ByteClass.table[Int(byte(bytes))] & ByteClass.token != 0 { position &+= 1 }
            if position > longest { throw refuse(.methodTooLong) }
            if position == end { return }
            guard byte(bytes) == 0x20, position > partStart else {
                throw refuse(byte(bytes) == 0x0A ? .bareLineFeed : .methodMalformed)
            }
            method = Method(bytes: buffer.part(partStart..<position))
        }
        position &+= 1
        partStart = position
        state = .target
    }

    private mutating func scanTarget(_ bytes: RawSpan) throws(WireError) {
        let end = bytes.byteCount
        let longest = partStart &+ limits.target
        let bound = min(end, longest)
        position = ByteClass.skipTarget(bytes, from: position, to: bound)
        while position < bound, byte(bytes) >= 0x80 {
            traits.insert(.hasRawTarget)
            position = ByteClass.skipTarget(bytes, from: position &+ 1, to: bound)
        }
        if position == end { return }
        guard byte(bytes) == 0x20, position > partStart else {
            if position >= longest { throw refuse(.targetTooLong) }
            switch byte(bytes) {
            case 0x0A: throw refuse(.bareLineFeed)
            case 0x0D: throw refuse(.versionMalformed)
            default: throw refuse(.targetMalformed)
            }
        }
        targetRange = partStart..<position
        position &+= 1
        partStart = position
        state = .version
    }

    private mutating func scanVersion(_ bytes: RawSpan, _ buffer: UnsafeRawBufferPointer) throws(WireError) {
        let end = bytes.byteCount
        // The usual version is found with two loads: `HTTP/1.1` and CRLF have arrived together.
        if position == partStart, end &- position >= 10,
            UInt64(littleEndian: bytes[wordAt: position]) == 0x312E_312F_5054_5448,
            UInt16(littleEndian: bytes[wordAt: position &+ 8]) == 0x0A0D
        {
            position &+= 10
            return try endRequestLine(bytes, buffer)
        }
        let template: StaticString = "HTTP/0.0"
        while position < end, position &- partStart < 8 {
            let expected = template.utf8Start[position &- partStart]
            let matches = expected == 0x30 ? byte(bytes) &- 0x30 < 10 : byte(bytes) == expected
            guard matches else { throw refuse(byte(bytes) == 0x0A ? .bareLineFeed : .versionMalformed) }
            position &+= 1
        }
        if position &- partStart == 8 { state = .versionEnd }
    }

    /// Checks the version and the form of the target, which need the whole request line.
    private mutating func endRequestLine(_ bytes: RawSpan, _ buffer: UnsafeRawBufferPointer) throws(WireError) {
        let major = bytes[at: partStart &+ 5]
        let minor = bytes[at: partStart &+ 7]
        guard major == 0x31, minor == 0x31 || minor == 0x30 else { throw refuse(.versionUnsupported) }
        version = minor == 0x31 ? .http11 : .http10
        if hasRawTarget, String(validating: buffer.part(targetRange), as: UTF8.self) == nil {
            throw refuse(.targetMalformed)
        }
        // Usually the method is GET, and the target begins with a slash.
        let isPath = bytes[at: targetRange.lowerBound] == 0x2F
        if method != .get || !isPath {
            _ = try RequestTarget.Parts(buffer.part(targetRange), method: method, offset: targetRange.lowerBound)
        }
        sectionStart = position
        state = .fields
    }

    private mutating func expectLineFeed(_ bytes: RawSpan) throws(WireError) {
        guard byte(bytes) == 0x0A else { throw refuse(.bareCarriageReturn) }
        position &+= 1
    }

    @inline(__always)
    private func byte(_ bytes: RawSpan) -> UInt8 { bytes[at: position] }

    private func refuse(_ reason: WireReason) -> WireError { WireError(reason, side: .request, offset: position) }

    // MARK: A section that is said again

    /// Whether the section repeats the last one: then its scan applies here, and the head is complete.
    private mutating func repeatsSection(_ bytes: RawSpan) -> Bool {
        guard version == .http11, section.isRepeated(bytes, at: position) else {
            section.forget()
            sectionFields = nil
            scanner.reset()
            return false
        }
        scanner.move(by: position &- section.start)
        section.move(to: position)
        position &+= section.count
        keepAlive = keepsAlive
        state = .done
        return true
    }

    /// Caches a section that has the same meaning in each HTTP/1.1 request: one without a body, with any method.
    private mutating func remember(_ buffer: UnsafeRawBufferPointer) {
        // The target does not belong to the section.
        guard version == .http11, framing == .none, traits.subtracting(.hasRawTarget).isEmpty else { return }
        keepsAlive = keepAlive
        section.note(buffer.part(sectionStart..<position), from: sectionStart)
    }

    // MARK: What the whole head says

    private mutating func judge(_ buffer: UnsafeRawBufferPointer) throws(WireError) {
        let head = ScannedHead(buffer: buffer, side: .request)
        try checkHost(head)
        framing = try requestFraming(head)
        keepAlive = scanner.keepAlive(head, version)
        guard version == .http11 else { return }
        if let expect = scanner.entry(.expect) {
            if expect.value(in: buffer).equalsIgnoringCase("100-continue") { traits.insert(.expectsContinue) }
        }
        if scanner.present.contains(.upgrade), scanner.connectionNames(head, "upgrade") {
            traits.insert(.requestsUpgrade)
        }
    }

    /// Checks that there is exactly one well-formed Host in HTTP/1.1, and at most one in HTTP/1.0 (RFC 9112 section
    /// 3.2).
    private func checkHost(_ head: ScannedHead) throws(WireError) {
        if version == .http11, !scanner.present.contains(.host) { throw refuse(.hostMissing) }
        guard let host = scanner.entry(.host) else { return }
        if scanner.repeated.contains(.host) { throw head.error(.hostRepeated, host) }
        if Authority.split(host.value(in: head.buffer)) == nil { throw head.error(.hostMalformed, host) }
    }

    private func requestFraming(_ head: ScannedHead) throws(WireError) -> BodyFraming {
        let length = try scanner.contentLength(head)
        let isChunked = try scanner.isChunked(head, version)
        if isChunked, length != nil { throw refuse(.contentLengthWithTransferEncoding) }
        let hasBody = isChunked || (length ?? 0) > 0
        switch method {
        // The bytes after a CONNECT head belong to the tunnel (RFC 9110 section 9.3.6).
        case .connect where hasBody: throw refuse(.bodyNotAllowed)
        case .get, .head, .delete: if version == .http10, hasBody { throw refuse(.bodyNotAllowed) }
        case .post, .put: if version == .http10, length == nil { throw refuse(.lengthRequired) }
        default: break
        }
        return isChunked ? .chunked : length.map { .length($0) } ?? .none
    }
}
