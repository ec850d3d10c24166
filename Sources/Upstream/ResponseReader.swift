// What comes from the origin, judged by Drydock's own parser and kept until the loop hands it on.

internal import HTTPWire

/// Takes libcurl's raw field lines and body bytes, and appends what is not handed on at once.
struct ResponseReader {
    private var parser: ResponseParser
    private var decoder = BodyDecoder(.none, side: .response)
    private var method = Method.get
    private var isConditional = false

    /// Something of a response came, so that the request may have been acted on.
    private(set) var hasReceived = false
    private(set) var isHeadComplete = false
    /// The origin's connection may not be used again: it said so, or its framing is dubious.
    private(set) var mustClose = false
    /// Why the bytes were refused.
    private(set) var failure: UpstreamError.Kind?

    // What waits to be handed on, in this order.
    var interims: [ResponseHead] = []
    var head: ResponseHead?
    var bytes: [UInt8] = []

    init() { parser = ResponseParser() }

    var framing: BodyFraming { decoder.framing }
    var trailers: Fields { decoder.trailers }
    /// The whole message came, by its own framing.
    var isComplete: Bool { isHeadComplete && failure == nil && decoder.isComplete }

    /// Makes ready for the next request; keeps capacity within a bound.
    mutating func reset(for request: UpstreamRequest) {
        if parser.limits == request.limits { parser.reset() } else { parser = ResponseParser(limits: request.limits) }
        decoder = BodyDecoder(.none, side: .response)
        method = request.method
        isConditional = request.fields.contains(.ifNoneMatch) || request.fields.contains(.ifModifiedSince)
        hasReceived = false
        isHeadComplete = false
        mustClose = false
        failure = nil
        interims.removeAll(keepingCapacity: true)
        head = nil
        if bytes.capacity > 1 << 19 { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
    }

    /// Takes one raw line. False: refused, see ``failure``.
    mutating func take(line: UnsafeRawBufferPointer) -> Bool {
        guard failure == nil else { return false }
        // After the final head libcurl has no line to give: trailers come as bytes of the body.
        guard !isHeadComplete else {
            return refuse(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        }
        hasReceived = true
        parser.hold(line)
        // The empty line ends the head; the lines before it are judged with it, or when they are many.
        guard line.count <= 2 || parser.unseen >= Self.mostUnseen else { return true }
        return judgeHead()
    }

    /// In bytes.
    private static let mostUnseen = 8192

    /// Looks at the lines that have come. False: refused, see ``failure``.
    private mutating func judgeHead() -> Bool {
        do {
            if case .needMore = try parser.parseHeld(requestMethod: method) { return true }
        } catch {
            return refuse(.protocolViolation(error))
        }
        // No request that asks for a switch of protocols goes through libcurl.
        if parser.status == 101 { return refuse(.unexpectedStatus(101)) }
        if parser.status < 200 {
            interims.append(parser.makeHead())
            return true
        }
        if parser.status == 304, !isConditional { return refuse(.unexpectedStatus(304)) }
        isHeadComplete = true
        mustClose = !parser.keepAlive
        head = parser.makeHead()
        decoder = BodyDecoder(parser.framing, side: .response)
        return true
    }

    /// All that came of the response so far has been handed on.
    var isHandedOn: Bool { isHeadComplete && head == nil && bytes.isEmpty && interims.isEmpty }

    /// Takes raw bytes of the body, chunked coding included. False: refused, see ``failure``.
    /// - Parameter handOn: takes content from where it lies, or leaves it to be kept.
    mutating func take(body: UnsafeRawBufferPointer, handOn: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        guard failure == nil else { return false }
        guard isHeadComplete else {
            return refuse(.protocolViolation(WireError(.statusLineMalformed, side: .response)))
        }
        var position = 0
        do {
            while true {
                switch try decoder.next(body, from: position) {
                case .data(let range):
                    let content = UnsafeRawBufferPointer(rebasing: body[range])
                    if !handOn(content) { bytes.append(contentsOf: content) }
                    position = range.upperBound
                case .needMore: return true
                case .finished(let consumed):
                    if consumed < body.count { mustClose = true }
                    return true
                }
            }
        } catch {
            return refuse(.protocolViolation(error))
        }
    }

    /// No more lines come: what has come of a head is judged.
    mutating func endOfLines() {
        if failure == nil, !isHeadComplete, parser.unseen > 0 { _ = judgeHead() }
    }

    /// libcurl calls the transfer done: the body must be, too.
    mutating func end() -> Bool {
        guard failure == nil, isHeadComplete else { return false }
        if case .untilClose = decoder.framing { try? decoder.connectionClosed() }
        return decoder.isComplete
    }

    private mutating func refuse(_ kind: UpstreamError.Kind) -> Bool {
        failure = kind
        return false
    }
}
