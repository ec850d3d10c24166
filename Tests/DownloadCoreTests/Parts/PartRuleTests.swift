// Which parts are stored and for whom; what the origin may not answer to a Range.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PartRuleTests {
    @Test(
        "a part that may not be stored is passed on, and so are the next ones",
        arguments: [
            ([("ETag", "W/\"a\""), lasting], "0-1/1000", "no-strong-validator"),
            ([lasting], "0-1/1000", "no-strong-validator"),
            ([tag, lasting], "0-1/*", "complete-length-unknown"),
            ([tag, ("Cache-Control", "no-store")], "0-1/1000", "no-store"),
            ([tag, ("Cache-Control", "private")], "0-1/1000", "private"),
            ([tag, lasting, ("Vary", "*")], "0-1/1000", "vary-star"),
            ([tag, lasting], "0-1/999999999999", "too-large"),
        ]
    )
    func unstored(_ fields: [(String, String)], _ range: String, _ reason: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(206, fields + [("Content-Range", "bytes " + range)], [7, 8]) }
            for turn in 0..<3 {
                let got = await rig.range("0-1")
                #expect(got.status == 206 && got.body == [7, 8])
                #expect(got.fields.first(.contentRange) == "bytes " + range)
                #expect(
                    got.cache
                        == (turn == 0
                            ? "fwd=uri-miss; fwd-status=206; detail=\(reason)"
                            : "fwd=bypass; fwd-status=206; detail=range")
                )
            }
            #expect(rig.ranges == ["0-1", "0-1", "0-1"] && rig.core.partialStatistics.objects == 0)
        }
    }

    @Test("a request that wants nothing stored leaves nothing, and says nothing about the next one")
    func requestNoStore() async throws {
        try await withRig { rig in
            let file = RangedFile(100)
            rig.origin.answers { asked in
                asked.fields.first(.range) == "bytes=0-1,5-6"
                    ? .whole(206, [("Content-Type", "multipart/byteranges; boundary=x")], [1]) : file.reply(asked)
            }
            let never = [("Cache-Control", "no-store")]
            #expect(await rig.range("0-9", never).cache == "fwd=uri-miss; fwd-status=206; detail=request-no-store")
            #expect(await rig.range("0-1,5-6", never).body == [1])
            #expect(await rig.range("0-9").cache == "fwd=uri-miss; fwd-status=206; stored")
            #expect(rig.ranges == ["0-9", "0-1,5-6", "0-9"])
        }
    }

    @Test("several parts that may not be stored come as the origin puts them together")
    func unstoredSeveral() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                if asked.number == 1 { return .whole(206, [lasting, ("Content-Range", "bytes 0-1/9")], [7, 8]) }
                return .whole(206, [("Content-Type", "multipart/byteranges; boundary=x")], Array("--x".utf8))
            }
            let got = await rig.range("0-1,5-6")
            #expect(got.status == 206 && got.text == "--x")
            #expect(rig.ranges == ["0-1", "0-1,5-6"])
        }
    }

    @Test(
        "http-rules.md 30: what was not asked for is passed on as it came, and nothing of it is kept",
        arguments: [
            ("bytes 5-6/1000", "2", "part-range"), ("bytes 0-2/1000", "3", "part-range"),
            ("bytes 0-1/1000", "3", "part-length"), ("bytes 0-1/1", "2", "part-content-range"),
            ("", "2", "part-content-range"), ("bytes */1000", "2", "part-content-range"),
            ("0-1/1000", "2", "part-content-range"),
        ]
    )
    func wrong(_ range: String, _ length: String, _ detail: String) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in
                let fields =
                    [tag, lasting, ("Content-Length", length)] + (range.isEmpty ? [] : [("Content-Range", range)])
                let body = [UInt8](repeating: 1, count: Int(length) ?? 0)
                let head = ResponseHead(status: 206, reason: "R", fields: Fields(fields))
                return Reply(steps: [.head(head, .length(UInt64(body.count))), .bytes(body), .end(Fields())])
            }
            let body = [UInt8](repeating: 1, count: Int(length) ?? 0)
            let none = CachePolicy(mode: .none)
            for (policy, cache) in [
                (CachePolicy(), "fwd=uri-miss; fwd-status=206; detail=\(detail)"),
                (CachePolicy(), "fwd=bypass; fwd-status=206; detail=range"),
                (none, "fwd=bypass; fwd-status=206; detail=cache-off"),
            ] {
                let got = await rig.range("0-1", policy: policy)
                #expect(got.failure == nil && got.status == 206 && got.body == body && got.cache == cache)
                #expect(got.fields.first(.contentRange) == (range.isEmpty ? nil : range))
            }
            #expect(rig.core.partialStatistics.objects == 0 && rig.ranges == ["0-1", "0-1", "0-1"])
        }
    }

    @Test("what is wrong beside stored parts leaves none of them, and is passed on")
    func wrongBeside() async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers { asked in
                asked.number == 1
                    ? file.reply(asked) : .whole(206, [tag, lasting, ("Content-Range", "bytes 7-8/1000")], [7, 8])
            }
            #expect(await rig.range("0-9").cache == "fwd=uri-miss; fwd-status=206; stored")
            // Bytes 10 to 19 are missing; what comes is none of them.
            let got = await rig.range("0-19")
            #expect(got.status == 206 && got.body == [7, 8] && got.fields.first(.contentRange) == "bytes 7-8/1000")
            #expect(rig.core.partialStatistics.objects == 0)
        }
    }

    @Test("a 206 to a request without Range is passed on unstored", arguments: [CacheMode.standard, .none])
    func unasked(_ mode: CacheMode) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(206, [tag, lasting, ("Content-Range", "bytes 0-1/1000")], [7, 8]) }
            for turn in 1...2 {
                let got = await rig.get("/a", policy: CachePolicy(mode: mode))
                #expect(got.failure == nil && got.status == 206 && got.body == [7, 8])
                #expect(got.cache.hasSuffix(mode == .none ? "detail=cache-off" : "detail=part-unasked"))
                #expect(rig.origin.count == turn)
            }
        }
    }

    @Test("a part that nobody asked for replaces nothing")
    func unaskedReplacesNothing() async throws {
        try await withRig { rig in
            let policy = CachePolicy(revalidate: .conditional)
            rig.origin.answers { asked in
                asked.number == 1
                    ? .whole(200, [tag, ("Cache-Control", "max-age=0, stale-if-error=600")], [1, 2, 3])
                    : .whole(206, [tag, lasting, ("Content-Range", "bytes 0-1/1000")], [7, 8])
            }
            _ = await rig.get("/a", policy: policy)
            #expect(await rig.settle())
            #expect(await rig.get("/a", policy: policy).body == [7, 8])
            rig.origin.answers { _ in .whole(500, [], []) }
            #expect(await rig.get("/a", policy: policy).body == [1, 2, 3])
        }
    }

    @Test("library mode keeps no part as a whole")
    func library() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(206, [tag, lasting, ("Content-Range", "bytes 0-1/1000")], [7, 8]) }
            #expect(await rig.get("/a", policy: CachePolicy(mode: .library)).failure?.status == 502)
        }
    }

    @Test("a 200 to a request with Range is stored as a whole, and its part answered", arguments: [true, false])
    func wholeInstead(_ disk: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let bytes = Pattern.bytes(0..<1_000_000)
            rig.origin.answers { _ in .whole(200, [tag, lasting], bytes) }
            let got = await rig.range("999990-")
            #expect(got.status == 206 && got.body == Array(bytes[999_990...]))
            #expect(got.cache == "fwd=uri-miss; fwd-status=200; stored")
            #expect(await rig.settle())
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(await rig.range("-1").body == [bytes[999_999]])
            #expect(rig.ranges == ["999990-"])
        }
    }

    @Test("416 of the origin is passed on and says nothing about the next request")
    func unsatisfiable() async throws {
        try await withRig { rig in
            let file = RangedFile(10)
            rig.origin.answers(file.reply)
            let got = await rig.range("10-")
            #expect(got.status == 416 && got.fields.first(.contentRange) == "bytes */10" && got.text == "no such range")
            #expect(await rig.range("0-1").cache == "fwd=uri-miss; fwd-status=206; stored")
        }
    }

    @Test("a client's If-Range goes on where nothing is stored, and is evaluated here where parts are")
    func ifRange() async throws {
        try await withRig { rig in
            let file = RangedFile(100)
            rig.origin.answers(file.reply)
            let got = await rig.range("0-9", [("If-Range", "\"a\"")])
            #expect(got.status == 206 && rig.ranges == ["0-9 if \"a\""])
            #expect(await rig.range("0-9", [("If-Range", "\"a\"")]).cache == "hit; ttl=6000; detail=memory")
            let whole = await rig.range("0-9", [("If-Range", "\"b\"")])
            #expect(whole.status == 200 && whole.body == file.bytes)
            #expect(rig.ranges == ["0-9 if \"a\"", "10-99 if \"a\""])
        }
        try await withRig { rig in
            let file = RangedFile(100)
            rig.origin.answers(file.reply)
            let got = await rig.range("0-9", [("If-Range", "\"b\"")])
            #expect(got.status == 200 && got.body == file.bytes && rig.ranges == ["0-9 if \"b\""])
        }
    }

    @Test("only-if-cached: parts answer what they cover, and nothing else")
    func onlyIfCached() async throws {
        try await withRig { rig in
            rig.origin.answers(RangedFile(100).reply)
            let only = [("Cache-Control", "only-if-cached")]
            #expect(await rig.range("0-9", only).status == 504)
            _ = await rig.range("0-9")
            #expect(await rig.range("0-9", only).status == 206)
            #expect(await rig.range("0-10", only).status == 504)
            #expect(await rig.get("/a", only).status == 504)
            #expect(rig.origin.count == 1)
        }
    }

    @Test("offline, parts answer what they cover whatever their age")
    func offline() async throws {
        try await withRig { rig in
            var file = RangedFile(100)
            file.fields = [("Cache-Control", "max-age=0")]
            rig.origin.answers(file.reply)
            _ = await rig.range("0-9")
            #expect(await rig.settle())
            rig.core.isOffline = true
            #expect(await rig.range("0-9").cache.hasSuffix("detail=offline"))
            #expect(await rig.range("0-9").body == Array(file.bytes[0..<10]))
            #expect(await rig.range("0-10").failure?.status == 504)
            #expect(rig.origin.count == 1)
        }
    }

    @Test("RFC 9111 4.1: parts of variants stay apart")
    func vary() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                var file = RangedFile(100)
                file.fields.append(("Vary", "X-Kind"))
                if asked.fields.first("X-Kind") == "2" {
                    file.bytes.reverse()
                    file.tag = "\"2\""
                }
                return file.reply(asked)
            }
            let bytes = Pattern.bytes(0..<100)
            for turn in 0..<2 {
                for kind in ["1", "2"] {
                    let got = await rig.range("0-9", [("X-Kind", kind)])
                    #expect(got.body == (kind == "1" ? Array(bytes[0..<10]) : Array(bytes.reversed()[0..<10])))
                    #expect(got.cache.hasPrefix(turn == 0 ? "fwd=" : "hit"))
                }
            }
            #expect(rig.origin.count == 2 && rig.core.partialStatistics.objects == 2)
            _ = await rig.range("0-9", [("X-Kind", "3")])
            #expect(rig.origin.count == 3)
        }
    }

    @Test(
        "RFC 9111 3.5: parts for one user are nobody else's",
        arguments: [("max-age=6000", 2), ("public, max-age=6000", 1)]
    )
    func authorization(_ control: String, _ count: Int) async throws {
        try await withRig { rig in
            var file = RangedFile(100)
            file.fields = [("Cache-Control", control)]
            rig.origin.answers(file.reply)
            _ = await rig.range("0-9", [("Authorization", "Basic x")])
            #expect(await rig.settle())
            _ = await rig.range("0-9")
            #expect(rig.origin.count == count)
        }
    }

    @Test("HEAD is not answered from parts, and may show that they are no longer current")
    func head() async throws {
        try await withRig { rig in
            let file = RangedFile(100)
            rig.origin.answers { $0.method == .head ? .headOnly(200, [tag, lasting]) : file.reply($0) }
            _ = await rig.range("0-9")
            let got = await rig.get(rig.ask("/a", method: .head, [("Range", "bytes=0-9")]))
            #expect(got.status == 200 && rig.origin.methods == "GET HEAD")
            #expect(await rig.range("0-9").cache.hasPrefix("hit"))
            // RFC 9111 section 4.3.5: it tells that the parts are no longer current; they are
            // asked about, and not removed.
            rig.origin.answers { _ in .headOnly(200, [("ETag", "\"b\""), lasting]) }
            _ = await rig.get(rig.ask("/a", method: .head))
            rig.origin.answers(file.reply)
            #expect(await rig.range("0-9").cache.hasPrefix("fwd=stale"))
        }
    }

    @Test("parts are bounded: the least recently used go")
    func bounded() async throws {
        try await withRig { rig in
            // An eighth of 64 MiB.
            let file = RangedFile(3 << 20)
            rig.origin.answers(file.reply)
            for path in ["/1", "/2", "/3", "/4"] {
                _ = await rig.get(path, [("Range", "bytes=1-")])
                #expect(await rig.settle())
            }
            #expect(rig.core.partialStatistics.objects == 2)
            #expect(rig.core.partialStatistics.heldBytes <= 8 << 20)
            #expect(await rig.get("/4", [("Range", "bytes=1-1")]).cache.hasPrefix("hit"))
            #expect(await rig.get("/1", [("Range", "bytes=1-1")]).cache.hasPrefix("fwd=uri-miss"))
        }
    }
}
