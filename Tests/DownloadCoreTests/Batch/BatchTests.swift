// Batches: sizes looked for, items downloaded, failures, duplicates, cancelling and going on.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import Policies
import Synchronization
import TestSupport
import Testing
import Upstream

extension Rig {
    /// Items are paths; one that begins with `!` cannot be asked for.
    func runner(
        _ batch: Batch,
        policy: CachePolicy = CachePolicy(),
        observe: (@Sendable (BatchChange) -> Void)? = nil
    ) -> BatchRunner {
        BatchRunner(
            batch,
            core: core,
            resolve: { [self] item, _ throws(BatchRefusal) in
                if item.url.hasPrefix("!") { throw BatchRefusal("no such place") }
                let fields = try item.requestFields().lines.map { ($0.name, $0.value) }
                return .store(ask(item.url, fields, policy: policy), ScriptedSource(origin))
            },
            observe: observe
        )
    }

    func runner(_ urls: [String], options: BatchOptions = BatchOptions()) -> BatchRunner {
        runner(Batch(urls.map { BatchItem(url: $0) }, options: options))
    }

    func check(_ runner: BatchRunner) async { await onLoop(loops[0]) { loop in await runner.check(on: loop) } }

    func run(_ runner: BatchRunner) async { await onLoop(loops[0]) { loop in await runner.run(on: loop) } }

    /// `GET /a` and the like, sorted: items are under way at the same time.
    var asked: [String] { origin.log.map { "\($0.method.name) \($0.path)" }.sorted() }
}

extension BatchEntry {
    /// One line that tells everything but the request.
    var line: String {
        let parts: [String?] = [
            item.url, state.rawValue, check.map { "check=\($0.rawValue)" }, outcome?.rawValue,
            size.map { "size=\($0)" },
            received > 0 ? "received=\(received)" : nil, status.map { "status=\($0)" }, duplicateOf.map { "of=\($0)" },
            reason.map { "(\($0))" },
        ]
        return parts.compactMap { $0 }.joined(separator: " ")
    }
}

@Suite(.timeLimit(.minutes(5)))
struct BatchTests {
    private static let lasting = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

    /// `/fresh` 5 bytes, `/missing` 404, `/noHEAD` refuses HEAD, `/unknown` says no length, all else 10 bytes.
    private static func answer(_ asked: Asked) -> Reply {
        let isHead = asked.method == .head
        switch asked.path {
        case "/missing":
            let fields = [("Cache-Control", "no-store"), ("Content-Length", "4")]
            return isHead ? .headOnly(404, fields) : .whole(404, [("Cache-Control", "no-store")], Array("none".utf8))
        case "/noHEAD" where isHead: return .headOnly(405, [("Content-Length", "0")])
        case "/unknown" where isHead: return .headOnly(200, lasting)
        case "/unknown": return .pieces(lasting, [.bytes(Array("1234567".utf8)), .end(Fields())])
        case "/unproven" where isHead: return .headOnly(200, lasting)
        case "/unproven":
            let head = ResponseHead(status: 200, reason: "R", fields: Fields(lasting))
            return Reply(steps: [.head(head, .untilClose), .bytes(Array("1234567".utf8)), .unprovenEnd])
        case "/fresh": return .whole(200, lasting)
        default:
            let body = Array("0123456789".utf8)
            return isHead ? .headOnly(200, lasting + [("Content-Length", "10")]) : .whole(200, lasting, body)
        }
    }

    private static let list = ["/a", "/fresh", "/missing", "/noHEAD", "/unknown", "/a", "/b", "!"]

    private static let checked = [
        "/a queued check=sized size=10", "/fresh done check=valid size=5",
        "/missing failed check=failed status=404 (the origin answered 404 R)",
        "/noHEAD queued check=unknown-size (the origin does not answer HEAD (405))",
        "/unknown queued check=unknown-size (the origin says no length)",
        "/a done check=duplicate duplicate of=0", "/b queued check=sized size=10",
        "! failed check=failed (no such place)",
    ]

    private static let downloaded = [
        "/a done check=sized downloaded size=10 received=10 status=200", "/fresh done check=valid size=5",
        "/missing failed check=failed status=404 (the origin answered 404 R)",
        "/noHEAD done check=unknown-size downloaded size=10 received=10 status=200",
        "/unknown done check=unknown-size downloaded size=7 received=7 status=200",
        "/a done check=duplicate duplicate of=0", "/b done check=sized downloaded size=10 received=10 status=200",
        "! failed check=failed (no such place)",
    ]

    @Test("what may have been cut is not stored, and says so")
    func unprovenEnd() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let runner = rig.runner(["/unproven"])
            await rig.run(runner)
            #expect(
                runner.batch.entries.map(\.line) == [
                    "/unproven done not-stored size=7 received=7 status=200 (unproven-end)"
                ]
            )
        }
    }

    @Test("sizes are told apart and nothing is dropped; then what is queued is downloaded, and nothing else")
    func checkThenRun() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            _ = await rig.get("/fresh")
            let runner = rig.runner(Self.list)
            await rig.check(runner)
            #expect(runner.batch.state == .checked)
            #expect(runner.batch.entries.map(\.line) == Self.checked)
            #expect(
                rig.asked == ["GET /fresh", "HEAD /a", "HEAD /b", "HEAD /missing", "HEAD /noHEAD", "HEAD /unknown"]
            )
            var totals = runner.progress.totals
            #expect(totals == runner.batch.totals)
            #expect((totals.items, totals.queued, totals.done, totals.failed) == (8, 4, 2, 2))
            #expect((totals.valid, totals.duplicates, totals.unknownSize) == (1, 1, 2))
            #expect((totals.bytes, totals.received, totals.remaining) == (20, 0, 20))

            await rig.run(runner)
            #expect(runner.batch.state == .failed)
            #expect(runner.batch.entries.map(\.line) == Self.downloaded)
            #expect(
                rig.asked.filter { $0.hasPrefix("GET") }
                    == ["/a", "/b", "/fresh", "/noHEAD", "/unknown"].map { "GET \($0)" }
            )
            totals = runner.progress.totals
            #expect(totals == runner.batch.totals)
            #expect((totals.done, totals.failed, totals.queued, totals.running) == (6, 2, 0, 0))
            #expect((totals.bytes, totals.received, totals.remaining, totals.unknownSize) == (37, 37, 0, 0))
            #expect(runner.batch.firstError?.item.url == "/missing")
        }
    }

    @Test("a second batch with the same list beside it changes no count: neither its own nor what the origin is asked")
    func beside() async throws {
        try await withRig(loops: 2) { rig in
            let valve = Valve()
            rig.origin.answers { asked in
                var reply = Self.answer(asked)
                if asked.method == .get, asked.path != "/fresh" { reply.steps.insert(.valve(valve), at: 0) }
                return reply
            }
            _ = await rig.get("/fresh")
            let (first, second) = (rig.runner(Self.list), rig.runner(Self.list))
            await rig.check(first)
            await rig.check(second)
            let one = await begin(on: rig.loops[0]) { loop in await first.run(on: loop) }
            #expect(await eventually { rig.origin.log.count { $0.method == .get } == 5 })
            let two = await begin(on: rig.loops[1]) { loop in await second.run(on: loop) }
            #expect(await eventually { second.progress.totals.running == 4 })
            valve.open()
            await one.value
            await two.value
            #expect(first.batch.entries.map(\.line) == Self.downloaded)
            #expect(second.batch.entries.map(\.line) == Self.downloaded)
            #expect(first.progress.totals.received == 37 && second.progress.totals.received == 37)
            #expect(rig.origin.log.count { $0.method == .get } == 5)
        }
    }

    @Test("an empty batch is checked and done at once")
    func empty() async throws {
        try await withRig { rig in
            let runner = rig.runner([])
            await rig.check(runner)
            #expect(runner.batch.state == .checked)
            await rig.run(runner)
            #expect(runner.batch.state == .done && runner.progress.totals == BatchTotals())
        }
    }

    @Test(
        "what is stale and unchanged at the origin needs no download; what has changed does, and so does what is forced"
    )
    func staleSizes() async throws {
        try await withRig { rig in
            let body = Mutex(Array("0123456789".utf8))
            rig.origin.answers { asked in
                let bytes = body.withLock { $0 }
                let fields = [("Cache-Control", "max-age=10"), ("ETag", "\"\(bytes.count)\"")]
                let isHead = asked.method == .head
                return isHead
                    ? .headOnly(200, fields + [("Content-Length", "\(bytes.count)")]) : .whole(200, fields, bytes)
            }
            _ = await rig.get("/a")
            rig.clock.advance(seconds: 1000)
            let unchanged = rig.runner(["/a"])
            await rig.check(unchanged)
            #expect(unchanged.batch.entries.map(\.line) == ["/a done check=valid size=10"])
            let forced = rig.runner(Batch([BatchItem(url: "/a", force: true)]))
            await rig.check(forced)
            #expect(forced.batch.entries.map(\.line) == ["/a queued check=sized size=10"])
            body.withLock { $0.append(0x40) }
            let changed = rig.runner(["/a"])
            await rig.check(changed)
            #expect(changed.batch.entries.map(\.line) == ["/a queued check=sized size=11"])
            // Looking for sizes has changed nothing: the stale response is still there and still stale.
            let got = await rig.get("/a", [("Cache-Control", "only-if-cached, max-stale")])
            #expect(got.text == "0123456789")
            await rig.run(changed)
            #expect(
                changed.batch.entries.map(\.line)
                    == ["/a done check=sized downloaded size=11 received=11 status=200"]
            )
        }
    }

    @Test(
        "what a download comes to, by what is stored and what the origin says",
        arguments: [
            ([("Cache-Control", "max-age=6000")], false, "/a done valid size=5 status=200"),
            ([("Cache-Control", "max-age=1"), ("ETag", "\"1\"")], false, "/a done revalidated size=5 status=200"),
            ([("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")], true, "/a done revalidated size=5 status=200"),
            ([("Cache-Control", "max-age=6000")], true, "/a done downloaded size=5 received=5 status=200"),
            ([("Cache-Control", "no-store")], false, "/a done not-stored size=5 received=5 status=200 (no-store)"),
            (
                [("Cache-Control", "max-age=1, stale-while-revalidate=9000"), ("ETag", "\"1\"")], false,
                "/a done revalidated size=5 status=200"
            ),
        ]
    )
    func outcomes(_ fields: [(String, String)], _ force: Bool, _ line: String) async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                if let tag = asked.fields.first(.ifNoneMatch) { return .whole(304, fields + [("ETag", tag)]) }
                return .whole(200, fields)
            }
            _ = await rig.get("/a")
            rig.clock.advance(seconds: 100)
            let runner = rig.runner(
                Batch([BatchItem(url: "/a", force: force)]),
                policy: CachePolicy(revalidate: .conditional)
            )
            await rig.run(runner)
            #expect(runner.batch.entries.map(\.line) == [line])
        }
    }

    @Test("an origin that fails leaves what is stored, and the item has failed")
    func staleStays() async throws {
        try await withRig { rig in
            rig.origin.answers { _ in .whole(200, [("Cache-Control", "max-age=10"), ("ETag", "\"1\"")]) }
            _ = await rig.get("/a")
            rig.clock.advance(seconds: 100)
            rig.origin.answers { _ in .down }
            let runner = rig.runner(["/a", "/b"])
            await rig.run(runner)
            #expect(
                runner.batch.entries.map(\.line) == [
                    "/a failed status=200 (the origin could not be asked, and the stale stored response stays)",
                    "/b failed (refused)",
                ]
            )
            #expect(await rig.get("/a").text == "hello")
        }
    }

    @Test(
        "one after the other, a failure lets the rest go on, stop, or be cancelled",
        arguments: [
            (BatchFailurePolicy.continue, BatchState.failed, "done failed done done"),
            (.stop, .stopped, "done failed queued queued"), (.cancelRest, .failed, "done failed cancelled cancelled"),
        ]
    )
    func failures(_ policy: BatchFailurePolicy, _ end: BatchState, _ states: String) async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let options = BatchOptions(concurrency: 1, onError: policy)
            let runner = rig.runner(["/a", "/missing", "/b", "/c"], options: options)
            await rig.run(runner)
            #expect(runner.batch.state == end)
            #expect(runner.batch.entries.map(\.state.rawValue).joined(separator: " ") == states)
            // Only what did not end well is asked for again.
            let before = rig.origin.count
            rig.origin.answers { _ in .whole() }
            #expect(runner.requeue() == states.split(separator: " ").count { $0 == "failed" || $0 == "cancelled" })
            await rig.run(runner)
            #expect(runner.batch.state == .done)
            #expect(rig.origin.count - before == states.split(separator: " ").count { $0 != "done" })
        }
    }

    @Test("with cancel-rest a failure ends transfers that are under way")
    func cancelRest() async throws {
        try await withRig { rig in
            let (never, fail) = (Valve(), Valve())
            rig.origin.answers { asked in
                if asked.path == "/bad" { return Reply(steps: [.valve(fail)] + Reply.down.steps) }
                return .pieces(length: 2 << 20, [.bytes(Array("half".utf8)), .valve(never), .end(Fields())])
            }
            let runner = rig.runner(["/a", "/bad", "/c"], options: BatchOptions(concurrency: 2, onError: .cancelRest))
            let task = await begin(on: rig.loops[0]) { loop in await runner.run(on: loop) }
            #expect(await eventually { runner.entry(0).received == 4 && rig.origin.count == 2 })
            fail.open()
            await task.value
            #expect(runner.batch.entries.map(\.state) == [.cancelled, .failed, .cancelled])
            #expect(rig.origin.count == 2)
            never.open()
        }
    }

    @Test("at most so many items are under way at a time", arguments: [1, 2, 3])
    func concurrency(_ limit: Int) async throws {
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { _ in .whole(head: valve) }
            let most = Mutex(0)
            let runner = rig.runner((0..<8).map { "/\($0)" }, options: BatchOptions(concurrency: limit))
            let task = await begin(on: rig.loops[0]) { loop in await runner.run(on: loop) }
            #expect(await eventually { rig.origin.active == limit })
            #expect(runner.progress.totals.running == limit)
            most.withLock { $0 = rig.origin.count }
            valve.open()
            await task.value
            #expect(most.withLock { $0 } == limit)
            #expect(runner.batch.state == .done && rig.origin.count == 8)
        }
    }

    @Test("an item that only another variant could answer has failed")
    func otherVariant() async throws {
        try await withRig { rig in
            rig.origin.answers { asked in
                asked.fields.contains("accept-language")
                    ? .whole(200, Self.lasting + [("Vary", "Accept-Language")]) : Reply.down
            }
            var policy = CachePolicy()
            policy.otherVariant = .serve
            _ = await rig.get("/a", [("Accept-Language", "de")], policy: policy)
            #expect(await rig.settle())
            let client = await rig.get("/a", policy: policy)
            #expect(client.status == 200 && client.cache.hasSuffix("detail=other-variant"))
            let runner = rig.runner(Batch([BatchItem(url: "/a")]), policy: policy)
            await rig.run(runner)
            #expect(runner.batch.entries.map(\.state) == [.failed])
        }
    }

    @Test("a body that was cut short is an item that failed; asked again, only the rest of it comes")
    func resume() async throws {
        try await withRig(disk: true, memoryMaxObject: 1 << 16) { rig in
            let body = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let half = body.count / 2
            let fields = Self.lasting + [("Accept-Ranges", "bytes")]
            rig.origin.answers { asked in
                guard asked.fields.contains(.range) else {
                    let steps = [Reply.Step.bytes(Array(body[..<half]))] + Reply.down.steps
                    return .pieces(fields, length: body.count, steps)
                }
                let part = [("Content-Range", "bytes \(half)-\(body.count - 1)/\(body.count)")]
                return .whole(206, fields + part, Array(body[half...]))
            }
            let runner = rig.runner(["/big"])
            await rig.run(runner)
            #expect(runner.batch.state == .failed)
            #expect(
                runner.batch.entries.map(\.line) == [
                    "/big failed size=1048576 received=524288 status=200 (the body ended early: refused)"
                ]
            )
            #expect(await rig.settle())
            #expect(runner.requeue() == 1 && runner.batch.state == .queued)
            await rig.run(runner)
            #expect(runner.batch.state == .done)
            #expect(
                runner.batch.entries.map(\.line) == [
                    "/big done downloaded size=1048576 received=1048576 status=200"
                ]
            )
            #expect(rig.asked == ["GET /big", "GET /big"])
            #expect(rig.origin.log.last?.fields.first(.range)?.hasPrefix("bytes=\(half)-") == true)
            #expect(await rig.settle())
            #expect(await rig.get("/big").body == body)
            #expect(rig.origin.count == 2)
        }
    }

    @Test("cancelling ends the waiting at once and keeps what is done; going on joins what is under way still")
    func cancelAndGoOn() async throws {
        try await withRig { rig in
            let valve = Valve()
            rig.origin.answers { asked in
                guard asked.path == "/slow" else { return .whole() }
                return .pieces(
                    length: 10,
                    [.bytes(Array("12345".utf8)), .valve(valve), .bytes(Array("67890".utf8)), .end(Fields())]
                )
            }
            let runner = rig.runner(["/a", "/slow", "/c"], options: BatchOptions(concurrency: 1))
            let task = await begin(on: rig.loops[0]) { loop in await runner.run(on: loop) }
            #expect(await eventually { runner.entry(1).received == 5 })
            runner.cancel()
            await task.value
            #expect(runner.batch.state == .cancelled)
            #expect(runner.batch.entries.map(\.state) == [.done, .cancelled, .cancelled])
            // What was on its way counts as far as it came.
            let (totals, whole) = (runner.progress.totals, runner.entry(0).received)
            #expect((totals.bytes, totals.received, totals.remaining) == (whole + 5, whole + 5, 0))
            #expect(totals == runner.batch.totals)
            #expect(runner.requeue() == 2)
            let again = await begin(on: rig.loops[0]) { loop in await runner.run(on: loop) }
            #expect(await eventually { runner.entry(1).received == 5 })
            valve.open()
            await again.value
            #expect(runner.batch.state == .done && runner.entry(1).received == 10)
            #expect(rig.asked == ["GET /a", "GET /c", "GET /slow"])
        }
    }

    @Test("a batch that waits is cancelled at once; one that has ended is not cancelled any more")
    func cancelIdle() async throws {
        try await withRig { rig in
            let runner = rig.runner(["/a"])
            runner.cancel()
            #expect(runner.batch.state == .cancelled && runner.entry(0).state == .cancelled)
            await rig.run(runner)
            #expect(runner.batch.state == .cancelled && rig.origin.count == 0)
            runner.requeue()
            await rig.run(runner)
            runner.cancel()
            #expect(runner.batch.state == .done && runner.entry(0).state == .done)
        }
    }

    @Test("a batch that was written down goes on: what was under way is begun anew, what is done stays done")
    func restart() async throws {
        var batch = Batch([BatchItem(url: "/a"), BatchItem(url: "/b", fields: [.init("X-A", "1")], body: [0, 255])])
        batch.state = .running
        batch.entries[0].state = .done
        batch.entries[0].outcome = .downloaded
        batch.entries[1].state = .running
        batch.entries[1].received = 77
        let resumes = batch.resume()
        #expect(resumes && batch.state == .queued)
        #expect(batch.entries.map(\.line) == ["/a done downloaded", "/b queued"])
        #expect(batch.entries[1].item.body == [0, 255])
        batch.state = .done
        let again = batch.resume()
        #expect(!again && batch.state == .done)
    }

    @Test("whatever lengths origins claim, the sums stay sums")
    func hugeSizes() async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=6000"), ("Content-Length", "\(Int64.max)")]
            rig.origin.answers { asked in
                asked.method == .head ? .headOnly(200, fields) : .whole(200, [("Cache-Control", "max-age=6000")])
            }
            let runner = rig.runner(["/a", "/b", "/c"])
            await rig.check(runner)
            #expect(runner.entry(0).size == .max)
            #expect(runner.progress.totals.bytes == 3 << 44 && runner.progress.totals.remaining == 3 << 44)
            await rig.run(runner)
            #expect(runner.progress.totals == runner.batch.totals)
            #expect(runner.progress.totals.bytes == 15 && runner.progress.totals.remaining == 0)
        }
    }

    @Test("a size is judged by the rules of the route: with revalidate never, what is stale is downloaded whole")
    func sizesByPolicy() async throws {
        try await withRig { rig in
            let fields = [("Cache-Control", "max-age=10"), ("ETag", "\"1\"")]
            rig.origin.answers { asked in
                asked.method == .head ? .headOnly(200, fields + [("Content-Length", "5")]) : .whole(200, fields)
            }
            _ = await rig.get("/a")
            rig.clock.advance(seconds: 100)
            for (revalidate, line) in [
                (ValidationMethod.head, "/a done check=valid size=5"), (.never, "/a queued check=sized size=5"),
            ] {
                let runner = rig.runner(Batch([BatchItem(url: "/a")]), policy: CachePolicy(revalidate: revalidate))
                await rig.check(runner)
                #expect(runner.batch.entries.map(\.line) == [line])
            }
        }
    }

    @Test(
        "what has failed while sizes were looked for can be tried again, and the first error is always the first in the list"
    )
    func retryAfterCheck() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let runner = rig.runner(["/a", "/missing", "!", "/b"], options: BatchOptions(concurrency: 1))
            await rig.check(runner)
            #expect(runner.firstError?.item.url == "/missing")
            rig.origin.answers { _ in .whole() }
            #expect(runner.requeue() == 2 && runner.batch.state == .queued)
            #expect(runner.firstError == nil)
            await rig.run(runner)
            #expect(runner.batch.entries.map(\.state) == [.done, .done, .failed, .done])
            #expect(runner.firstError?.item.url == "!" && runner.firstError == runner.batch.firstError)
        }
    }

    @Test("observers hear of every state, item and byte")
    func observing() async throws {
        try await withRig { rig in
            rig.origin.answers(Self.answer)
            let heard = Mutex<[BatchChange]>([])
            let runner = rig.runner(Batch([BatchItem(url: "/a")])) { change in heard.withLock { $0.append(change) } }
            await rig.run(runner)
            let changes = heard.withLock { $0 }
            #expect(changes.first == .state(.running) && changes.last == .state(.done))
            let bytes = changes.reduce(0) { sum, change in
                if case .received(0, let bytes) = change { sum + bytes } else { sum }
            }
            #expect(bytes == 10)
        }
    }
}

@Suite struct BatchStateTests {
    @Test("a batch takes only legal ways")
    func batchStates() {
        let legal: [BatchState: Set<BatchState>] = [
            .queued: [.checking, .running, .cancelled], .checking: [.checked, .cancelled, .queued],
            .checked: [.running, .queued, .cancelled], .running: [.done, .failed, .stopped, .cancelled, .queued],
            .done: [], .failed: [.queued], .stopped: [.queued], .cancelled: [.queued],
        ]
        for state in BatchState.allCases {
            #expect(Set(BatchState.allCases.filter { state.mayBecome($0) }) == legal[state], "\(state)")
        }
    }

    @Test("an item takes only legal ways")
    func entryStates() {
        let legal: [BatchEntryState: Set<BatchEntryState>] = [
            .queued: [.running, .done, .failed, .cancelled], .running: [.queued, .done, .failed, .cancelled],
            .done: [], .failed: [.queued], .cancelled: [.queued],
        ]
        for state in BatchEntryState.allCases {
            #expect(Set(BatchEntryState.allCases.filter { state.mayBecome($0) }) == legal[state], "\(state)")
        }
    }
}
