// Limits of heads: the last size that is taken and the first that is refused, in every split.

import HTTPWire
import Testing

@Suite("Head limits")
struct HeadLimitTests {
    @Test("RFC 9112 3: a target over the limit is 414")
    func target() throws {
        let limits = HeadLimits(target: 16)
        let path = "/" + String(repeating: "p", count: 15)
        #expect(try expectTaken("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits).head.target == path)
        expectRefused("GET \(path)p HTTP/1.1\r\nHost: a\r\n\r\n", 414, .targetTooLong, limits: limits)
        expectRefused("GET \(path)\u{1} HTTP/1.1\r\nHost: a\r\n\r\n", 414, .targetTooLong, limits: limits)
    }

    @Test("RFC 9110 5.4: a field line over the limit is 431", arguments: ["v", " ", "\t"])
    func line(filler: String) throws {
        let limits = HeadLimits(field: 24)
        let line = "N: x" + String(repeating: filler, count: 20)
        #expect(try expectTaken(RequestCorpus.get(line), limits: limits).head.fields.count == 2)
        expectRefused(RequestCorpus.get(line + filler), 431, .fieldTooLong, limits: limits)
        expectRefused(RequestCorpus.get(line + "\u{1}"), 431, .fieldTooLong, limits: limits)
        expectRefused(RequestCorpus.get("N:" + String(repeating: " ", count: 23)), 431, .fieldTooLong, limits: limits)
        expectRefused(
            RequestCorpus.get(String(repeating: "n", count: 24) + ": v"),
            431,
            .fieldTooLong,
            limits: limits
        )
    }

    @Test("RFC 9110 5.4: more fields than the limit are 431")
    func count() throws {
        let limits = HeadLimits(fields: 3)
        #expect(try expectTaken(RequestCorpus.get("A: 1\r\nB: 2"), limits: limits).head.fields.count == 3)
        expectRefused(RequestCorpus.get("A: 1\r\nB: 2\r\nC: 3"), 431, .tooManyFields, limits: limits)
    }

    @Test("RFC 9110 5.4: a head over the limit is 431")
    func head() throws {
        let head = RequestCorpus.get("A: 1\r\nB: 2")
        let count = bytes(head).count
        #expect(try expectTaken(head + "more", limits: HeadLimits(head: count)).length == count)
        for limit in 16..<count { expectRefused(head, 431, .headTooLong, limits: HeadLimits(head: limit)) }
    }

    @Test("The limits of the configuration's defaults: 100 fields, 8 KiB lines and targets, 64 KiB heads")
    func defaults() {
        var parser = RequestParser()
        func outcome(_ head: String) -> WireError? {
            let bytes = bytes(head)
            var found: [RequestOutcome] = []
            for ends in [
                [bytes.count], [8000, bytes.count], [8205, 8206, bytes.count],
                Array(stride(from: 0, to: bytes.count, by: 4096)) + [bytes.count],
            ] {
                found.append(parseRequest(bytes, ends: ends.map { min($0, bytes.count) }, with: &parser))
            }
            #expect(found.allSatisfy { $0 == found[0] })
            if case .refused(let error) = found[0] { return error }
            #expect(found[0] != .incomplete)
            return nil
        }
        let lines = { (count: Int) in (0..<count).map { "F\($0): v" }.joined(separator: "\r\n") }
        #expect(outcome(RequestCorpus.get(lines(99))) == nil)
        #expect(outcome(RequestCorpus.get(lines(100)))?.reason == .tooManyFields)
        #expect(outcome(RequestCorpus.get("F: " + String(repeating: "v", count: 8189))) == nil)
        #expect(outcome(RequestCorpus.get("F: " + String(repeating: "v", count: 8190)))?.reason == .fieldTooLong)
        #expect(outcome(RequestCorpus.target("GET", "/" + String(repeating: "p", count: 8191))) == nil)
        #expect(outcome(RequestCorpus.target("GET", "/" + String(repeating: "p", count: 8192)))?.status == 414)
        let long = (0..<9).map { "F\($0): " + String(repeating: "v", count: 8000) }.joined(separator: "\r\n")
        #expect(outcome(RequestCorpus.get(long))?.reason == .headTooLong)
    }

    @Test("Limits are kept within what offsets can hold")
    func bounds() {
        let limits = HeadLimits(head: .max, fields: -1, field: 0, target: -5)
        #expect(limits == HeadLimits(head: 1 << 30, fields: 0, field: 16, target: 16))
    }
}
