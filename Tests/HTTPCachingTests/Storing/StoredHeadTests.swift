// Stored heads: what is kept of a response, and that any bytes decode to a head or to an error.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Stored heads")
struct StoredHeadTests {
    static let sample = stored(
        [
            ("Cache-Control", "max-age=60"), ("ETag", "\"a\""), ("Vary", "Accept, X-Tenant"), ("Content-Length", "12"),
            ("Age", "7"), ("X-Text", "caf\u{E9}"), ("x-twice", "1"), ("X-Twice", "2"), ("X-Empty", ""),
        ],
        for: request(.get, [("Accept", "text/html"), ("X-Tenant", "7"), ("Authorization", "Basic eA==")])
    )

    static func encoded(_ head: StoredHead) -> [UInt8] {
        var bytes: [UInt8] = []
        head.encode(into: &bytes)
        return bytes
    }

    static func decoded(_ bytes: [UInt8]) throws(StoredHeadError) -> StoredHead {
        // A do in the closure keeps the thrown type, which withUnsafeBytes would widen.
        let result = bytes.withUnsafeBytes { raw in
            do throws(StoredHeadError) {
                return Result<StoredHead, StoredHeadError>.success(try StoredHead(decoding: raw))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    @Test("RFC 9111 3.1: hop-by-hop fields and what Connection names are not stored, all else is, byte for byte")
    func storedFields() {
        let head = stored([
            ("Connection", "close, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
            ("Proxy-Authenticate", "Basic"),
            ("Transfer-Encoding", "chunked"), ("X-Unknown", "a  b;c=\"d, e\""), ("Age", "7"), ("Date", date()),
        ])
        #expect(head.fields.lines.map(\.name) == ["X-Unknown", "Date"])
        #expect(head.fields.first("x-unknown") == "a  b;c=\"d, e\"")
        #expect(head.initialAge == 7)
    }

    @Test("RFC 9111 5.2.2.4 and 5.2.2.7: fields that no-cache or private list are not stored")
    func listedFields() {
        let head = stored([
            ("Cache-Control", "max-age=9, no-cache=\"A, b\", private=c"), ("a", "1"), ("B", "2"), ("C", "3"),
            ("d", "4"),
        ])
        #expect(head.fields.lines.map(\.name) == ["Cache-Control", "d", "Date"])
    }

    @Test("RFC 9110 6.6.1: a missing Date becomes the time of arrival")
    func missingDate() {
        let head = Caching.makeStoredHead(
            request: request(),
            response: ResponseHead(status: 200, reason: "OK", version: .http11, fields: Fields()),
            times: ResponseTimes(requestTime: arrival - 2, responseTime: arrival)
        )
        #expect(head.fields.first(.date) == "Fri, 13 Feb 2009 23:31:30 GMT")
        #expect(head.initialAge == 2)
    }

    @Test(
        "Content-Length becomes the body's length",
        arguments: [
            ("12", 12), ("0", 0), (nil, nil), ("+5", nil), ("5, 5", nil), ("-5", nil), ("99999999999999999999", nil),
        ] as [(String?, Int64?)]
    )
    func bodyLength(text: String?, length: Int64?) {
        #expect(stored(text.map { [("Content-Length", $0)] } ?? []).bodyLength == length)
    }

    @Test("What is encoded decodes to itself")
    func roundTrip() throws {
        var bare = stored()
        bare.bodyLength = nil
        bare.requestMethod = .other("SEARCH")
        bare.reason = "Tr\u{E8}s bien"
        bare.status = 599
        var changed = Self.sample
        changed.changedSince = arrival + 9
        var open = bare
        (open.changedSince, open.hadAuthorization) = (1, false)
        for head in [Self.sample, bare, changed, open] {
            #expect(try Self.decoded(Self.encoded(head)) == head)
        }
        #expect(Self.sample.varyNames == ["accept", "x-tenant"])
        #expect(Self.sample.varyFields.lines.map(\.name) == ["Accept", "X-Tenant"])
        #expect(Self.sample.hadAuthorization)
        #expect(Self.sample.receivedAge == 7 && bare.receivedAge == nil)
    }

    @Test("Every cut is an error that names the place")
    func truncation() {
        let bytes = Self.encoded(Self.sample)
        for count in 0..<bytes.count {
            #expect(throws: StoredHeadError.self) { try Self.decoded(Array(bytes.prefix(count))) }
        }
        #expect(throws: StoredHeadError.truncated(offset: 0)) { try Self.decoded([]) }
        #expect(throws: StoredHeadError.invalid(part: .end, offset: bytes.count)) { try Self.decoded(bytes + [0]) }
    }

    @Test("Another version is refused by its number")
    func version() {
        var bytes = Self.encoded(Self.sample)
        bytes[3] = StoredHead.formatVersion + 1
        #expect(throws: StoredHeadError.unknownVersion(StoredHead.formatVersion + 1)) { try Self.decoded(bytes) }
        bytes[0] = 0
        #expect(throws: StoredHeadError.invalid(part: .magic, offset: 3)) { try Self.decoded(bytes) }
    }

    @Test("A line break in a stored value is refused", arguments: [0x0A, 0x0D, 0x00, 0x7F] as [UInt8])
    func controls(control: UInt8) throws {
        var bytes = Self.encoded(stored([("X-Mark", "before!after")]))
        let mark = try #require(bytes.firstIndex(of: UInt8(ascii: "!")))
        bytes[mark] = control
        #expect(throws: StoredHeadError.self) { try Self.decoded(bytes) }
    }

    @Test("Random damage decodes to a usable head or to an error", arguments: [1, 2, 3, 4] as [UInt64])
    func corruption(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let original = Self.encoded(Self.sample)
        var refused = 0
        for _ in 0..<5000 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let position = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                case 1: bytes[position] = UInt8.random(in: 0...255, using: &generator)
                case 2: bytes[position] = 0xFF
                default: bytes.removeSubrange(position..<min(bytes.count, position + 3))
                }
            }
            guard let head = try? Self.decoded(bytes) else {
                refused += 1
                continue
            }
            // Whatever came out must be usable, and encode to what it was read from or its canonical form.
            #expect(try Self.decoded(Self.encoded(head)) == head)
            _ = Caching.lookup(request: request(), stored: head, policy: CachePolicy(), now: arrival)
        }
        #expect(refused > 500)
    }

    @Test("Random bytes are an error")
    func noise() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<5000 {
            let count = Int.random(in: 0..<200, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            bytes.replaceSubrange(
                0..<min(4, count),
                with: [0x44, 0x44, 0x48, StoredHead.formatVersion].prefix(min(4, count))
            )
            #expect(throws: StoredHeadError.self) { try Self.decoded(bytes) }
        }
    }
}
