// Seeded fuzzing in process: nothing crashes, splits change nothing, what is taken is well-formed and survives
// writing and reading again.

import HTTPWire
import Testing

@Suite("Fuzzing")
struct FuzzTests {
    static let rounds = 6000
    static let tight = HeadLimits(head: 120, fields: 4, field: 40, target: 20)

    @Test("Requests", arguments: [1, 2] as [UInt64])
    func requests(seed: UInt64) {
        var mutator = Mutator(corpus: RequestCorpus.refused.map(\.2) + RequestCorpus.taken.map(\.2), seed: seed)
        var wide = RequestParser()
        var narrow = RequestParser(limits: Self.tight)
        var takenCount = 0
        for round in 0..<Self.rounds {
            let input = mutator.next()
            let whole = parseRequest(input, ends: [input.count], with: &wide)
            let cuts = mutator.cuts(input.count)
            let inParts = parseRequest(input, ends: cuts + [input.count], with: &wide)
            let isSame = inParts == whole
            #expect(isSame, "seed \(seed) round \(round) cuts \(cuts): \(text(input).debugDescription)")
            let tightWhole = parseRequest(input, ends: [input.count], with: &narrow)
            let tightSame = parseRequest(input, ends: cuts + [input.count], with: &narrow) == tightWhole
            #expect(tightSame, "seed \(seed) round \(round) cuts \(cuts), tight: \(text(input).debugDescription)")
            guard case .taken(let seen) = whole else { continue }
            takenCount += 1
            let fault = WellFormed.fault(request: Array(input[..<seen.length]), seen)
            #expect(fault == nil, "seed \(seed) round \(round): \(text(input).debugDescription)")
            var written: [UInt8] = []
            Serializer.write(seen.head, into: &written)
            guard case .taken(let again) = parseRequest(written, ends: [written.count], with: &wide) else {
                Issue.record("not taken again: \(text(input).debugDescription)")
                continue
            }
            let survives = again.head == seen.head && again.framing == seen.framing && again.present == seen.present
            #expect(survives, "seed \(seed) round \(round): \(text(input).debugDescription)")
        }
        // Both sides of the fence have to be visited for this to mean something.
        #expect((Self.rounds / 50..<Self.rounds * 9 / 10).contains(takenCount))
    }

    @Test("Responses", arguments: [3, 4] as [UInt64])
    func responses(seed: UInt64) {
        var mutator = Mutator(corpus: ResponseCorpus.refused.map(\.1) + ResponseCorpus.taken.map(\.3), seed: seed)
        var parser = ResponseParser()
        var takenCount = 0
        for round in 0..<Self.rounds {
            let input = mutator.next()
            let method: HTTPWire.Method = round % 5 == 0 ? .head : .get
            let whole = parseResponse(input, ends: [input.count], method: method, with: &parser)
            let cuts = mutator.cuts(input.count)
            let inParts = parseResponse(input, ends: cuts + [input.count], method: method, with: &parser)
            let isSame = inParts == whole && feedResponse(input, method: method, with: &parser) == whole
            #expect(isSame, "seed \(seed) round \(round) cuts \(cuts): \(text(input).debugDescription)")
            guard case .taken(let seen) = whole else { continue }
            takenCount += 1
            let fault = WellFormed.fault(lines: Array(input[..<seen.length]), fieldsFrom: 1)
            #expect(fault == nil, "seed \(seed) round \(round): \(text(input).debugDescription)")
            var written: [UInt8] = []
            Serializer.write(seen.head, into: &written)
            guard
                case .taken(let again) = parseResponse(
                    written,
                    ends: [written.count],
                    method: method,
                    with: &parser
                )
            else {
                Issue.record("not taken again: \(text(input).debugDescription)")
                continue
            }
            let survives = again.head == seen.head && again.framing == seen.framing
            #expect(survives, "seed \(seed) round \(round): \(text(input).debugDescription)")
        }
        #expect((Self.rounds / 50..<Self.rounds * 9 / 10).contains(takenCount))
    }

    @Test(
        "Responses to a lenient reader: all that it takes is what a strict one takes, once written anew",
        arguments: [8, 9] as [UInt64]
    )
    func lenientResponses(seed: UInt64) {
        let corpus =
            ResponseCorpus.refused.map(\.1) + ResponseCorpus.taken.map(\.3) + ResponseCorpus.mended.map(\.head)
            + ResponseCorpus.neverMended.map(\.1)
        var mutator = Mutator(corpus: corpus, seed: seed)
        var lenient = ResponseParser(isLenient: true)
        var strict = ResponseParser()
        var takenCount = 0
        for round in 0..<Self.rounds {
            let input = mutator.next()
            let method: HTTPWire.Method = round % 5 == 0 ? .head : .get
            let label = "seed \(seed) round \(round): \(text(input).debugDescription)"
            let whole = parseResponse(input, ends: [input.count], method: method, with: &lenient)
            let cuts = mutator.cuts(input.count)
            let inParts = parseResponse(input, ends: cuts + [input.count], method: method, with: &lenient)
            let isSame = inParts == whole && feedResponse(input, method: method, with: &lenient) == whole
            #expect(isSame, "\(label) cuts \(cuts)")
            let byStrict = parseResponse(input, ends: [input.count], method: method, with: &strict)
            if case .taken = byStrict { #expect(whole == byStrict, "\(label)") }
            guard case .taken(let seen) = whole else { continue }
            takenCount += 1
            if seen.head.isOddlyFramed { #expect(!seen.keepAlive, "\(label)") }
            var head = seen.head
            head.isOddlyFramed = false
            head.version = .http11
            if head.status > 599 { head.status = 500 }
            var written: [UInt8] = []
            Serializer.write(head, into: &written)
            #expect(WellFormed.fault(lines: written, fieldsFrom: 1) == nil, "\(label)")
            let again = parseResponse(written, ends: [written.count], method: method, with: &strict)
            guard case .taken(let clean) = again else {
                Issue.record("not taken again: \(label)")
                continue
            }
            let isBodiless = seen.head.status > 599 || clean.framing == seen.framing
            #expect(clean.head == head && isBodiless, "\(label)")
        }
        #expect((Self.rounds / 50..<Self.rounds * 9 / 10).contains(takenCount))
    }

    @Test("Chunked bodies", arguments: [5, 6] as [UInt64])
    func bodies(seed: UInt64) {
        var mutator = Mutator(
            corpus: ChunkedCorpus.refused.map(\.1) + ChunkedCorpus.taken.map(\.2) + ChunkedCorpus.padded,
            seed: seed
        )
        var finished = 0
        for round in 0..<Self.rounds {
            let input = mutator.next()
            let whole = decodeBody(input, cuts: [], .chunked)
            let cuts = mutator.cuts(input.count)
            let isSame = decodeBody(input, cuts: cuts, .chunked) == whole
            #expect(isSame, "seed \(seed) round \(round) cuts \(cuts): \(text(input).debugDescription)")
            let lenient = decodeBody(input, cuts: [], .chunked, side: .response, isLenient: true)
            let lenientSame = decodeBody(input, cuts: cuts, .chunked, side: .response, isLenient: true) == lenient
            #expect(lenientSame, "seed \(seed) round \(round) cuts \(cuts), lenient: \(text(input).debugDescription)")
            guard case .finished(let content, let trailers, let consumed) = whole else { continue }
            // A lenient reader finds nothing else where a strict one finds an end.
            #expect(lenient == whole, "seed \(seed) round \(round): \(text(input).debugDescription)")
            finished += 1
            var written: [UInt8] = []
            Serializer.chunkHeader(content.count, into: &written)
            if !content.isEmpty { written.append(contentsOf: content + [0x0D, 0x0A]) }
            Serializer.lastChunk(trailers: trailers, into: &written)
            let again = BodyOutcome.finished(content: content, trailers: trailers, consumed: written.count)
            let survives = consumed <= input.count && decodeBody(written, cuts: [], .chunked) == again
            #expect(survives, "seed \(seed) round \(round): \(text(input).debugDescription)")
        }
        #expect((Self.rounds / 50..<Self.rounds * 9 / 10).contains(finished))
    }

    @Test("Dates, targets and authorities")
    func values() {
        let dates = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        let targets = ["/a/b?c", "http://a.b:80/c?d", "a:443", "*", "http://[::1]:8080/", "[1:2:3:4:5:6:1.2.3.4]:1"]
        var mutator = Mutator(corpus: dates + targets, seed: 7)
        for _ in 0..<Self.rounds {
            let input = text(mutator.next())
            if let unix = HTTPDate.parse(input, now: 1_784_000_000) {
                #expect(HTTPDate.parse(HTTPDate.format(unix), now: 0) == unix)
            }
            if let authority = Authority.parse(input) {
                #expect(Authority.parse(authority.description) == authority)
            }
            for method in [HTTPWire.Method.get, .connect, .options] {
                guard let target = try? RequestTarget.parse(input, method: method) else { continue }
                guard case .absolute(let scheme, let authority, let path) = target.form else { continue }
                let rebuilt = try? RequestTarget.parse("\(scheme)://\(authority)\(path)", method: method)
                #expect(rebuilt?.form == target.form)
            }
        }
    }
}

/// A second opinion on heads that a parser took: slow, simple, and written without it.
enum WellFormed {
    static func fault(request: [UInt8], _ seen: SeenRequest) -> String? {
        let skipped = request.starts(with: [0x0D, 0x0A]) ? 2 : 0
        if let fault = fault(lines: Array(request[skipped...]), fieldsFrom: 1) { return fault }
        let names = fieldNames(request[skipped...])
        let count = { (name: String) in names.count { $0 == name } }
        let isHTTP11 = seen.head.version == .http11
        if isHTTP11 ? count("host") != 1 : count("host") > 1 { return "host" }
        if count("content-length") > 1 || count("transfer-encoding") > 1 { return "repeated framing" }
        if count("content-length") + count("transfer-encoding") > 1 { return "two framings" }
        if count("transfer-encoding") == 1, !isHTTP11 || seen.framing != .chunked { return "transfer coding" }
        if count("content-length") == 1 {
            guard let value = seen.head.fields.first("content-length"), let length = UInt64(value) else {
                return "length"
            }
            if seen.framing != .length(length) || !value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
                return "length"
            }
        }
        return nil
    }

    /// What is wrong with the lines of a head, if something is.
    static func fault(lines head: [UInt8], fieldsFrom first: Int) -> String? {
        guard head.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] else { return "end" }
        for (position, byte) in head.enumerated() {
            switch byte {
            case 0x0D: if position + 1 == head.count || head[position + 1] != 0x0A { return "CR" }
            case 0x0A: if position == 0 || head[position - 1] != 0x0D { return "LF" }
            case 0x09, 0x20...0x7E, 0x80...0xFF: break
            default: return "control"
            }
        }
        let lines = rawLines(head)
        for line in lines[first..<lines.count - 1] {
            guard let colon = line.firstIndex(of: 0x3A), colon > 0 else { return "colon" }
            let isToken = line[..<colon].allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && !"\"(),/:;<=>?@[\\]{}".utf8.contains(byte)
            }
            if !isToken { return "name" }
        }
        return lines.dropLast().contains([0x0D, 0x0A]) ? "empty line" : nil
    }

    private static func fieldNames(_ head: ArraySlice<UInt8>) -> [String] {
        rawLines(Array(head)).dropFirst().compactMap { line in
            line.firstIndex(of: 0x3A).map { text(Array(line[..<$0])).lowercased() }
        }
    }
}
