// Parts of a representation: stored, joined, fetched where they are missing, made whole (RFC
// 9111 sections 3.3 and 3.4).

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PartTests {
    private let hit = "hit; ttl=6000; detail=memory"
    private let filled = "fwd=partial; fwd-status=206; stored"

    @Test("a part is asked for as it is, stored, and answers what it covers", arguments: [true, false])
    func covered(_ disk: Bool) async throws {
        try await withRig(disk: disk) { rig in
            let file = RangedFile(1000)
            rig.origin.answers(file.reply)
            let first = await rig.range("100-199")
            #expect(first.status == 206 && first.body == Array(file.bytes[100..<200]) && first.length == 100)
            #expect(first.cache == "fwd=uri-miss; fwd-status=206; stored" && first.age == nil)
            #expect(first.fields.first(.contentRange) == "bytes 100-199/1000")
            #expect(await rig.settle())
            for range in ["100-199", "150-150", "120-199"] {
                let got = await rig.range(range)
                #expect(got.status == 206 && got.cache == hit && got.age == 0)
            }
            #expect(await rig.range("150-159").body == Array(file.bytes[150..<160]))
            let several = await rig.range("190-199,100-101")
            #expect(
                parts(several) == [
                    "bytes 190-199/1000": Array(file.bytes[190..<200]),
                    "bytes 100-101/1000": Array(file.bytes[100..<102]),
                ]
            )
            #expect(await rig.range("1000-").status == 416)
            #expect(await rig.range("100-110", [("If-None-Match", "\"a\"")]).status == 304)
            #expect(rig.ranges == ["100-199"])
        }
    }

    @Test(
        "the first part may be any",
        arguments: [
            ("900-", 900..<1000, "900-"), ("-1", 999..<1000, "-1"), ("-2000", 0..<1000, "-2000"),
            ("0-5000", 0..<1000, "0-5000"), ("0-", 0..<1000, "0-"),
        ]
    )
    func first(_ range: String, _ expected: Range<Int>, _ asked: String) async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers(file.reply)
            for turn in 0..<2 {
                let got = await rig.range(range)
                #expect(got.status == 206 && got.body == Array(file.bytes[expected]))
                #expect(got.cache == (turn == 0 ? "fwd=uri-miss; fwd-status=206; stored" : hit))
                #expect(await rig.settle())
            }
            #expect(rig.ranges == [asked])
            if expected.count == 1000 {
                // All of it has come: it is a stored response like any other.
                let got = await rig.get()
                #expect(got.status == 200 && got.cache == hit && got.body == file.bytes)
                #expect(rig.core.partialStatistics.objects == 0)
            }
        }
    }

    @Test(
        "only what is missing is fetched, and what is whole is stored as a whole",
        arguments: [true, false],
        [1000, 3_000_000]
    )
    func holes(_ disk: Bool, _ size: Int) async throws {
        try await withRig(disk: disk) { rig in
            let file = RangedFile(size)
            rig.origin.answers(file.reply)
            let (a, b, c, d) = (size / 10, size / 5, size / 2, size / 10 * 7)
            _ = await rig.range("\(a)-\(b - 1)")
            _ = await rig.range("\(c)-\(d - 1)")
            let middle = await rig.range("\(a + 1)-\(d - 2)")
            #expect(middle.body == Array(file.bytes[a + 1..<d - 1]) && middle.error == nil)
            #expect(middle.cache == filled && middle.status == 206)
            let whole = await rig.get()
            #expect(whole.status == 200 && whole.body == file.bytes && whole.length == Int64(size))
            #expect(whole.cache == filled && !whole.fields.contains(.contentRange))
            #expect(whole.fields.first(.contentLength) == "\(size)")
            let tag = " if \"a\""
            #expect(
                rig.ranges == [
                    "\(a)-\(b - 1)", "\(c)-\(d - 1)\(tag)", "\(b)-\(c - 1)\(tag)", "0-\(a - 1)\(tag)",
                    "\(d)-\(size - 1)\(tag)",
                ]
            )
            #expect(await rig.settle())
            #expect(rig.core.partialStatistics == PartialStatistics())
            let again = await rig.get()
            #expect(again.cache == hit && again.body == file.bytes)
            if disk {
                rig.memory.removeAll()
                let got = await rig.get()
                #expect(got.cache == "hit; ttl=6000; detail=disk" && got.body == file.bytes)
            }
            #expect(rig.origin.count == 5)
        }
    }

    @Test("several ranges on a miss are fetched one by one and answered together")
    func severalOnMiss() async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers(file.reply)
            let got = await rig.range("500-509,0-9,-10")
            #expect(
                parts(got) == [
                    "bytes 500-509/1000": Array(file.bytes[500..<510]), "bytes 0-9/1000": Array(file.bytes[0..<10]),
                    "bytes 990-999/1000": Array(file.bytes[990...]),
                ]
            )
            #expect(got.length == got.body.map { Int64($0.count) })
            #expect(rig.ranges == ["500-509", "0-9 if \"a\"", "990-999 if \"a\""])
        }
    }

    @Test("what comes shorter than asked is taken, and the rest is asked for")
    func shorter() async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers { asked in
                guard let value = asked.fields.first(.range), let first = Int(value.dropFirst(6).prefix { $0 != "-" })
                else { return file.reply(asked) }
                let end = min(first + 400, 1000)
                let range = [("Content-Range", "bytes \(first)-\(end - 1)/1000")]
                return .whole(206, [tag, lasting] + range, Array(file.bytes[first..<end]))
            }
            let got = await rig.range("100-899")
            #expect(got.status == 206 && got.body == Array(file.bytes[100..<900]) && got.error == nil)
            #expect(rig.ranges == ["100-899", "500-899 if \"a\""])
        }
    }

    // MARK: - Changes

    @Test("another representation takes the place of the parts", arguments: [true, false])
    func changed(_ ignoresIfRange: Bool) async throws {
        try await withRig { rig in
            let old = RangedFile(1000)
            var new = RangedFile(1000)
            new.bytes.reverse()
            new.tag = "\"b\""
            rig.origin.answers(old.reply)
            _ = await rig.range("0-99")
            #expect(await rig.settle())
            rig.origin.answers { [new] asked in
                guard ignoresIfRange else { return new.reply(asked) }
                var fields = asked.fields
                fields.remove(.ifRange)
                let plain = Asked(
                    method: asked.method,
                    path: asked.path,
                    fields: fields,
                    clientHost: nil,
                    number: asked.number
                )
                return new.reply(plain)
            }
            let got = await rig.range("50-149")
            #expect(got.status == 206 && got.body == Array(new.bytes[50..<150]) && got.error == nil)
            #expect(got.fields.first(.etag) == "\"b\"")
            #expect(await rig.settle())
            let next = await rig.range("0-199")
            #expect(next.body == Array(new.bytes[0..<200]))
            let all = ["0-99", "100-149 if \"a\""]
            #expect(rig.ranges.starts(with: all))
            #expect(rig.ranges.dropFirst(2).allSatisfy { $0.hasSuffix(" if \"b\"") })
            #expect(rig.origin.count == (ignoresIfRange ? 5 : 2))
        }
    }

    @Test("bytes of another representation never follow those of the first", arguments: [true, false])
    func changedBetween(_ isWhole: Bool) async throws {
        try await withRig { rig in
            let old = RangedFile(1000)
            var new = RangedFile(1000)
            new.bytes.reverse()
            new.tag = "\"b\""
            rig.origin.answers { [new] asked in asked.number < 4 ? old.reply(asked) : new.reply(asked) }
            _ = await rig.range("100-199")
            _ = await rig.range("300-399")
            let got = isWhole ? await rig.get() : await rig.range("0-299")
            // The first hole still came from the old one, the second cannot any more.
            #expect(got.body == Array(old.bytes[0..<200]) && got.error != nil)
            #expect(await rig.settle())
            #expect(await rig.get().body == new.bytes)
        }
    }

    @Test(
        "stale parts are checked under their validator",
        arguments: [
            // the validator then, what is sent, what is answered
            ("\"a\"", "10-19 unless \"a\"", "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated"),
            ("\"b\"", "10-19 unless \"a\"", "fwd=stale; fwd-status=206; stored; detail=expired"),
        ]
    )
    func stale(_ tag: String, _ asked: String, _ cache: String) async throws {
        try await withRig { rig in
            var file = RangedFile(1000)
            file.fields = [("Cache-Control", "max-age=0")]
            rig.origin.answers(file.reply)
            _ = await rig.range("0-99")
            #expect(await rig.settle())
            file.tag = tag
            file.fields = [("Cache-Control", "max-age=6000")]
            if tag == "\"b\"" { file.bytes.reverse() }
            rig.origin.answers(file.reply)
            let got = await rig.range("10-19")
            #expect(got.status == 206 && got.body == Array(file.bytes[10..<20]) && got.cache == cache)
            #expect(await rig.range("10-19").cache == hit)
            #expect(rig.ranges == ["0-99", asked])
            // What is missing tells as well whether the rest is current.
            #expect(await rig.range("10-29").body == Array(file.bytes[10..<30]))
        }
    }

    @Test("stale parts stand in for an origin that fails, where they cover the request")
    func staleIfError() async throws {
        try await withRig { rig in
            var file = RangedFile(1000)
            file.fields = [("Cache-Control", "max-age=0, stale-if-error=600")]
            rig.origin.answers(file.reply)
            _ = await rig.range("0-99")
            #expect(await rig.settle())
            rig.origin.answers { asked in asked.number % 2 == 0 ? .down : .whole(503, []) }
            for detail in ["stale-if-error", "check-pause"] {
                let got = await rig.range("0-9")
                #expect(got.status == 206 && got.body == Array(file.bytes[0..<10]))
                #expect(got.cache.hasSuffix("detail=\(detail)"))
            }
            // What is missing has to be asked for all the same.
            #expect(await rig.range("90-109").status == 503)
            #expect(await rig.range("90-109").failure != nil)
        }
    }

    @Test("a reload of stored parts asks the origin", arguments: ["10-19", "90-109"])
    func reload(_ range: String) async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers(file.reply)
            _ = await rig.range("0-99")
            let got = await rig.range(range, [("Cache-Control", "no-cache")])
            #expect(got.status == 206 && rig.origin.count == 2)
            #expect(rig.ranges[1] == (range == "10-19" ? "10-19 unless \"a\"" : "100-109 if \"a\""))
        }
    }
}
