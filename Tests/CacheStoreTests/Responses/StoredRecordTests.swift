// The one encoding of a stored response's head, on disk and on the wire: no field of it is left out.

import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore

private let key = CacheKey(service: "s", url: "http://origin.test/a")

/// No field has the value that it has in ``plain``.
private let full: StoredHead = {
    var head = StoredHead(
        status: 203,
        reason: "Other",
        fields: Fields([("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("ETag", "\"1\"")]),
        requestTime: 1_000_001,
        responseTime: 1_000_002,
        validatedAt: 1_000_003,
        initialAge: 4,
        varyFields: Fields([("Accept-Language", "de")]),
        varyNames: ["accept-language"],
        bodyLength: 5,
        requestMethod: .post,
        hadAuthorization: true,
        receivedAge: 7
    )
    head.mapped = MappedOrigin(digest: "0a", fields: Fields([("ETag", "W/\"o\"")]), length: 12)
    head.expectation = "json text/*"
    (head.number, head.changedSince, head.staleSince) = (8, 1_000_009, 1_000_010)
    head.keepVariantKey()
    return head
}()

private let plain = StoredHead(
    status: 200,
    reason: "OK",
    fields: Fields(),
    requestTime: 0,
    responseTime: 0,
    validatedAt: 0,
    initialAge: 0,
    varyFields: Fields(),
    varyNames: [],
    bodyLength: nil,
    requestMethod: .get,
    hadAuthorization: false
)

/// What whoever finds the response asks the rules for.
private let notEncoded: Set<String> = ["staleSince"]

private func values(_ head: StoredHead) -> [String: String] {
    Dictionary(uniqueKeysWithValues: Mirror(reflecting: head).children.map { ($0.label ?? "", "\($0.value)") })
}

struct StoredRecordTests {
    @Test("every field of a stored head is in the record; a new one has to be encoded, or named here")
    func fields() throws {
        let body = Chunk(Array("hello".utf8))
        let record = StoredRecord(key, full, number: 11, body: body)
        let read = try #require(StoredRecord(decoding: record.encode()))
        let (given, base, decoded) = (values(full), values(plain), values(read.head))
        for (name, value) in given {
            #expect(base[name] != value, "'full' has to give \(name) a value of its own")
            #expect(decoded[name] == (notEncoded.contains(name) ? base[name] : value), "\(name) is not encoded")
        }
        #expect(read.key == key.bytes && read.fileID == 11 && read.bodyLength == 5 && read.describes(body))
    }

    @Test("what memory holds has every field, too")
    func held() throws {
        let response = StoredResponse(
            key: key,
            head: full,
            body: .complete(Array("hello".utf8)),
            preparedHead: StoredResponse.prepare(full, length: 5, via: nil),
            hot: nil,
            tier: .memory
        )
        let held = try #require(ResidentResponse(response))
        #expect(values(held.response.head) == values(full))
    }

    @Test("damage anywhere, a part of a record, and more than one are none")
    func damage() throws {
        let bytes = StoredRecord(key, full, number: 11, body: Chunk(Array("hello".utf8))).encode()
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1
            #expect(StoredRecord(decoding: damaged) == nil, "at \(index)")
            #expect(StoredRecord(decoding: Array(bytes[..<index])) == nil, "up to \(index)")
        }
        #expect(StoredRecord(decoding: bytes + bytes) == nil)
        let read = try #require(StoredRecord(decoding: bytes))
        #expect(!read.describes(Chunk(Array("hellO".utf8))) && !read.describes(Chunk(Array("hell".utf8))))
    }
}
