// Several responses under one URL: side by side and bounded, checked together, updated where a 304 is about them.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import TestSupport
import Testing

private let vary = ("Vary", "Accept-Language")
private let fresh = ("Cache-Control", "max-age=6000")

/// Answers each language with itself as body and tag, and a matching If-None-Match with 304.
@Sendable private func byLanguage(_ asked: Asked) -> Reply {
    let language = asked.fields.first(.acceptLanguage) ?? "-"
    let fields = [fresh, vary, ("ETag", "\"\(language)\"")]
    if asked.fields.first(.ifNoneMatch)?.contains("\"\(language)\"") == true {
        return asked.method == .head ? .headOnly(304, fields) : .whole(304, fields)
    }
    return asked.method == .head ? .headOnly(200, fields) : .whole(200, fields, Array(language.utf8))
}

private func speaking(_ language: String) -> [(String, String)] { [("Accept-Language", language)] }

@Suite(.timeLimit(.minutes(5)))
struct VariantTests {
    @Test("max_variants bounds both tiers; the variant that was stored longest ago goes", arguments: [1, 2, 5])
    func bound(_ most: Int) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers(byLanguage)
            let policy = CachePolicy(maxVariants: most)
            for number in 0..<(most + 2) {
                _ = await rig.get("/a", speaking("l\(number)"), policy: policy)
                #expect(await rig.settle())
            }
            #expect(rig.memory.variants(rig.key()).count == most)
            #expect(rig.disk?.lookup(rig.key()).count == most)
            let asked = rig.origin.count
            for number in 2..<(most + 2) {
                #expect(await rig.get("/a", speaking("l\(number)"), policy: policy).cache.hasPrefix("hit"))
            }
            rig.memory.removeAll()
            for number in 2..<(most + 2) {
                let got = await rig.get("/a", speaking("l\(number)"), policy: policy)
                #expect(got.cache == "hit; ttl=6000; detail=disk" && got.text == "l\(number)")
            }
            #expect(rig.origin.count == asked)
            #expect(await rig.get("/a", speaking("l0"), policy: policy).cache.hasPrefix("fwd=vary-miss"))
        }
    }

    @Test("a variant that was checked a moment ago is not the oldest")
    func boundAfterCheck() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers(byLanguage)
            let policy = CachePolicy(maxVariants: 2)
            for language in ["en", "fr"] { _ = await rig.get("/a", speaking(language), policy: policy) }
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            #expect(await rig.get("/a", speaking("en"), policy: policy).cache.hasSuffix("detail=revalidated"))
            rig.clock.advance(seconds: 10)
            _ = await rig.get("/a", speaking("de"), policy: policy)
            #expect(await rig.settle())
            rig.memory.removeAll()
            #expect(await rig.get("/a", speaking("en"), policy: policy).cache.hasPrefix("hit"))
            #expect(await rig.get("/a", speaking("de"), policy: policy).cache.hasPrefix("hit"))
            #expect(await rig.get("/a", speaking("fr"), policy: policy).cache.hasPrefix("fwd=vary-miss"))
        }
    }

    @Test("RFC 9111 section 4.3.1: a check lists the tags of all variants, its own first", arguments: [true, false])
    func listed(_ inMemory: Bool) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers(byLanguage)
            let policy = CachePolicy(revalidate: .conditional)
            for language in ["en", "fr", "de"] { _ = await rig.get("/a", speaking(language), policy: policy) }
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            if !inMemory { rig.memory.removeAll() }
            let got = await rig.get("/a", speaking("fr"), policy: policy)
            #expect(got.text == "fr" && got.cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            let tags = rig.origin.log[3].fields.first(.ifNoneMatch)?.split(separator: ", ").map(String.init) ?? []
            #expect(tags.first == "\"fr\"" && Set(tags) == ["\"fr\"", "\"en\"", "\"de\""])
            #expect(!rig.origin.log[3].fields.contains(.ifModifiedSince), "a date is about one response")
            // Only the one that the 304 is about is fresh again.
            #expect(await rig.get("/a", speaking("fr"), policy: policy).cache.hasPrefix("hit"))
            #expect(await rig.get("/a", speaking("en"), policy: policy).cache.hasPrefix("fwd=stale"))
            #expect(rig.origin.count == 5)
        }
    }

    @Test("RFC 9111 section 4.1: on a Vary miss the tags of the others go along, and a 304 names one of them")
    func varyMiss() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { asked in
                let fields = [fresh, vary, ("ETag", "\"same\"")]
                let isKnown = asked.fields.first(.ifNoneMatch) == "\"same\""
                return isKnown ? .whole(304, fields) : .whole(200, fields)
            }
            _ = await rig.get("/a", speaking("en"))
            let got = await rig.get("/a", speaking("en-GB"))
            #expect(got.status == 200 && got.text == "hello")
            #expect(got.cache == "fwd=vary-miss; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(rig.origin.methods == "GET GET")
            // Both select it from now on.
            for language in ["en", "en-GB"] {
                #expect(await rig.get("/a", speaking(language)).cache == "hit; ttl=6000; detail=memory")
            }
            #expect(rig.memory.variants(rig.key()).count == 2)
        }
    }

    @Test("RFC 9111 section 4.3.4: a weak tag never makes another request's variant this one's")
    func weakVaryMiss() async throws {
        try await withRig { rig in
            // As many origins do it: one weak tag for all codings.
            rig.origin.answers { asked in
                let coding = asked.fields.first(.acceptEncoding) ?? "identity"
                let fields = [fresh, ("Vary", "Accept-Encoding"), ("ETag", "W/\"1\""), ("Content-Encoding", coding)]
                return asked.fields.contains(.ifNoneMatch)
                    ? .whole(304, fields) : .whole(200, fields, Array(coding.utf8))
            }
            _ = await rig.get("/a", [("Accept-Encoding", "gzip")])
            #expect(await rig.get("/a").text == "identity")
            #expect(!rig.origin.log[1].fields.contains(.ifNoneMatch))
        }
    }

    @Test(
        "a 304 about nothing that is stored updates nothing, and the resource is fetched without conditions",
        arguments: [ValidationMethod.head, .conditional]
    )
    func foreign(_ method: ValidationMethod) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(200, [fresh, ("ETag", "\"1\"")]) }
            let policy = CachePolicy(revalidate: method)
            _ = await rig.get("/a", policy: policy)
            rig.clock.advance(seconds: 6100)
            let other = [fresh, ("ETag", "\"2\"")]
            rig.origin.answers { asked in
                if asked.method == .head { return .headOnly(304, other) }
                return asked.fields.contains(.ifNoneMatch) ? .whole(304, other) : .whole(200, other, Array("new".utf8))
            }
            let got = await rig.get("/a", policy: policy)
            #expect(got.text == "new" && got.cache == "fwd=stale; fwd-status=200; stored; detail=replaced")
            #expect(rig.origin.methods == (method == .head ? "GET HEAD GET" : "GET GET GET"))
            #expect(!rig.origin.log[2].fields.contains(.ifNoneMatch))
            #expect(await rig.get("/a", policy: policy).text == "new")
        }
    }

    @Test("a 304 without validators updates the one candidate that there is, and none of several")
    func withoutValidators() async throws {
        for count in 1...2 {
            try await withRig { rig in
                rig.origin.answers(byLanguage)
                let policy = CachePolicy(revalidate: .conditional)
                for language in ["en", "fr"].prefix(count) {
                    _ = await rig.get("/a", speaking(language), policy: policy)
                }
                rig.clock.advance(seconds: 6100)
                rig.origin.answers { asked in
                    asked.fields.contains(.ifNoneMatch) ? .whole(304, [fresh]) : byLanguage(asked)
                }
                let got = await rig.get("/a", speaking("en"), policy: policy)
                #expect(got.text == "en")
                #expect(got.cache.hasSuffix(count == 1 ? "detail=revalidated" : "stored; detail=replaced"))
                #expect(rig.origin.count == (count == 1 ? 2 : 4))
            }
        }
    }

    @Test("a request with Authorization or no-store neither offers the others' tags nor leaves its answer behind")
    func apart() async throws {
        try await withRig { rig in
            rig.origin.answers(byLanguage)
            let policy = CachePolicy(revalidate: .conditional)
            _ = await rig.get("/a", speaking("en"), policy: policy)
            _ = await rig.get("/a", speaking("fr") + [("Authorization", "Basic eDp5")], policy: policy)
            #expect(!rig.origin.log[1].fields.contains(.ifNoneMatch))
            rig.clock.advance(seconds: 6100)
            let alone = await rig.get("/a", speaking("en") + [("Cache-Control", "no-store")], policy: policy)
            #expect(alone.cache == "fwd=stale; fwd-status=304; ttl=6000; detail=revalidated")
            #expect(await rig.get("/a", speaking("en"), policy: policy).cache.hasPrefix("fwd=stale"))
        }
    }

    @Test("a longer variant that is on the disk only is not overlooked for an older one in memory")
    func newerOnDisk() async throws {
        try await withRig(disk: true, memoryMaxObject: 1000) { rig in
            rig.origin.answers { _ in .whole(200, [fresh]) }
            _ = await rig.get("/a", speaking("en"))
            #expect(await rig.settle())
            rig.clock.advance(seconds: 10)
            rig.origin.answers { _ in .whole(200, [fresh, vary], [UInt8](repeating: 7, count: 300_000)) }
            _ = await rig.get("/a", speaking("en") + [("Cache-Control", "no-cache")])
            #expect(await rig.settle())
            let got = await rig.get("/a", speaking("en"))
            #expect(got.body?.count == 300_000 && got.cache == "hit; ttl=6000; detail=disk")
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct HeadAnswerTests {
    @Test("RFC 9111 section 4.3.5: a HEAD freshens each stored response that its request selects, and no other")
    func each() async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers(byLanguage)
            for language in ["en", "fr"] { _ = await rig.get("/a", speaking(language)) }
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { asked in .headOnly(200, [fresh, vary, ("ETag", "\"en\""), ("X-New", "1")]) }
            _ = await rig.get(rig.ask(method: .head, speaking("en")))
            let en = await rig.get("/a", speaking("en"))
            #expect(en.cache == "hit; ttl=6000; detail=memory" && en.fields.first("X-New") == "1")
            rig.memory.removeAll()
            #expect(await rig.get("/a", speaking("en")).cache == "hit; ttl=6000; detail=disk")
            rig.origin.answers(byLanguage)
            #expect(await rig.get("/a", speaking("fr")).cache.hasPrefix("fwd=stale"))
        }
    }

    @Test("a 304 to a client's own conditions on HEAD freshens what it is about")
    func clientConditions() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [fresh, ("ETag", "\"1\"")]) }
            _ = await rig.get()
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .headOnly(304, [fresh, ("ETag", "\"1\"")]) }
            let head = await rig.get(rig.ask(method: .head, [("If-None-Match", "\"1\"")]))
            #expect(head.status == 304)
            #expect(await rig.get().cache == "hit; ttl=6000; detail=memory")
            #expect(rig.origin.methods == "GET HEAD")
        }
    }

    @Test("a HEAD that shows a change leaves the others alone, and the fetch that it leads to may fail")
    func changed() async throws {
        try await withRig { rig in
            rig.origin.answers(byLanguage)
            for language in ["en", "fr"] { _ = await rig.get("/a", speaking(language)) }
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { $0.method == .head ? .headOnly(200, [fresh, vary, ("ETag", "\"x\"")]) : .down }
            let got = await rig.get("/a", speaking("en"))
            #expect(got.text == "en" && got.cache == "fwd=stale; ttl=-100; detail=stale-if-error")
            #expect(rig.memory.variants(rig.key()).count == 2)
        }
    }

    @Test("interim answers to a client's HEAD reach it")
    func interim() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in Reply(steps: [.interim(103)] + Reply.headOnly(200, []).steps) }
            let told = Counter()
            let task = await rig.start(rig.ask(method: .head), onInterim: { told.add($0) })
            #expect(await task.value.status == 200)
            #expect(told.value == 103)
        }
    }
}
