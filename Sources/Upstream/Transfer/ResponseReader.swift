// Parses an origin's bytes with Drydock's own parser, and keeps content that cannot be delivered at once.

import HTTPWire

/// Reads raw heads and body bytes, whole as they were received, or line by line as libcurl gives them. Loop-bound,
/// owned by its carrier.
final class ResponseReader {
    // Both are unchecked, since a check would be paid for with every access to bytes. They are private, and the methods
    // that change them call nothing else: `take(body:handOn:)` hands a piece on between two steps of the decoder, never
    // within one.
    @exclusivity(unchecked) private var parser: ResponseParser
    @exclusivity(unchecked) private var decoder = BodyDecoder(.none, side: .response)
    private var method = Method.get
    private var isConditional = false
    private var isUpgrade = false
    /// Whether the peer is a proxy, which may answer for itself.
    private var isProxied = false

    /// Whether a byte of a response arrived, so that the origin may have acted on the request.
    private(set) var hasReceived = false
    private(set) var isHeadComplete = false
    /// True if the connection must not be reused: the origin said so, or its framing is ambiguous.
    private(set) var mustClose = false
    /// The time in nanoseconds for which the connection may be idle after this response; nil if the origin gives none.
    private(set) var longestIdle: UInt64?
    /// Whether the request's credentials authenticate the connection, so that it must not carry another client's
    /// request.
    private var authenticatesConnection = false
    /// The reason why the bytes were refused; nil if they were not.
    private(set) var failure: UpstreamError.Kind?

    // The parts that wait to be handed on, in this order. Unchecked, since a check would be paid for with every event:
    // `Transfer.handOn` takes each of them out before it calls the delegate, so that a carrier may add parts during the
    // call.
    @exclusivity(unchecked) var interims: [ResponseHead] = []
    @exclusivity(unchecked) var head: ResponseHead?
    @exclusivity(unchecked) var bytes: [UInt8] = []
    /// The start of a head that is not complete yet. Unchecked, since a check would be paid for with every head: only
    /// `take(head:)` changes it, and makes no other call in between.
    @exclusivity(unchecked) private var part: [UInt8] = []
    /// The length of the interim heads so far, in bytes, and their number.
    private var interimLength = 0
    private var interimCount = 0
    /// The reason why other parsers may read a head so far, interim or final, differently; nil if there is none.
    private var oddFraming: WireReason?

    init() { parser = ResponseParser(limits: .response, isLenient: true) }

    var framing: BodyFraming { decoder.framing }
    var trailers: Fields { decoder.trailers }
    /// Whether the whole message has arrived, by its own framing.
    var isComplete: Bool { isHeadComplete && failure == nil && decoder.isComplete }

    /// Prepares for the next request; the kept capacity is bounded.
    /// - Parameter isProxied: whether a proxy is asked for the URL as a whole.
    func reset(for request: UpstreamRequest, isProxied: Bool = false) {
        let terms = request.terms
        if parser.limits == terms.limits, parser.isLenient == terms.isLenient {
            parser.reset()
        } else {
            parser = ResponseParser(limits: terms.limits, isLenient: terms.isLenient)
        }
        decoder = BodyDecoder(.none, side: .response)
        method = request.method
        isConditional = request.fields.contains(.ifNoneMatch) || request.fields.contains(.ifModifiedSince)
        isUpgrade = request.isUpgrade
        self.isProxied = isProxied
        hasReceived = false
        isHeadComplete = false
        mustClose = false
        longestIdle = nil
        authenticatesConnection = ConnectionTerms.authenticateConnection(request.fields)
        failure = nil
        interimLength = 0
        interimCount = 0
        oddFraming = nil
        interims.removeAll(keepingCapacity: true)
        head = nil
        part.removeAll(keepingCapacity: true)
        if bytes.capacity > 1 << 19 { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
    }

    /// Takes one raw line. False if it is refused, see ``failure``.
    func take(line: UnsafeRawBufferPointer) -> Bool {
        guard failure == nil else { return false }
        // After the final head libcurl gives no more lines: trailers are delivered as bytes of the body.
        guard !isHeadComplete else {
            return refuse(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        }
        hasReceived = true
        // The count includes the final head, whose own length the parser limits.
        guard count(interim: line.count, atMost: InterimBound.maximumBytes + parser.limits.head) else { return false }
        parser.hold(line)
        // The empty line ends the head; the lines before it are parsed with it, or earlier if they are many.
        guard line.count <= 2 || parser.unseen >= Self.maximumUnseen else { return true }
        return judgeHead()
    }

    /// The most bytes of a head that are collected before the parser sees them.
    private static let maximumUnseen = 8192

    /// Parses the lines that have arrived. False if they are refused, see ``failure``.
    private func judgeHead() -> Bool {
        do {
            if case .needMore = try parser.parseHeld(requestMethod: method) { return true }
        } catch {
            return refuse(.protocolViolation(error))
        }
        return accept(parser.makeHead())
    }

    /// Counts bytes of heads before the final one; false if there are too many.
    private func count(interim length: Int, atMost most: Int) -> Bool {
        interimLength += length
        guard interimLength > most else { return true }
        return refuse(.protocolViolation(WireError(.tooManyInterims, side: .response)))
    }

    /// Takes a complete head; false if it is refused.
    private func accept(_ head: consuming ResponseHead) -> Bool {
        if oddFraming == nil { oddFraming = parser.oddFraming }
        if head.status == 101 {
            guard isUpgrade else { return refuse(.unexpectedStatus(101)) }
            // The bytes after a 101 are not HTTP, so the position where they begin must be unambiguous.
            if let oddFraming { return refuse(.protocolViolation(WireError(oddFraming, side: .response))) }
        } else if head.status < 200 {
            interimCount += 1
            guard interimCount <= InterimBound.maximumHeads else {
                return refuse(.protocolViolation(WireError(.tooManyInterims, side: .response)))
            }
            interims.append(head)
            return true
        }
        // An origin cannot mean this status (RFC 9110 section 15.5.8): it is the proxy's own.
        if head.status == 407, isProxied { return refuse(.proxy(407)) }
        if head.status == 304, !isConditional { return refuse(.unexpectedStatus(304)) }
        isHeadComplete = true
        longestIdle = ConnectionTerms.longestIdle(head.fields)
        mustClose =
            isUpgrade || !parser.keepAlive || longestIdle == 0 || oddFraming != nil || authenticatesConnection
            || ConnectionTerms.authenticateConnection(head.fields)
        head.isOddlyFramed = oddFraming != nil
        self.head = head
        decoder = BodyDecoder(parser.framing, side: .response, isLenient: parser.isLenient)
        return true
    }

    /// The result of parsing bytes of a head; a head comes with its status and its count of bytes.
    enum HeadStep { case needMore, interim(status: Int, length: Int), final(status: Int, length: Int), refused }

    /// Takes bytes up to the end of the next head.
    func take(head bytes: UnsafeRawBufferPointer) -> HeadStep {
        hasReceived = true
        let earlier = part.count
        if earlier > 0 { part.append(contentsOf: bytes) }
        let whole = earlier > 0 ? part.withUnsafeBytes { parse($0) } : parse(bytes)
        guard failure == nil else { return .refused }
        guard let whole else {
            if earlier == 0 { part.append(contentsOf: bytes) }
            return .needMore
        }
        let status = parser.status
        if status < 200, !count(interim: whole, atMost: InterimBound.maximumBytes) { return .refused }
        guard accept(earlier > 0 ? part.withUnsafeBytes { parser.makeHead($0) } : parser.makeHead(bytes)) else {
            return .refused
        }
        // The next head begins anew.
        parser.reset()
        part.removeAll(keepingCapacity: true)
        let length = whole - earlier
        guard isHeadComplete else { return .interim(status: status, length: length) }
        // After a response without a body, further bytes belong to no response.
        if decoder.isComplete, length < bytes.count { mustClose = true }
        return .final(status: status, length: length)
    }

    /// Parses all received bytes of a head, and returns its length; nil if more are needed, or it was refused, see
    /// ``failure``.
    private func parse(_ bytes: UnsafeRawBufferPointer) -> Int? {
        do throws(WireError) {
            guard case .complete(let length) = try parser.parse(bytes, requestMethod: method) else { return nil }
            return length
        } catch {
            _ = refuse(.protocolViolation(error))
            return nil
        }
    }

    /// Returns the final head once, then nil.
    func takeHead() -> ResponseHead? {
        // The swap moves the head without a copy.
        var taken: ResponseHead?
        swap(&taken, &head)
        return taken
    }

    /// True if nothing waits to be handed on.
    var isHandedOut: Bool { head == nil && bytes.isEmpty && interims.isEmpty }
    /// True if all received parts of the response have been handed on, and the head is one of them.
    var isHandedOn: Bool { isHeadComplete && isHandedOut }

    /// Takes raw bytes of the body, chunked coding included. False if they are refused, see ``failure``.
    /// - Parameter handOn: takes content in place, or returns false so that it is kept.
    func take(body: UnsafeRawBufferPointer, handOn: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        guard failure == nil else { return false }
        guard isHeadComplete else {
            return refuse(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        }
        var position = 0
        while let step = next(body, from: position) {
            guard case .data(let range) = step else { return true }
            let content = UnsafeRawBufferPointer(rebasing: body[range])
            if !handOn(content) { keep(content) }
            position = range.upperBound
        }
        return false
    }

    /// The next piece of content, the end of the body or the end of the bytes; nil if they were refused, see
    /// ``failure``.
    func next(_ body: UnsafeRawBufferPointer, from position: Int) -> BodyStep? {
        do {
            let step = try decoder.next(body, from: position)
            // This is set before the last piece is delivered, because the delegate may end the transfer in that call.
            switch step {
            case .data(let range) where decoder.isComplete && range.upperBound < body.count: mustClose = true
            case .finished(let consumed) where consumed < body.count: mustClose = true
            default: break
            }
            return step
        } catch {
            _ = refuse(.protocolViolation(error))
            return nil
        }
    }

    /// The number of content bytes that are still to come, if a length gives it and nothing waits before them; nil
    /// otherwise.
    var lengthLeft: UInt64? { bytes.isEmpty && failure == nil && isHeadComplete ? decoder.lengthLeft : nil }

    /// Counts content bytes that were read from the socket elsewhere.
    func skip(_ count: Int) { decoder.skip(count) }

    /// Keeps content until the delegate wants it.
    func keep(_ content: UnsafeRawBufferPointer) { bytes.append(contentsOf: content) }

    /// Marks the connection as one that must not be reused.
    func forbidReuse() { mustClose = true }

    /// Frees the memory that a long response needed.
    func shrink() {
        if bytes.capacity > 1 << 14 { bytes = [] }
        if part.capacity > 1 << 14 { part = [] }
    }

    /// Parses the head so far; called when no more lines follow.
    func endOfLines() {
        if failure == nil, !isHeadComplete, parser.unseen > 0 { _ = judgeHead() }
    }

    /// Checks at libcurl's end of the transfer that the body has ended, too.
    func end() -> Bool {
        guard failure == nil, isHeadComplete else { return false }
        if case .untilClose = decoder.framing { try? decoder.connectionClosed() }
        return decoder.isComplete
    }

    private func refuse(_ kind: UpstreamError.Kind) -> Bool {
        failure = kind
        return false
    }
}

@available(*, unavailable) extension ResponseReader: Sendable {}
