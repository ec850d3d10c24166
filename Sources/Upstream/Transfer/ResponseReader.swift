// Parses an origin's bytes with Drydock's own parser, and keeps content that cannot be delivered at once.

import HTTPWire

/// Takes raw heads and body bytes: whole, as they were read, or line by line as libcurl has them.
/// Loop-bound, its carrier's own.
final class ResponseReader {
    // Both unchecked, since a check would be paid for with every look at bytes. They are private, and whoever changes
    // them calls nothing but themselves: `take(body:handOn:)` hands a piece on between two steps of the decoder, never
    // within one.
    @exclusivity(unchecked) private var parser: ResponseParser
    @exclusivity(unchecked) private var decoder = BodyDecoder(.none, side: .response)
    private var method = Method.get
    private var isConditional = false
    private var isUpgrade = false
    /// The peer is a proxy, which may answer for itself.
    private var isProxied = false

    /// Something of a response came, so that the request may have been acted on.
    private(set) var hasReceived = false
    private(set) var isHeadComplete = false
    /// The connection must not be reused: the origin said so, or its framing is ambiguous.
    private(set) var mustClose = false
    /// How long the connection may lie idle after this response, in nanoseconds; nil if the origin has not said.
    private(set) var longestIdle: UInt64?
    /// The request's credentials authenticate the connection, so that it must not carry another client's request.
    private var authenticatesConnection = false
    /// Why the bytes were refused.
    private(set) var failure: UpstreamError.Kind?

    // What waits to be handed on, in this order. Unchecked, since a check would be paid for with every event:
    // `Transfer.handOn` takes each of them out before it calls the delegate, so that a carrier may add to them while
    // that one works.
    @exclusivity(unchecked) var interims: [ResponseHead] = []
    @exclusivity(unchecked) var head: ResponseHead?
    @exclusivity(unchecked) var bytes: [UInt8] = []
    /// The start of a head that has not come to its end.
    // Unchecked, since a check would be paid for with every head: only `take(head:)` changes it, and calls nobody in
    // between.
    @exclusivity(unchecked) private var part: [UInt8] = []
    /// The length of the interim heads so far, in bytes, and their number.
    private var interimLength = 0
    private var interimCount = 0
    /// Why a head so far, of an interim response or the final one, may be read otherwise by others; nil: none is.
    private var oddFraming: WireReason?

    init() { parser = ResponseParser(limits: .response, isLenient: true) }

    var framing: BodyFraming { decoder.framing }
    var trailers: Fields { decoder.trailers }
    /// The whole message came, by its own framing.
    var isComplete: Bool { isHeadComplete && failure == nil && decoder.isComplete }

    /// Makes ready for the next request; keeps capacity within a bound.
    /// - Parameter isProxied: a proxy is asked for the URL as a whole.
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

    /// Takes one raw line. False: refused, see ``failure``.
    func take(line: UnsafeRawBufferPointer) -> Bool {
        guard failure == nil else { return false }
        // After the final head libcurl has no line to give: trailers come as bytes of the body.
        guard !isHeadComplete else {
            return refuse(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        }
        hasReceived = true
        // The count includes the final head, whose own length the parser limits.
        guard count(interim: line.count, atMost: InterimBound.maximumBytes + parser.limits.head) else { return false }
        parser.hold(line)
        // The empty line ends the head; the lines before it are judged with it, or when they are many.
        guard line.count <= 2 || parser.unseen >= Self.maximumUnseen else { return true }
        return judgeHead()
    }

    /// How much of a head may gather before the parser looks at it, in bytes.
    private static let maximumUnseen = 8192

    /// Looks at the lines that have come. False: refused, see ``failure``.
    private func judgeHead() -> Bool {
        do {
            if case .needMore = try parser.parseHeld(requestMethod: method) { return true }
        } catch {
            return refuse(.protocolViolation(error))
        }
        return accept(parser.makeHead())
    }

    /// Counts bytes of heads before the final one; false: refused.
    private func count(interim length: Int, atMost most: Int) -> Bool {
        interimLength += length
        guard interimLength > most else { return true }
        return refuse(.protocolViolation(WireError(.tooManyInterims, side: .response)))
    }

    /// A complete head; false: refused.
    private func accept(_ head: consuming ResponseHead) -> Bool {
        if oddFraming == nil { oddFraming = parser.oddFraming }
        if head.status == 101 {
            guard isUpgrade else { return refuse(.unexpectedStatus(101)) }
            // The bytes after a 101 are not HTTP: their beginning must be unambiguous.
            if let oddFraming { return refuse(.protocolViolation(WireError(oddFraming, side: .response))) }
        } else if head.status < 200 {
            interimCount += 1
            guard interimCount <= InterimBound.maximumHeads else {
                return refuse(.protocolViolation(WireError(.tooManyInterims, side: .response)))
            }
            interims.append(head)
            return true
        }
        // An origin has nothing to say by this status (RFC 9110 section 15.5.8): it is the proxy's own.
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

    /// Looks at all bytes of a head that have come: how long it is; nil: more are needed, or it was
    /// refused, see ``failure``.
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
        // Swapped, which moves it.
        var taken: ResponseHead?
        swap(&taken, &head)
        return taken
    }

    /// Nothing waits to be handed on.
    var isHandedOut: Bool { head == nil && bytes.isEmpty && interims.isEmpty }
    /// All that came of the response so far has been handed on, its head at least.
    var isHandedOn: Bool { isHeadComplete && isHandedOut }

    /// Takes raw bytes of the body, chunked coding included. False if refused, see ``failure``.
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

    /// The next piece of content, the end of the body or that of the bytes; nil: refused, see ``failure``.
    func next(_ body: UnsafeRawBufferPointer, from position: Int) -> BodyStep? {
        do {
            let step = try decoder.next(body, from: position)
            // Set before the last piece is delivered, because the delegate may end the transfer in that call.
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

    /// Bytes of content that are still to come, where a length says how many and nothing waits before them; else nil.
    var lengthLeft: UInt64? { bytes.isEmpty && failure == nil && isHeadComplete ? decoder.lengthLeft : nil }

    /// Counts content bytes that were taken from the socket elsewhere.
    func skip(_ count: Int) { decoder.skip(count) }

    /// Keeps content until it is wanted.
    func keep(_ content: UnsafeRawBufferPointer) { bytes.append(contentsOf: content) }

    /// The connection is not fit for another request.
    func forbidReuse() { mustClose = true }

    /// Frees the memory that a long response needed.
    func shrink() {
        if bytes.capacity > 1 << 14 { bytes = [] }
        if part.capacity > 1 << 14 { part = [] }
    }

    /// Called when no more lines follow: judges the head so far.
    func endOfLines() {
        if failure == nil, !isHeadComplete, parser.unseen > 0 { _ = judgeHead() }
    }

    /// libcurl calls the transfer done: the body must be, too.
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
