// A parser that knows a section of fields from the head before says of the next head what a fresh one says.

import Testing

@testable import HTTPWire

@Suite struct FieldSectionCacheTests {
    private static let heads = RequestCorpus.taken.map(\.2) + RequestCorpus.refused.map(\.2)

    /// Request lines that ask for different things of one section.
    private static let lines = [
        "GET / HTTP/1.1", "GET /longer?than=that HTTP/1.1", "\r\nGET / HTTP/1.1", "HEAD / HTTP/1.1", "POST / HTTP/1.1",
        "DELETE / HTTP/1.1", "GET / HTTP/1.0", "POST / HTTP/1.0", "CONNECT a:1 HTTP/1.1", "OPTIONS * HTTP/1.1",
        "BREW / HTTP/1.1", "GET http://b/ HTTP/1.1", "GET / HTTP/2.0", "GET HTTP/1.1",
    ]

    /// What follows the request line; the whole where there is none.
    private static func section(of head: String) -> [UInt8] {
        let all = bytes(head)
        let end = all.indices.first { all[$0] == 0x0A && $0 > 1 }
        return Array(all[(end.map { $0 + 1 } ?? 0)...])
    }

    @Test(arguments: [HeadLimits(), FuzzTests.tight])
    func `whatever head came before with the same section`(limits: HeadLimits) {
        let sections = Set(Self.heads.map(Self.section))
        var known = 0
        for section in sections {
            for first in Self.lines {
                var parser = RequestParser(limits: limits)
                for second in Self.lines {
                    let before = bytes(first + "\r\n") + section
                    _ = parseRequest(before, ends: [before.count], limits: limits, with: &parser)
                    let head = bytes(second + "\r\n") + section
                    var fresh = RequestParser(limits: limits)
                    let expected = parseRequest(head, ends: [head.count], limits: limits, with: &fresh)
                    let found = parseRequest(head, ends: [head.count], limits: limits, with: &parser)
                    #expect(found == expected, "\(text(before).debugDescription), \(text(head).debugDescription)")
                    if case .taken = expected { known += 1 }
                }
            }
        }
        #expect(known > 1000)
    }

    @Test func `a head that comes in pieces, and one that differs in one byte`() {
        let lines = bytes("GET /first HTTP/1.1\r\n")
        let section = bytes("Host: a\r\nAccept: text/html\r\nConnection: close, x\r\nX: y\r\n\r\n")
        let before = lines + section
        for split in 0...before.count {
            var parser = RequestParser()
            var fresh = RequestParser()
            let whole = parseRequest(before, ends: [before.count], with: &parser)
            #expect(parseRequest(before, ends: [split, before.count], with: &parser) == whole)
            // What follows belongs to the next request.
            let more = before + bytes("GET")
            #expect(parseRequest(more, ends: [more.count], with: &parser) == whole)
            guard split < section.count else { continue }
            for byte in [0x00, 0x0A, 0x0D, 0x20, 0x3A, 0x7A] as [UInt8] {
                var changed = before
                changed[lines.count + split] = byte
                let expected = parseRequest(changed, ends: [changed.count], with: &fresh)
                #expect(parseRequest(changed, ends: [changed.count], with: &parser) == expected)
                #expect(parseRequest(before, ends: [before.count], with: &parser) == whole)
            }
        }
    }

    @Test func `the fields of a section that is said again are the same in memory`() {
        func fields(_ head: String, _ parser: inout RequestParser) -> Fields? {
            let head = bytes(head)
            guard case .taken(let seen) = parseRequest(head, ends: [head.count], with: &parser) else { return nil }
            return seen.head.fields
        }
        var parser = RequestParser()
        let first = fields("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", &parser)
        let again = fields("GET /22 HTTP/1.1\r\nHost: a\r\n\r\n", &parser)
        let other = fields("GET /1 HTTP/1.1\r\nHost: b\r\n\r\n", &parser)
        let back = fields("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", &parser)
        guard let first, let again, let other, let back else {
            Issue.record("refused")
            return
        }
        #expect(again.sharesStorage(with: first))
        #expect(other.first(.host) == "b" && !other.sharesStorage(with: first))
        #expect(back == first && !back.sharesStorage(with: first))
        // One that is not remembered.
        let body = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        guard let one = fields(body, &parser), let two = fields(body, &parser) else {
            Issue.record("refused")
            return
        }
        #expect(one == two && !one.sharesStorage(with: two))
    }

    @Test func `only what lies there as a whole is known`() {
        var known = FieldSectionCache()
        let buffer = bytes("0123Host: a\r\n\r\n")
        let section = bytes("Host: a\r\n\r\n")
        func isRepeated(_ bytes: [UInt8], at position: Int) -> Bool { known.isRepeated(bytes.span.bytes, at: position) }
        #expect(!isRepeated(buffer, at: 4))
        section.withUnsafeBytes { known.note($0, from: 7) }
        #expect(known.start == 7 && known.count == section.count)
        #expect(isRepeated(buffer, at: 4))
        #expect(!isRepeated(buffer.dropLast(), at: 4))
        #expect(!isRepeated(buffer, at: 3))
        known.forget()
        #expect(known.isEmpty && !isRepeated(buffer, at: 4))
        // A long one is not kept.
        let long = [UInt8](repeating: 0x61, count: 1025)
        long.withUnsafeBytes { known.note($0, from: 0) }
        #expect(known.isEmpty)
        long[1...].withUnsafeBytes { known.note($0, from: 0) }
        #expect(known.count == 1024)
    }
}
