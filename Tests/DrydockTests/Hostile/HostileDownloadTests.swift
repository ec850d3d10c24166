// Downloads by a program that does what it should not: contents that never come, bodies that several read or nobody,
// settings that make no sense, managers that are closed amid everything.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HostileDownloadTests {
    /// Halves of a body, the second one behind a gate.
    private static func halves(_ gate: Gate, of size: Int = 200_000) -> OriginReply {
        OriginReply([
            OriginReply.head(200, fields: [("Content-Length", "\(size)")]), .pattern(size / 2, from: 0), .wait(gate),
        ])
        .then(OriginReply([.pattern(size / 2, from: size / 2)]))
    }

    // MARK: - Bodies

    @Test("A body that several tasks read reaches them whole, each piece once", arguments: [1, 2, 8])
    func severalReaders(tasks: Int) async throws {
        let gate = Gate()
        try await withManager { _ in
            Self.halves(gate)
        } _: { manager, origin async throws in
            let body = try await manager.stream(origin.url()).body
            let began = Counter()
            try await withThrowingTaskGroup(of: [Data].self) { group in
                for _ in 0..<tasks {
                    group.addTask {
                        var pieces: [Data] = []
                        began.add()
                        for try await piece in body { pieces.append(piece) }
                        return pieces
                    }
                }
                #expect(await eventually { began.value == tasks })
                gate.open()
                var counts: [UInt8: Int] = [:]
                for try await pieces in group { for byte in pieces.joined() { counts[byte, default: 0] += 1 } }
                var expected: [UInt8: Int] = [:]
                for byte in Pattern.bytes(0..<200_000) { expected[byte, default: 0] += 1 }
                #expect(counts == expected)
            }
        }
    }

    @Test func whoWaitsForAPieceLeavesWithoutTheOthers() async throws {
        let gate = Gate()
        defer { gate.open() }
        let asked = Counter()
        let body = ResponseBody(expected: nil) { () async -> Data? in
            asked.add()
            guard asked.value == 1 else { return nil }
            await hang(until: gate)
            return Data("hello".utf8)
        }
        let staying = Task { try await body.collect(upTo: 1 << 20) }
        #expect(await eventually { asked.value == 1 })
        // Behind the one that has the turn.
        let leaving = (0..<5).map { _ in Task { try await body.collect(upTo: 1 << 20) } }
        for task in leaving {
            task.cancel()
            await #expect(throws: DownloadError.cancelled) { try await task.value }
        }
        #expect(asked.value == 1)
        gate.open()
        #expect(try await staying.value == Data("hello".utf8))
    }

    @Test func aBodyThatNobodyReadsHoldsUpNobodyElse() async throws {
        let size = 4 << 20
        try await withManager {
            $0.memory = nil
            $0.maximumFetches = 2
            $0.abandonment = .abort
        } _: { request in
            request.target == "/small" ? .answer(to: request, "small") : .pattern(size)
        } _: { manager, origin async throws in
            for round in 0..<10 {
                // The head has come, and with it some bytes; nobody asks for more.
                let response = try await manager.stream(origin.url("/large\(round)"))
                if round % 2 == 0 { for try await piece in response.body where !piece.isEmpty { break } }
                #expect(try await manager.download(origin.url("/small")).text == "small")
            }
            #expect(await eventually { manager.downloadCount == 0 && manager.statistics.running == 0 })
        }
    }

    @Test func whoLeavesTheEventsEarlyLeavesNothingBehind() async throws {
        try await withManager(configure: { $0.abandonment = .abort }) { _ in
            .pattern(1 << 20)
        } _: { manager, origin async throws in
            for stop in 0..<12 {
                var count = 0
                for try await _ in manager.events(for: origin.url("/\(stop)")) {
                    count += 1
                    if count > stop % 4 { break }
                }
            }
            #expect(await eventually { manager.downloadCount == 0 && manager.statistics.running == 0 })
            #expect(try await manager.download(origin.url("/0")).data.count == 1 << 20)
        }
    }

    // MARK: - Contents

    private struct Broken: Error {}

    @Test(
        "A content that never comes, or breaks, ends with its request",
        arguments: ["sequence", "closure", "error", "late error"]
    )
    func contentsThatNeverCome(kind: String) async throws {
        let (gate, begun) = (Gate(), Counter())
        defer { gate.open() }
        try await withManager { request in
            .answer(to: request, "\(request.body.count)")
        } _: { manager, origin async throws in
            let body = RequestBody.stream {
                begun.add()
                if kind == "error" { throw Broken() }
                if kind == "closure" { await hang(until: gate) }
                return AsyncThrowingStream<Data, any Error> { stream in
                    stream.yield(Data("begin".utf8))
                    if kind == "late error" { stream.finish(throwing: Broken()) }
                }
            }
            let request = origin.request("/put", method: .put)
            let task = Task { try await manager.download(request, body: body) }
            #expect(await eventually { begun.value >= 1 })
            if kind == "sequence" || kind == "closure" { task.cancel() }
            let error = await failure { try await task.value }
            switch (kind, error) {
            case ("sequence", .cancelled), ("closure", .cancelled), ("error", .requestBody),
                ("late error", .requestBody):
                break
            default: Issue.record("\(kind): \(error as Any)")
            }
            #expect(await eventually { manager.downloadCount == 0 && manager.statistics.running == 0 })
            #expect(try await manager.download(request, body: Data("whole".utf8)).text == "5")
        }
    }

    @Test func whatIsNoRegularFileIsNoContent() async throws {
        let folder = try TemporaryFolder("drydock-hostile")
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        try await withManager {
            .answer(to: $0, "\($0.body.count)")
        } _: { manager, origin async throws in
            for path in ["pipe", ".", "none"] {
                let body = RequestBody.file(URL(fileURLWithPath: folder.file(path)))
                let error = await failure {
                    try await manager.download(origin.request("/put", method: .put), body: body)
                }
                guard case .requestBody = error else { return #expect(Bool(false), "\(path): \(error as Any)") }
            }
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func whatCannotBeWrittenToIsNoFileForADownload() async throws {
        let folder = try TemporaryFolder("drydock-hostile")
        #expect(mkdir(folder.file("folder"), 0o700) == 0)
        try folder.write("folder/own", "mine")
        try folder.write("file", "mine")
        try await withManager {
            .answer(to: $0, "theirs")
        } _: { manager, origin async throws in
            for path in ["folder", "file/below"] {
                let error = await failure {
                    try await manager.download(origin.url(), to: URL(fileURLWithPath: folder.file(path)))
                }
                switch (path, error) {
                case ("folder", .invalidRequest), ("file/below", .file), ("file/below", .notInPlace): break
                default: Issue.record("\(path): \(error as Any)")
                }
            }
            #expect(readText(folder.file("folder/own")) == "mine" && readText(folder.file("file")) == "mine")
        }
    }

    // MARK: - Settings

    @Test("Settings that make no sense are brought to the nearest that do", arguments: [Int.min, -1, 0])
    func settings(number: Int) async throws {
        try await withManager {
            $0.maximumFetches = number
            $0.threads = number
            $0.maximumRedirects = number
            $0.lifetime = .seconds(Int64(max(number, -1_000_000)))
            $0.lifetimes = [200: .seconds(-5)]
            $0.retry = RetryPolicy(
                count: number,
                delay: .seconds(-1),
                backoff: number,
                jitter: .nan,
                budget: .nan
            )
            $0.breaker = BreakerPolicy(failures: number, window: .seconds(-1), pause: .seconds(-1))
            $0.memory = DownloadConfiguration.MemoryLimits(size: number, count: number, maximumEntrySize: number)
            $0.abandonment = .finishBeyond(.nan)
        } _: {
            .answer(to: $0, "hello")
        } _: { manager, origin async throws in
            for _ in 0..<3 { #expect(try await manager.download(origin.url()).text == "hello") }
            let batch = manager.batch([DownloadBatch.Item(origin.url("/b"))], concurrency: number)
            #expect(try await batch.run().progress.failed == 0)
            let options = DownloadOptions(lifetime: .seconds(-1))
            #expect(try await manager.download(origin.url(), options: options).text == "hello")
        }
    }

    @Test func aBodyHasNoRoomWhereTheLimitIsNegative() async throws {
        try await withManager(configure: { $0.maximumBody = -1 }) {
            .answer(to: $0, "hello")
        } _: { manager, origin async throws in
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error == .tooLarge(limit: -1))
        }
    }

    // MARK: - Ends

    @Test("A manager is closed amid everything, and all of it ends", arguments: 0..<6)
    func closedAmidEverything(round: Int) async throws {
        let gate = Gate()
        defer { gate.open() }
        let folder = try TemporaryFolder("drydock-hostile")
        try await withManager(onDisk: round % 2 == 0, configure: { $0.maximumFetches = 32 }) { request in
            switch request.target.last {
            case "0": return Self.halves(gate)
            case "1":
                _ = gate.wait()
                return .answer(to: request, "late")
            case "2": return .cut
            default: return .answer(to: request, "hello")
            }
        } _: { manager, origin async throws in
            let left = Monitor(Set(0..<120))
            @Sendable func attempt(_ number: Int, _ work: @Sendable () async throws -> Void) async {
                do { try await work() } catch let error as DownloadError {
                    switch error {
                    case .cancelled, .closed, .origin: break
                    default: Issue.record("\(error)")
                    }
                } catch {
                    Issue.record("\(error)")
                }
                left.update { $0.remove(number) }
            }
            for number in 0..<120 {
                Task {
                    let url = origin.url("/\(number)")
                    await attempt(number) {
                        switch number % 7 {
                        case 0: _ = try await manager.download(url)
                        case 1: for try await _ in manager.events(for: url) {}
                        case 2: _ = try await manager.stream(url).body.collect(upTo: 1 << 20)
                        case 3: try await manager.download(url, to: URL(fileURLWithPath: folder.file("\(number)")))
                        case 4: _ = try await manager.batch([DownloadBatch.Item(url)]).run()
                        case 5:
                            let download = manager.start(url)
                            if number % 2 == 0 { download.suspend() }
                            _ = try await download.result
                        default:
                            let body = RequestBody.stream { AsyncStream<Data> { $0.yield(Data("begin".utf8)) } }
                            _ = try await manager.download(origin.request("/\(number)", method: .put), body: body)
                        }
                    }
                }
            }
            #expect(await origin.isAsked(round))
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { await manager.close() } }
            }
            #expect(await eventually { left.read { $0.isEmpty } }, "\(left.read { $0.sorted() })")
            #expect(manager.downloadCount == 0)
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error == .closed)
        }
    }

    @Test func aManagerMayBeClosedFromWithinItsClosures() async throws {
        let reach = Monitor<DownloadManager?>(nil)
        let closed = Counter()
        try await withManager {
            $0.credentials = [
                "http://127.0.0.1": .asking { _ in
                    await reach.read { $0 }?.close()
                    closed.add()
                    return .bearer("good")
                }
            ]
        } _: {
            .answer(401, to: $0, "who are you?")
        } _: { manager, origin async throws in
            reach.update { $0 = manager }
            defer { reach.update { $0 = nil } }
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error == .cancelled)
            #expect(await eventually { closed.value == 1 })
        }
    }

    @Test func aManagerThatNobodyHoldsEnds() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        weak var held: DownloadManager?
        do {
            let manager = makeManager()
            held = manager
            _ = try await manager.download(origin.url())
            // An iteration that has begun, and is let go of.
            var events = manager.events(for: origin.url("/b")).makeAsyncIterator()
            _ = try await events.next()
        }
        #expect(await eventually { held == nil })
    }
}
