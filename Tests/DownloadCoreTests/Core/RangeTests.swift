// Ranges of what is stored as a whole, or arrives as a whole (RFC 9110 section 14).

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

let tag = ("ETag", "\"a\"")
let lasting = ("Cache-Control", "max-age=6000")

/// The parts of a multipart body, each as its Content-Range and its bytes; nil where it is not one.
func parts(_ got: Got) -> [String: [UInt8]]? {
    guard let type = got.fields.first(.contentType), type.hasPrefix("multipart/byteranges; boundary="),
        let body = got.body
    else { return nil }
    let text = Latin1.string(body)
    let boundary = type.dropFirst("multipart/byteranges; boundary=".count)
    guard text.hasSuffix("\r\n--\(boundary)--\r\n") else { return nil }
    var found: [String: [UInt8]] = [:]
    for part in ("\r\n" + text).split(separator: "\r\n--\(boundary)\r\n") where part.contains("\r\n\r\n") {
        let part = part.replacing("\r\n--\(boundary)--\r\n", with: "")
        guard let end = part.firstRange(of: "\r\n\r\n") else { return nil }
        let lines = part[..<end.lowerBound].split(separator: "\r\n")
        guard let range = lines.first(where: { $0.hasPrefix("Content-Range: ") }) else { return nil }
        found[String(range.dropFirst(15))] = Latin1.bytes(String(part[end.upperBound...]))
    }
    return found
}

extension Latin1 {
    static func string(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { string($0) } }
}

@Suite(.timeLimit(.minutes(5)))
struct RangeTests {
    /// Stores `size` pattern bytes; afterwards the origin answers nothing any more.
    private func withStored(_ size: Int, in tier: StoreTier, _ test: (Rig, [UInt8]) async throws -> Void) async throws {
        try await withRig(disk: tier == .disk) { rig in
            let bytes = Pattern.bytes(0..<size)
            rig.origin.answers { _ in .whole(200, [tag, lasting, ("Content-Type", "a/b")], bytes) }
            _ = await rig.get()
            #expect(await rig.settle())
            if tier == .disk { rig.memory.removeAll() }
            rig.origin.answers { _ in .down }
            try await test(rig, bytes)
            #expect(rig.origin.count == 1)
        }
    }

    @Test(
        "one range is a part of what is stored",
        arguments: [
            ("0-0", 0..<1), ("0-", 0..<700_000), ("-1", 699_999..<700_000), ("262143-262144", 262_143..<262_145),
            ("300000-999999", 300_000..<700_000), ("0-99,100-199", 0..<200),
        ],
        [StoreTier.memory, .disk]
    )
    func single(_ range: (String, Range<Int>), _ tier: StoreTier) async throws {
        try await withStored(700_000, in: tier) { rig, bytes in
            let got = await rig.get("/a", [("Range", "bytes=" + range.0)])
            #expect(got.status == 206 && got.body == Array(bytes[range.1]) && got.length == Int64(range.1.count))
            let last = range.1.upperBound - 1
            #expect(got.fields.first(.contentRange) == "bytes \(range.1.lowerBound)-\(last)/700000")
            #expect(got.fields.first(.contentLength) == "\(range.1.count)" && got.fields.first(.etag) == "\"a\"")
            #expect(got.cache == "hit; ttl=6000; detail=\(tier.rawValue)" && got.age == 0)
        }
    }

    @Test("several ranges are several parts", arguments: [StoreTier.memory, .disk])
    func multipart(_ tier: StoreTier) async throws {
        try await withStored(700_000, in: tier) { rig, bytes in
            let got = await rig.get("/a", [("Range", "bytes=600000-600009, 0-0, -2, 800000-")])
            #expect(got.status == 206 && got.length == got.body.map { Int64($0.count) })
            #expect(
                parts(got) == [
                    "bytes 600000-600009/700000": Array(bytes[600_000..<600_010]),
                    "bytes 0-0/700000": [bytes[0]], "bytes 699998-699999/700000": Array(bytes[699_998...]),
                ]
            )
            #expect(!got.fields.contains(.contentRange) && got.fields.first(.contentLength) == "\(got.length ?? 0)")
            #expect(got.body.map { Latin1.string($0).contains("\r\nContent-Type: a/b\r\n") } == true)
        }
    }

    @Test(
        "the other conditions come before Range, and what counts for nothing gets the whole",
        arguments: [
            ([("Range", "bytes=10-")], 416), ([("Range", "bytes=0-1"), ("If-Range", "\"b\"")], 200),
            ([("Range", "bytes=0-1"), ("If-Range", "\"a\"")], 206),
            ([("Range", "bytes=0-1"), ("If-None-Match", "\"a\"")], 304),
            ([("Range", "bytes=10-"), ("If-None-Match", "\"a\"")], 304),
            ([("Range", "bytes=0-1"), ("If-Match", "\"a\"")], 206), ([("Range", "bytes=1-0")], 200),
            ([("Range", "lines=0-1")], 200), ([("If-Range", "\"a\"")], 200),
            ([("Range", "bytes=" + (0..<17).map { "\($0)-\($0)" }.joined(separator: ","))], 200),
        ]
    )
    func conditions(_ fields: [(String, String)], _ status: Int) async throws {
        try await withStored(10, in: .memory) { rig, bytes in
            let got = await rig.get("/a", fields)
            #expect(got.status == status && got.cache == "hit; ttl=6000; detail=memory")
            if status == 416 { #expect(got.fields.first(.contentRange) == "bytes */10" && got.length == 0) }
            if status == 200 { #expect(got.body == bytes) }
        }
    }

    @Test("HEAD knows no Range")
    func head() async throws {
        try await withStored(10, in: .memory) { rig, _ in
            let got = await rig.get(rig.ask("/a", method: .head, [("Range", "bytes=0-1")]))
            #expect(got.status == 200 && got.length == 10 && got.body == nil)
        }
    }

    @Test("a stale response is checked as a whole, and its part is answered", arguments: [true, false])
    func checked(_ isChanged: Bool) async throws {
        try await withRig { rig in
            let bytes = Pattern.bytes(0..<1000)
            rig.origin.answers { _ in .whole(200, [tag, ("Cache-Control", "max-age=0")], bytes) }
            _ = await rig.get()
            #expect(await rig.settle())
            rig.origin.answers { asked in
                if asked.method == .head { return .headOnly(200, isChanged ? [("ETag", "\"b\"")] : [tag, lasting]) }
                return .whole(200, [("ETag", "\"b\""), lasting], Array(bytes.reversed()))
            }
            let got = await rig.get("/a", [("Range", "bytes=1-2")])
            #expect(got.status == 206 && got.body == (isChanged ? [bytes[998], bytes[997]] : [bytes[1], bytes[2]]))
            #expect(got.fields.first(.contentRange) == "bytes 1-2/1000")
            #expect(rig.origin.methods == (isChanged ? "GET HEAD GET" : "GET HEAD"))
            #expect(rig.origin.log.allSatisfy { !$0.fields.contains(.range) && !$0.fields.contains(.ifRange) })
        }
    }
}
