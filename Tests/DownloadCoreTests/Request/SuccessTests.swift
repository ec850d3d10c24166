// Statuses that the configuration takes for successes, and stored responses and seeds that less was expected of.

import CacheStore
import Content
import DownloadCore
import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import Policies
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SuccessTests {
    private static let fresh = [("Cache-Control", "max-age=6000")]

    private static func ask(
        _ rig: Rig,
        success: [String] = [],
        _ phases: PhasePlan? = nil,
        mode: CacheMode = .standard
    ) -> CacheRequest {
        var policy = CachePolicy(mode: mode)
        if !success.isEmpty { policy.success = StatusSet(success.compactMap(StatusSet.range)) }
        policy.expectation = phases?.expectation
        var ask = rig.ask(policy: policy)
        ask.phases = phases
        return ask
    }

    @Test(
        "what is no success is passed on and not stored, and a good copy answers in its place",
        arguments: [202, 302, 409]
    )
    func stale(_ status: Int) async throws {
        try await withRig(disk: true) { rig in
            rig.origin.answers { _ in .whole(status, Self.fresh, Array("no".utf8)) }
            let ask = Self.ask(rig, success: ["200"])
            let first = await rig.get(ask)
            #expect(first.status == status && first.text == "no")
            #expect(first.cache == "fwd=uri-miss; fwd-status=\(status); detail=status-not-successful")
            #expect(await rig.settle())
            #expect(rig.memory.statistics.objects == 0)
            rig.origin.answers { _ in .whole(200, Self.fresh) }
            #expect(await rig.get(ask).text == "hello")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .whole(status, Self.fresh, Array("no".utf8)) }
            let stale = await rig.get(ask)
            #expect(stale.text == "hello" && stale.cache.contains("detail=stale-if-error"), "\(stale.cache)")
            // Without an allowance it is passed on, and the good copy stays where it is.
            var strict = ask
            strict.policy.staleIfError = 0
            rig.clock.advance(seconds: 100)
            let passed = await rig.get(strict)
            #expect(passed.status == status && passed.cache.hasPrefix("fwd=stale"), "\(passed.cache)")
            #expect(await rig.settle())
            #expect(rig.memory.statistics.objects == 1)
            // A success that nobody may store says that the good copy is outdated; this says nothing of it.
            rig.clock.advance(seconds: 100)
            rig.origin.answers { _ in .whole(status, [("Vary", "*")], Array("no".utf8)) }
            #expect(await rig.get(strict).status == status)
            #expect(await rig.settle())
            #expect(rig.memory.statistics.objects == 1)
        }
    }

    @Test("what is no success leaves stored parts where they are", arguments: [false, true])
    func parts(_ isSuccess: Bool) async throws {
        try await withRig { rig in
            let file = RangedFile(1000)
            rig.origin.answers(file.reply)
            func range(_ text: String) async -> Got {
                var ask = Self.ask(rig, success: isSuccess ? ["2xx"] : ["200"])
                ask.request.fields.set(.range, "bytes=\(text)")
                ask.originFields.set(.range, "bytes=\(text)")
                return await rig.get(ask)
            }
            #expect(await range("100-199").status == 206)
            #expect(await rig.settle())
            rig.origin.answers { _ in .whole(202, [("Cache-Control", "no-store")], Array("wait".utf8)) }
            #expect(await range("300-399").status == 202)
            #expect(await range("100-199").cache.hasPrefix("hit") != isSuccess)
        }
    }

    @Test("a fallback answers for what is no success")
    func fallback() async throws {
        try await withRig { rig in
            let file = SubstituteResponse(path: "f", status: 200, bytes: Array("file".utf8), contentType: "text/plain")
            let phases = PhasePlan(fallback: file)
            for (status, success, isFallback) in [
                (202, ["200"], true), (202, [], false), (500, [], true), (500, ["2xx", "500"], false),
                (404, ["2xx"], true),
                (404, [], false),
            ] {
                rig.origin.answers { _ in .whole(status, [("Cache-Control", "no-store")], Array("no".utf8)) }
                let got = await rig.get(Self.ask(rig, success: success, phases))
                #expect(got.text == (isFallback ? "file" : "no"), "\(status) \(success)")
            }
        }
    }

    @Test("a refusal of one client or one request goes to that client", arguments: [401, 403, 407, 412, 416])
    func refused(_ status: Int) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, Self.fresh) }
            let file = SubstituteResponse(path: "f", status: 200, bytes: Array("file".utf8), contentType: "text/plain")
            let ask = Self.ask(rig, success: ["200"], status < 412 ? nil : PhasePlan(fallback: file))
            #expect(await rig.get(ask).text == "hello")
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            rig.origin.answers { _ in .whole(status, Self.fresh, Array("no".utf8)) }
            let got = await rig.get(ask)
            #expect(got.status == status && got.text == "no", "\(got.cache)")
            #expect(await rig.settle())
            #expect(rig.memory.statistics.objects == 1)
        }
    }

    @Test("no fallback answers a range behind the end of what is stored", arguments: [["200"], ["2xx"], []])
    func unsatisfiable(_ success: [String]) async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, Self.fresh) }
            let file = SubstituteResponse(path: "f", status: 200, bytes: Array("file".utf8), contentType: "text/plain")
            var ask = Self.ask(rig, success: success, PhasePlan(fallback: file))
            #expect(await rig.get(ask).text == "hello")
            #expect(await rig.settle())
            ask.request.fields.set(.range, "bytes=5-")
            let got = await rig.get(ask)
            #expect(got.status == 416 && got.text ?? "" == "", "\(got.status) \(got.cache)")
        }
    }

    @Test("what was stored before anything was expected is a miss, on either tier; what is expected no more stays")
    func stored() async throws {
        for disk in [false, true] {
            try await withRig(disk: disk) { rig in
                rig.origin.answers { _ in .whole(200, Self.fresh, Coded.html) }
                _ = await rig.get(Self.ask(rig))
                #expect(await rig.settle())
                if disk { rig.core.memory.removeAll() }
                let json = PhasePlan(expect: .json)
                let miss = await rig.get(Self.ask(rig, json))
                #expect(miss.cache == "fwd=miss; fwd-status=200; detail=unexpected-content", "\(miss.cache)")
                rig.origin.answers { _ in .whole(200, Self.fresh, Coded.json) }
                let good = await rig.get(Self.ask(rig, json))
                #expect(good.cache == "fwd=miss; fwd-status=200; stored; detail=expect" && good.body == Coded.json)
                #expect(await rig.settle())
                if disk { rig.core.memory.removeAll() }
                for phases in [json, nil] {
                    #expect(await rig.get(Self.ask(rig, phases)).cache.hasPrefix("hit"))
                }
                let typed = PhasePlan(expect: .json, types: ExpectedTypes(["application/json"]))
                #expect(await rig.get(Self.ask(rig, typed)).cache.hasPrefix("fwd=miss"))
            }
        }
    }

    @Test("what less was expected of is not confirmed by a check, and does not stand in for an error")
    func unconfirmed() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, Self.fresh + [("ETag", "\"1\"")], Coded.html) }
            _ = await rig.get(Self.ask(rig))
            #expect(await rig.settle())
            rig.clock.advance(seconds: 6100)
            let ask = Self.ask(rig, PhasePlan(expect: .json))
            rig.origin.answers { _ in .down }
            #expect(await rig.get(ask).failure != nil)
            rig.origin.answers { _ in .whole(200, Self.fresh, Coded.json) }
            #expect(await rig.get(ask).body == Coded.json)
            #expect(rig.origin.log.last?.fields.contains(.ifNoneMatch) == false)
        }
    }

    /// A folder with a seed for `/a`.
    private static func seed(_ rig: Rig, _ body: [UInt8], _ mode: SeedUse, told: Monitor<[String]>) throws
        -> SeedFolder
    {
        let folder = rig.folder.file("seed")
        let directory = "\(folder)/origin.test"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data(body).write(to: URL(fileURLWithPath: "\(directory)/a"))
        try Data(#"{"fields": [["Content-Type", "text/html"]]}"#.utf8)
            .write(to: URL(fileURLWithPath: "\(directory)/a.head.json"))
        return try SeedFolder(path: folder, mode: mode, pool: rig.pool) { text in told.update { $0.append(text) } }
    }

    @Test("a seed that is not what is expected is a miss, and told once; a changed file is looked into again")
    func seeds() async throws {
        let html = try #require(ExpectedTypes(["text/html"]))
        let json = try #require(ExpectedTypes(["application/json"]))
        for (phases, body, isSeed) in [
            (PhasePlan(expect: .json), Coded.html, false), (PhasePlan(expect: .json), Coded.json, true),
            (PhasePlan(expect: .image), Coded.html, false), (PhasePlan(expect: .image), Coded.png, true),
            (PhasePlan(types: json), Coded.json, false), (PhasePlan(types: html), Coded.json, true),
            (PhasePlan(), Coded.html, true),
        ] {
            try await withRig { rig in
                let told = Monitor<[String]>([])
                let seed = try Self.seed(rig, body, .pinned, told: told)
                rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")]) }
                var ask = Self.ask(rig, phases)
                ask.seed = seed
                for _ in 0..<2 {
                    let got = await rig.get(ask)
                    #expect((got.cache == "hit; detail=seed") == isSeed && (got.text == "hello") == !isSeed)
                }
                #expect(told.read { $0.count } == (isSeed ? 0 : 1))
                if !isSeed {
                    #expect(
                        told.read { $0 }.first?.contains("which is not what its route expects; mend the file") == true
                    )
                }
                guard phases.expect == .json, !isSeed else { return }
                try Data(Coded.json + [0x20]).write(to: URL(fileURLWithPath: rig.folder.file("seed/origin.test/a")))
                #expect(await rig.get(ask).cache == "hit; detail=seed")
            }
        }
    }

    @Test("a seed that is not what is expected is not imported, and what is imported answers")
    func imports() async throws {
        for (body, isImported) in [(Coded.html, false), (Coded.json, true)] {
            try await withRig { rig in
                let seed = try Self.seed(rig, body, .imported, told: Monitor([]))
                rig.origin.answers { _ in .whole(200, [("Cache-Control", "no-store")]) }
                var ask = Self.ask(rig, PhasePlan(expect: .json), mode: .library)
                ask.seed = seed
                ask.request.fields.set(.cacheControl, "max-stale")
                let got = await rig.get(ask)
                #expect((got.body == Coded.json) == isImported, "\(got.cache)")
            }
        }
    }
}
