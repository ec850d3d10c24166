// A response that the memory tier holds in one block: what comes out of it is what went in, byte for byte.

import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore

@Suite struct ResidentResponseTests {
    private func held(_ head: StoredHead, ready: [UInt8]? = nil, size: Int = 100, number: UInt64 = 7) throws
        -> ResidentResponse
    {
        let response = StoredResponse(
            key: key(1),
            head: head,
            body: .complete(pattern(size)),
            preparedHead: ready ?? StoredResponse.prepare(head, length: Int64(size), via: "1.1 drydock"),
            hot: HotPathWindow(start: 1000, freshFor: 1000, initialAge: 10),
            tier: .memory,
            headFormatID: 5,
            number: number
        )
        return try #require(ResidentResponse(response))
    }

    private static let fields = [
        ("Content-Type", "text/html"), ("ETag", "\"1\""), ("Cache-Control", "max-age=60"),
        ("X-Long", String(repeating: "x", count: 300)),
        ("Via", "1.0 other"), ("Content-Length", "100"), ("Content-Length", "100"), ("X-Empty", ""), ("x-empty", "b"),
        ("Accept-Ranges", "bytes"),
        ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Latin", "caf\u{E9}"),
        ("Last-Modified", "Mon, 06 Nov 1994 08:49:37 GMT"),
    ]

    @Test func `a head comes out as it went in, whatever its ready head has made of it`() throws {
        var random = SeededRandom(state: 11)
        for turn in 0..<2000 {
            var head = storedHead(Self.fields.filter { _ in Bool.random(using: &random) }.shuffled(using: &random))
            head.status = [200, 200, 404, 301].randomElement(using: &random) ?? 200
            head.reason = ["OK", "", "Not Found", "caf\u{E9}", "\u{4E16}"].randomElement(using: &random) ?? ""
            let times = [0, 1, -1, 1000, 1 << 39, -(1 << 39)] as [Int64]
            head.requestTime = times.randomElement(using: &random) ?? 0
            head.responseTime = times.randomElement(using: &random) ?? 0
            head.validatedAt = times.randomElement(using: &random) ?? 0
            head.initialAge = [0, 5, 1 << 31].randomElement(using: &random) ?? 0
            head.receivedAge = [nil, 0, 1 << 31].randomElement(using: &random) ?? nil
            head.bodyLength = [nil, 100, 99, 1 << 40].randomElement(using: &random) ?? nil
            head.number = [0, 7, 8, .max].randomElement(using: &random) ?? 0
            head.hadAuthorization = Bool.random(using: &random)
            head.requestMethod = Bool.random(using: &random) ? .get : .post
            head.staleSince = Bool.random(using: &random) ? nil : 50
            head.changedSince = Bool.random(using: &random) ? nil : 1 << 39
            if Bool.random(using: &random) {
                head.varyNames = ["accept", "x-a"]
                head.varyFields = Fields([("Accept", "a, b"), ("X-A", "")])
            }
            var shown = head
            if Bool.random(using: &random) { shown.fields.remove(.etag) }
            if Bool.random(using: &random) { shown.fields.append("Vary", "Origin") }
            let made = StoredResponse.prepare(shown, length: 100, via: turn % 3 == 0 ? nil : "1.1 drydock")
            let ready = turn % 7 == 0 ? [] : made
            let held = try held(head, ready: ready)
            #expect(held.head == head)
            #expect(Array(held.readyHead) == ready)
            #expect(held.headNumber == head.number && held.responseTime == head.responseTime)
            let response = held.response
            #expect(response.head == head && response.preparedHead == ready && response.key == key(1))
            #expect(response.headFormatID == 5 && response.number == 7)
            let isStale = head.staleSince != nil || head.changedSince != nil
            #expect(response.hot == (isStale ? nil : HotPathWindow(start: 1000, freshFor: 1000, initialAge: 10)))
            #expect(held.hasTag == Caching.hasTag(head) && held.acceptsRanges == head.fields.contains(.acceptRanges))
        }
    }

    @Test(arguments: [0, 1, 100, 64 << 10, (64 << 10) + 1, 300_000])
    func `a body comes out as it went in, and stays while somebody reads it`(size: Int) throws {
        var chunk: Chunk?
        do {
            let held = try held(storedHead(), size: size)
            #expect(Array(held.body) == pattern(size))
            chunk = held.response.body.wholeChunk
        }
        // The response is gone, and its bytes are held.
        #expect(chunk?.array(0..<size) == pattern(size))
    }

    @Test func `conditions and ranges are answered from the block as from the head`() throws {
        let head = storedHead([
            ("ETag", "\"a\""), ("Last-Modified", "Mon, 06 Nov 1994 08:49:37 GMT"),
            ("Date", "Mon, 06 Nov 1995 08:49:37 GMT"),
        ])
        let held = try held(head)
        let questions: [[(String, String)]] = [
            [("If-None-Match", "\"a\"")], [("If-None-Match", "W/\"a\", \"b\"")], [("If-None-Match", "\"b\"")],
            [("If-None-Match", "*")],
            [("If-Modified-Since", "Mon, 06 Nov 1994 08:49:37 GMT")],
            [("If-Modified-Since", "Mon, 06 Nov 1994 08:49:36 GMT")],
            [("Range", "bytes=0-9")], [("Range", "bytes=0-9"), ("If-Range", "\"a\"")],
            [("Range", "bytes=0-9"), ("If-Range", "\"b\"")],
            [("Range", "bytes=5-"), ("If-Range", "Mon, 06 Nov 1994 08:49:37 GMT")], [],
        ]
        for question in questions {
            let fields = Fields(question)
            #expect(
                Caching.isNotModified(fields, .get, stored: held.validators)
                    == head.withValidators { Caching.isNotModified(fields, .get, stored: $0) }
            )
            let parts = (
                Caching.onePart(fields, stored: held.validators, length: 100),
                head.withValidators { Caching.onePart(fields, stored: $0, length: 100) }
            )
            #expect(parts.0 == parts.1)
        }
    }

    @Test func `a response that varies is selected by the same bytes only`() throws {
        var head = storedHead(vary: [("Accept", "a"), ("X-A", "1")])
        head.varyNames.append("x-b")
        let held = try held(head)
        func selects(_ fields: [(String, String)]) -> Bool {
            Caching.selectsPlainly(names: held.varyNames, stored: held.varyLines, Fields(fields))
        }
        #expect(held.varies && selects([("accept", "a"), ("x-a", "1"), ("Cookie", "c")]))
        #expect(!selects([("Accept", "a")]) && !selects([("Accept", "b"), ("X-A", "1")]))
        #expect(!selects([("Accept", "a"), ("X-A", "1"), ("X-B", "")]))
        #expect(!selects([("Accept", "a"), ("Accept", "a"), ("X-A", "1")]))
    }

    @Test func `an entry of 1 KiB costs less than 200 bytes besides head and body`() throws {
        var head = storedHead([
            ("Server", "nginx/1.26.3"), ("Date", "Mon, 06 Nov 1995 08:49:37 GMT"), ("Content-Type", "text/plain"),
            ("Content-Length", "1024"), ("Cache-Control", "max-age=86400"), ("ETag", "\"6863b1a0-400\""),
        ])
        head.bodyLength = 1024
        head.number = 1_800_000_000_000_000_000
        let held = try held(head, size: 1024, number: head.number)
        let own = 1024 + head.fields.wireLength + "HTTP/1.1 200 OK\r\n\r\n".utf8.count
        #expect(held.cost - own <= 185, "\(held.cost - own)")
    }
}
