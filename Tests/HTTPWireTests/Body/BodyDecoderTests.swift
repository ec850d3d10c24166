// Bodies: the chunked coding and the other framings, each body in every split of its bytes over reads.

import HTTPWire
import Testing

@Suite("Body decoder")
struct BodyDecoderTests {
    @Test("RFC 9112 7.1: chunked bodies; what follows is left alone", arguments: ChunkedCorpus.taken)
    func taken(content: String, trailers: [(String, String)], body: String) {
        for following in ["", "\r\n", "GET / HTTP/1.1\r\n"] {
            let expected = BodyOutcome.finished(
                content: bytes(content),
                trailers: Fields(trailers),
                consumed: bytes(body).count
            )
            #expect(bodyOutcome(bytes(body + following)) == expected)
        }
    }

    @Test("RFC 9112 7.1: what is refused, 400 from a client and 502 from upstream", arguments: ChunkedCorpus.refused)
    func refused(reason: WireReason, body: String) {
        for (side, status) in [(MessageSide.request, 400), (.response, 502)] {
            guard case .refused(let error) = bodyOutcome(bytes(body), side: side) else {
                Issue.record("taken or incomplete: \(body.debugDescription)")
                return
            }
            #expect(error.status == status)
            #expect(error.reason == reason)
        }
    }

    @Test(
        "Whitespace behind a chunk size: taken in a lenient reader's answers, and in nothing else",
        arguments: ChunkedCorpus.padded
    )
    func padded(body: String) {
        let expected = BodyOutcome.finished(content: bytes("hello"), trailers: Fields(), consumed: bytes(body).count)
        #expect(bodyOutcome(bytes(body), side: .response, isLenient: true) == expected)
        for side in [MessageSide.request, .response] {
            guard case .refused(let error) = bodyOutcome(bytes(body), side: side) else {
                Issue.record("taken or incomplete: \(body.debugDescription)")
                return
            }
            #expect(error.reason == .chunkSizeMalformed)
        }
    }

    @Test("A lenient reader of chunks refuses all else that a strict one refuses", arguments: ChunkedCorpus.refused)
    func lenientRefusals(reason: WireReason, body: String) {
        let rest = "\r\nhello\r\n0"
        if ChunkedCorpus.padded.contains(body) || body.contains(" " + rest) || body.hasSuffix("0 \r\n\r\n") { return }
        guard case .refused(let error) = bodyOutcome(bytes(body), side: .response, isLenient: true) else {
            Issue.record("taken or incomplete: \(body.debugDescription)")
            return
        }
        #expect(error.status == 502 && error.reason == reason)
    }

    @Test("RFC 9112 8: a chunked body that is cut short anywhere is not complete", arguments: ChunkedCorpus.taken)
    func short(content: String, trailers: [(String, String)], body: String) throws {
        let whole = bytes(body)
        for end in 0..<whole.count {
            guard case .incomplete = decodeBody(Array(whole[0..<end]), cuts: [], .chunked) else {
                Issue.record("complete after \(end) bytes")
                return
            }
        }
        #expect(throws: WireError(.bodyTruncated, side: .response)) { try isComplete(.chunked, closed: true) }
    }

    @Test("The largest chunk size is 2^63 - 1")
    func largest() throws {
        var decoder = ChunkedDecoder(side: .request)
        let body = bytes("7fffffffffffffff\r\nab")
        let step = try body.withUnsafeBytes { try decoder.next($0, from: 0) }
        #expect(step == .data(18..<20))
        #expect(!decoder.isFinished)
    }

    @Test("A refusal is final, and its place counts all reads")
    func offset() {
        let body = bytes("5\r\nhello\r\n0\r\nX: y\r\nZ\r\n\r\n")
        for cuts in [[], [4], [13, 15], Array(0..<body.count)] {
            #expect(
                decodeBody(body, cuts: cuts, .chunked)
                    == .refused(WireError(.fieldNameMalformed, side: .request, offset: 20))
            )
        }
        var decoder = ChunkedDecoder(side: .request)
        for text in ["x", "0\r\n\r\n"] {
            #expect(throws: WireError(.chunkSizeMalformed, side: .request, offset: 0)) {
                try bytes(text).withUnsafeBytes { try decoder.next($0, from: 0) }
            }
        }
    }

    @Test("A hundred thousand one-byte chunks in one buffer need no stack")
    func manyChunks() {
        let count = 100_000
        var body: [UInt8] = []
        for _ in 0..<count { body.append(contentsOf: [0x31, 0x0D, 0x0A, 0x78, 0x0D, 0x0A]) }
        body.append(contentsOf: bytes("0\r\n\r\n"))
        let expected = BodyOutcome.finished(
            content: [UInt8](repeating: 0x78, count: count),
            trailers: Fields(),
            consumed: body.count
        )
        #expect(decodeBody(body, cuts: [], .chunked) == expected)
    }

    @Test("Extensions are bounded by a budget that content earns")
    func extensionBudget() {
        let ext = String(repeating: "e", count: 200)
        let small = String(repeating: "1;\(ext)\r\nx\r\n", count: 100)
        guard case .refused(let error) = decodeBody(bytes(small), cuts: [], .chunked) else {
            Issue.record("taken")
            return
        }
        #expect(error.reason == .chunkExtensionTooLong)
        let large =
            String(repeating: "100;\(ext)\r\n\(String(repeating: "x", count: 256))\r\n", count: 100) + "0\r\n\r\n"
        guard case .finished = decodeBody(bytes(large), cuts: [], .chunked) else {
            Issue.record("refused")
            return
        }
    }

    @Test("Trailers are bounded in bytes, lines and line length")
    func trailerLimits() {
        let body = bytes("0\r\nA: 1\r\nB: 2\r\n\r\n")
        let section = body.count - 3
        let cases: [(HeadLimits, WireReason?)] = [
            (HeadLimits(head: section), nil), (HeadLimits(head: 16), nil), (HeadLimits(fields: 2), nil),
            (HeadLimits(fields: 1), .tooManyFields), (HeadLimits(fields: 0), .tooManyFields),
        ]
        for (limits, reason) in cases {
            let outcome = bodyOutcome(body, trailerLimits: limits)
            if let reason {
                guard case .refused(let error) = outcome else {
                    Issue.record("\(outcome)")
                    return
                }
                #expect(error.reason == reason && error.status == 431)
            } else {
                #expect(
                    outcome
                        == .finished(content: [], trailers: Fields([("A", "1"), ("B", "2")]), consumed: body.count)
                )
            }
        }
        let long = bytes("0\r\nA: 12345678901234567890\r\n\r\n")
        for (limits, reason) in [
            (HeadLimits(head: 20), WireReason.trailersTooLong), (HeadLimits(field: 20), .fieldTooLong),
        ] {
            guard case .refused(let error) = bodyOutcome(long, trailerLimits: limits) else {
                Issue.record("taken")
                return
            }
            #expect(error.reason == reason)
        }
    }

    @Test("RFC 9112 6.3: a body of known length ends there")
    func length() throws {
        let content = bytes("hello")
        let expected = BodyOutcome.finished(content: content, trailers: Fields(), consumed: 5)
        #expect(bodyOutcome(content + bytes("GET"), .length(5)) == expected)
        #expect(bodyOutcome(content, .length(5)) == expected)
        #expect(bodyOutcome(content, .length(6)) == .incomplete(content: content))
        #expect(bodyOutcome(content, .length(0)) == .finished(content: [], trailers: Fields(), consumed: 0))
        #expect(bodyOutcome(content, .none) == .finished(content: [], trailers: Fields(), consumed: 0))
        #expect(try !isComplete(.length(6)))
        #expect(throws: WireError(.bodyTruncated, side: .response)) { try isComplete(.length(6), closed: true) }
        #expect(try isComplete(.length(0)))
        #expect(try isComplete(.none))
    }

    @Test("RFC 9112 6.3: a body of no known length ends with the connection")
    func untilClose() throws {
        #expect(bodyOutcome(bytes("hello"), .untilClose, side: .response) == .incomplete(content: bytes("hello")))
        #expect(try !isComplete(.untilClose))
        #expect(try isComplete(.untilClose, closed: true))
    }

    /// Whether a body is complete without a byte of it, before or after the end of its connection.
    @discardableResult
    private func isComplete(_ framing: BodyFraming, closed: Bool = false) throws(WireError) -> Bool {
        var decoder = BodyDecoder(framing, side: .response)
        if closed { try decoder.connectionClosed() }
        return decoder.isComplete
    }

    @Test("What the serializer chunks the decoder joins")
    func roundTrip() {
        let parts = [1, 15, 16, 255, 256, 4096].map { [UInt8](repeating: UInt8($0 & 255), count: $0) }
        var body: [UInt8] = []
        for part in parts {
            Serializer.chunkHeader(part.count, into: &body)
            body.append(contentsOf: part + [0x0D, 0x0A])
        }
        Serializer.lastChunk(trailers: Fields([("X", "1")]), into: &body)
        let expected = BodyOutcome.finished(
            content: Array(parts.joined()),
            trailers: Fields([("X", "1")]),
            consumed: body.count
        )
        #expect(decodeBody(body, cuts: [], .chunked) == expected)
        #expect(decodeBody(body, cuts: Array(0..<body.count), .chunked) == expected)
    }
}
