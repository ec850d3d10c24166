// Contents that are recorded and replayed: in small parts, whatever their length.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import Foundation
import HTTPWire
import LoopSupport
import Policies
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

/// Takes one piece at a time; loop-bound.
private final class SlowSink: EndSink {
    let heard: Monitor<SourceRun>
    private var now = 0

    init(_ heard: Monitor<SourceRun>) { self.heard = heard }

    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) {
        heard.update { ($0.head, $0.framing) = (head, framing) }
    }
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        now += bytes.count
        heard.update { run in
            run.body += bytes
            run.mostAtOnce = max(run.mostAtOnce, now)
            run.pauses += 1
        }
        return .pause
    }
    func askedForMore() { now = 0 }
    func finished(trailers: Fields) { heard.update { $0.isOver = true } }
    func failed(_ error: FetchError) {
        heard.update {
            $0.error = error
            $0.isOver = true
        }
    }
}

@available(*, unavailable) extension SlowSink: Sendable {}

@Suite(.timeLimit(.minutes(5))) struct RecordingContentTests {
    private static let content = Pattern.bytes(0..<5_000_000)

    private static func key(_ path: String = "/long") -> RecordingKey {
        RecordingKey(.get, path: path, Fields(), content: [], RecordingRules())
    }

    private static func draft(_ folder: RecordingFolder, _ rules: RecordingRules, _ type: String) -> RecordingDraft {
        RecordingDraft(
            key(),
            ResponseHead(status: 200, fields: Fields([("Content-Type", type)])),
            asked: Fields(),
            now: 1_700_000_000,
            RecordingPlan(source: .record, rules: rules, folder: folder, secrets: SecretQuery()),
            nil
        )
    }

    /// Records a content in pieces.
    /// - Returns: the most that the budget counted, and what the folder has.
    private func record(
        _ content: [UInt8],
        _ rules: RecordingRules = RecordingRules(maximumSize: 8 << 20),
        type: String = "application/octet-stream",
        in temporary: TemporaryFolder,
        _ troubles: Monitor<[String]> = Monitor([])
    ) async throws -> (most: Int, recording: Recording?) {
        let pool = try IOPool(threads: 2)
        defer { pool.stop() }
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let folder = RecordingFolder(path: temporary.path + "/api", pool: pool) { text in
            troubles.update { $0.append(text) }
        }
        let draft = Self.draft(folder, rules, type)
        let most = await onLoop(loop) { loop in
            let budget = BodyBudget()
            let room = Monitor(0)
            let hasFailed = Monitor(false)
            let recorded = RecordingContent(
                in: folder,
                atMost: rules.maximumSize,
                budget: budget,
                hasRoom: { room.update { $0 += 1 } },
                failed: { hasFailed.update { $0 = true } },
                on: loop
            )
            var most = 0
            for start in stride(from: 0, to: content.count, by: 100_000) {
                let before = room.read { $0 }
                let piece = Array(content[start..<min(start + 100_000, content.count)])
                let verdict = piece.withUnsafeBytes { recorded.append($0) }
                most = max(most, budget.used)
                if hasFailed.read({ $0 }) { break }
                while verdict == .pause, room.read({ $0 == before }), !hasFailed.read({ $0 }) {
                    try? await loop.sleep(nanoseconds: 1_000_000)
                }
            }
            await recorded.save(draft)
            return most
        }
        return (most, try await folder.whole(Self.key()))
    }

    @Test("a long content is recorded with little of it in memory, and leaves nothing but its two files")
    func recorded() async throws {
        let temporary = try TemporaryFolder()
        let made = try await record(Self.content, in: temporary)
        #expect(made.recording?.content == Self.content)
        #expect(made.most <= 2 << 20, "\(made.most)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.file("api")).count == 2)
    }

    @Test("nobody looks into what cannot have secrets, and what may have some is looked into")
    func lookedInto() throws {
        let temporary = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let folder = RecordingFolder(path: temporary.path, pool: pool) { _ in }
        let long = String(repeating: "a=b&", count: 2000)
        for (type, text, isKept) in [
            ("application/octet-stream", "\u{1}\u{2}{", true), ("image/png", "\u{89}PNG {}", true),
            ("text/plain", "a text, and no more of it = none", true), ("text/html", "<p>", true),
            ("application/octet-stream", " {\"a\":1}", false), ("application/json", "\u{1}", false),
            ("text/plain", long, false), ("text/plain", String(repeating: " ", count: 5000) + "{}", false),
            ("application/xml", "<a/>", false), ("application/x-www-form-urlencoded", "a b", false),
            ("text/plain", "\u{FEFF}{\"a\":1}", false),
        ] {
            let draft = Self.draft(folder, RecordingRules(), type)
            #expect(Array(text.utf8).withUnsafeBytes { draft.keeps($0) } == isKept, "\(type) \(text.prefix(20))")
        }
    }

    @Test("a long text without types keeps nothing that a login has")
    func hidden() async throws {
        let temporary = try TemporaryFolder()
        let filler = String(repeating: "x ", count: 1 << 19)
        let text = Array("{\"filler\":\"\(filler)\",\"access_token\":\"hush\",\"token_type\":\"bearer\"}".utf8)
        let made = try await record(text, in: temporary)
        let content = try #require(made.recording).content
        #expect(String(decoding: content, as: UTF8.self).hasSuffix(#""access_token":"***","token_type":"bearer"}"#))
    }

    @Test("one that has to be looked into is a recording without what is secret in it")
    func redacted() async throws {
        let temporary = try TemporaryFolder()
        let filler = String(repeating: "x", count: 1 << 20)
        let rules = RecordingRules(redactedMembers: [["pin"]], maximumSize: 8 << 20)
        let text = Array("{\"pin\":\"1234\",\"filler\":\"\(filler)\"}".utf8)
        let made = try await record(text, rules, type: "application/json", in: temporary)
        #expect(
            made.recording.map { String(decoding: $0.content, as: UTF8.self) }?.hasPrefix("{\"pin\":\"***\"") == true
        )
        #expect(made.recording?.content.count == text.count - 1)
        // What cannot be looked into is none.
        let troubles = Monitor<[String]>([])
        let other = try TemporaryFolder()
        let broken = try await record(Self.content, rules, type: "application/json", in: other, troubles)
        #expect(broken.recording == nil && troubles.read { $0.count } == 1)
    }

    @Test("a content whose file cannot be written is not recorded, and said to be so")
    func unwritable() async throws {
        let temporary = try TemporaryFolder()
        try temporary.write("api", "a file in the place of the folder")
        let troubles = Monitor<[String]>([])
        let made = try await record(Self.content, in: temporary, troubles)
        #expect(made.recording == nil)
        #expect(troubles.read { $0.first }?.contains("not recorded") == true, "\(troubles.read { $0 })")
    }

    /// Replays a recording to a sink that holds back after each piece.
    private func replay(
        _ fields: [(String, String)] = [],
        cut: Bool = false,
        method: HTTPWire.Method = .get
    ) async throws -> SourceRun {
        let temporary = try TemporaryFolder()
        let pool = try IOPool(threads: 2)
        defer { pool.stop() }
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let folder = RecordingFolder(path: temporary.path, pool: pool) { _ in }
        let recording = Self.draft(folder, RecordingRules(), "text/plain").recording(Self.content) { _ in }
        #expect(await folder.save(try #require(recording)))
        let found = try #require(await folder.find(Self.key(), Fields()))
        if cut,
            let name = try FileManager.default.contentsOfDirectory(atPath: temporary.path).first(where: {
                !$0.hasSuffix(".json")
            })
        {
            #expect(truncate(temporary.file(name), 1_000_000) == 0)
        }
        let heard = Monitor(SourceRun())
        await onLoop(loop) { loop in
            let sink = SlowSink(heard)
            let request = RequestHead(method: method, target: "/long", fields: Fields(fields))
            let fetch = ReplayedFetch(found, request, now: 1_700_000_001, sink: sink, on: loop)
            #expect(fetch.isAtHand)
            let run = Task.immediate(executorPreference: loop.taskExecutor) { await fetch.run(on: loop) }
            var pauses = 0
            for _ in 0..<1_000_000 where !heard.read({ $0.isOver }) {
                if heard.read({ $0.pauses > pauses }) {
                    pauses += 1
                    sink.askedForMore()
                    fetch.resume()
                }
                await Task.yield()
                try? await loop.sleep(nanoseconds: 100_000)
            }
            await run.value
        }
        return heard.read { $0 }
    }

    @Test("a replay gives a slow sink one piece at a time")
    func replayed() async throws {
        let run = try await replay()
        #expect(run.error == nil && run.isOver && run.framing == .length(UInt64(Self.content.count)))
        #expect(run.body == Self.content && run.mostAtOnce <= 64 << 10)
        #expect(run.field("Content-Length") == "\(Self.content.count)")
        let part = try await replay([("Range", "bytes=1000000-2999999")])
        #expect(part.status == 206 && part.body == Array(Self.content[1_000_000..<3_000_000]))
        let head = try await replay(method: .head)
        #expect(head.isOver && head.body.isEmpty && head.field("Content-Length") == "\(Self.content.count)")
    }

    @Test("a content that is shorter than it was fails, and is never taken for the whole")
    func cut() async throws {
        let run = try await replay(cut: true)
        guard case .unrecorded(let message)? = run.error else { return #expect(Bool(false), "\(run.body.count)") }
        #expect(message.contains("GET /long") && run.body.count <= 1_000_000)
    }

    @Test("all answers of a large demo file are sent from its own bytes; those of small ones are counted")
    func demoFiles() throws {
        let budget = BodyBudget()
        let large = DemoFile(path: "a", bytes: Self.content, contentType: "b")
        let bodies = (0..<60).map { _ in large.body(budget) }
        #expect(budget.used == 0)
        for body in bodies {
            let chunk = try #require(body.wholeChunk)
            #expect(chunk.bytes.baseAddress == large.large?.baseAddress && chunk.file === large.memory)
            #expect(body.knownLength == Int64(Self.content.count))
        }
        #expect(large.memory != nil && large.bytes == Self.content && large.count == Self.content.count)
        #expect(bodies[0].wholeChunk.map { Array($0.bytes) } == Self.content)
        let small = DemoFile(path: "a", bytes: [1, 2, 3], contentType: "b")
        let body = small.body(budget)
        #expect(budget.used == 3 && body.wholeChunk.map { Array($0.bytes) } == [1, 2, 3] && small.bytes == [1, 2, 3])
    }
}
