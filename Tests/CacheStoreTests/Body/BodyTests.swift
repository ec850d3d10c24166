// Bodies while they grow: windows, files behind them, pace, ends.

import EventLoop
import Glibc
import LoopSupport
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct BodyTests {
    let budget = BodyBudget()
    let folder = Folder()

    private func withLoops(_ count: Int, _ body: ([EventLoop], IOPool) async throws -> Void) async throws {
        let loops = try (0..<count).map { try EventLoop.start(index: $0) }
        let pool = try IOPool(threads: 2)
        defer {
            for loop in loops { loop.stop() }
            pool.stop()
        }
        try await body(loops, pool)
    }

    /// Makes a body on `loop`, lets readers join, then writes it.
    private func fill(
        _ options: GrowingBodyOptions,
        total: Int,
        stopAt: Int? = nil,
        on loop: EventLoop,
        expectedLength: Int64? = nil,
        started: @escaping @Sendable (Body) -> Void
    ) async {
        await onLoop(loop) { loop in
            let (body, writer) = Body.growing(options, expectedLength: expectedLength, on: loop)
            started(body)
            let pump = Pump(writer, total: total, stopAt: stopAt)
            await pump.finish(on: loop)
        }
    }

    @Test(arguments: [(65_536, true, true), (200_000, false, true), (700_000, true, true), (65_535, true, false)])
    func `a large body that is kept lies in a file in memory`(size: Int, hasLength: Bool, isInFile: Bool) async throws {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(window: 1 << 20, budget: budget)
            let whole = Mutex<Body?>(nil)
            let length = hasLength ? Int64(size) : nil
            await fill(options, total: size, on: loops[0], expectedLength: length) { body in
                whole.withLock { $0 = body }
            }
            let kept = whole.withLock { $0?.inMemory()?.wholeChunk }
            let chunk = try #require(kept)
            #expect(chunk.array(0..<size) == pattern(size))
            #expect((chunk.file != nil) == isInFile)
            guard let file = chunk.file else { return }
            var bytes = [UInt8](repeating: 0, count: size + 1)
            #expect(pread(file.descriptor, &bytes, bytes.count, 0) == size)
            #expect(Array(bytes[..<size]) == pattern(size))
        }
    }

    /// In steps of 64 KiB, as they come.
    @Test(arguments: [
        (1 << 20, true, true), (700_001, true, true), (1 << 20, false, false), ((1 << 20) + 2, true, false),
    ])
    func `what is kept lies in files while it comes`(size: Int, hasLength: Bool, isInFiles: Bool) async throws {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(window: (1 << 20) + 1, budget: budget)
            await onLoop(loops[0]) { [budget] loop in
                let (body, writer) = Body.growing(options, expectedLength: hasLength ? Int64(size) : nil, on: loop)
                guard let reader = body.makeReader(on: loop) else {
                    Issue.record("no reader")
                    return
                }
                var read: [UInt8] = []
                for start in stride(from: 0, to: size, by: 65_536) {
                    let part = pattern(size)[start..<min(size, start + 65_536)]
                    let verdict = part.withUnsafeBytes(writer.append)
                    #expect(verdict == .continue || !isInFiles)
                    while case .piece(.bytes(let chunk, let range)) = reader.nextIfReady(maxBytes: 1 << 20) {
                        #expect((chunk.file != nil) == isInFiles)
                        // No more is taken than has come.
                        #expect(chunk.capacity <= max(65_536, start, size - start))
                        read += chunk.array(range)
                        guard let file = chunk.file else { continue }
                        var bytes = [UInt8](repeating: 0, count: range.count)
                        #expect(
                            pread(file.descriptor, &bytes, bytes.count, Int(chunk.fileOffset(range))) == range.count
                        )
                        let isSame = bytes == chunk.array(range)
                        #expect(isSame)
                    }
                }
                writer.finish()
                let isEqual = read == pattern(size)
                #expect(isEqual)
                guard isInFiles else { return }
                #expect(budget.used == size)
                let isKept = body.inMemory()?.wholeChunk?.array(0..<size) == read
                #expect(isKept)
            }
        }
    }

    @Test(arguments: [true, false])
    func `readers at different speeds on different loops get equal bytes`(spills: Bool) async throws {
        let total = 1024 * 1024 + 77
        try await withLoops(3) { loops, pool in
            let spill = spills ? SpillFile.unlimited("\(folder.path)/spill", pool: pool) : nil
            let options = GrowingBodyOptions(window: 128 * 1024, spill: spill, budget: budget)
            let results = await withTaskGroup(of: ReadResult.self) { group in
                let (readers, handOut) = AsyncStream<Body>.makeStream()
                group.addTask {
                    await fill(options, total: total, on: loops[0]) { body in
                        handOut.yield(body)
                        handOut.finish()
                    }
                    return ReadResult(count: total)
                }
                for await body in readers {
                    let speeds: [(Int, UInt64)] = [(1 << 20, 0), (7919, 0), (65536, 200_000), (1500, 0)]
                    for (number, (size, delay)) in speeds.enumerated() {
                        group.addTask {
                            await onLoop(loops[number % 3]) { loop in
                                guard let reader = body.makeReader(on: loop) else { return ReadResult() }
                                return await readAll(reader, maxBytes: size, delay: delay, on: loop)
                            }
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count == 5)
            for result in results {
                #expect(result.wrongAt == nil)
                #expect(result.error == nil)
            }
            // Without a file, whoever joined too late has got no reader at all; the rest have all bytes.
            if spills { #expect(results.allSatisfy { $0.count == total }) }
        }
        #expect(budget.used == 0)
    }

    @Test func `a late reader joins from the file`() async throws {
        let total = 2 * 1024 * 1024
        try await withLoops(1) { loops, pool in
            let options = GrowingBodyOptions(
                window: 64 * 1024,
                spill: .unlimited("\(folder.path)/spill", pool: pool),
                budget: budget
            )
            let kept = Mutex<Body?>(nil)
            await fill(options, total: total, on: loops[0]) { body in kept.withLock { $0 = body } }
            let body = try #require(kept.withLock { $0 })
            #expect(body.end == .complete(length: Int64(total)))
            #expect(body.heldBytes < total / 2)
            let result = try #require(await readAll(body, on: loops[0]))
            #expect(result.count == total)
            #expect(result.wrongAt == nil)
            #expect(result.filePieces > 0)
        }
    }

    @Test func `without a file nobody joins once byte 0 has left`() async throws {
        try await withLoops(1) { loops, _ in
            await onLoop(loops[0]) { [budget] loop in
                let (body, writer) = Body.growing(GrowingBodyOptions(window: 64 * 1024, budget: budget), on: loop)
                let reader = body.makeReader(on: loop)
                let pump = Pump(writer, total: 512 * 1024)
                #expect(!pump.run())
                #expect(body.makeReader(on: loop) != nil)
                let piece = try? await reader?.next(maxBytes: 1 << 20, on: loop)
                #expect(piece?.count ?? 0 > 0)
                while case .piece = reader?.nextIfReady(maxBytes: 1 << 20) {}
                // The second reader has closed itself; the first has read what there is.
                #expect(await settled({ pump.sent > 80 * 1024 }, on: loop))
                #expect(body.makeReader(on: loop) == nil)
            }
        }
    }

    @Test func `a lone slow reader holds the origin back, not memory`() async throws {
        let total = 2 * 1024 * 1024
        try await withLoops(1) { loops, _ in
            await onLoop(loops[0]) { [budget] loop in
                let options = GrowingBodyOptions(window: 256 * 1024, budget: budget, lagLimit: 1)
                let (body, writer) = Body.growing(options, on: loop)
                guard let reader = body.makeReader(on: loop) else { return }
                let pump = Pump(writer, total: total)
                pump.run()
                var most = 0
                var count = 0
                while let piece = try? await reader.next(maxBytes: 32 * 1024, on: loop) {
                    most = max(most, body.heldBytes)
                    count += piece.count
                    try? await loop.sleep(nanoseconds: 100_000)
                }
                #expect(count == total)
                #expect(most <= 256 * 1024 + 16 * 1024)
                #expect(pump.pauses > 4)
            }
        }
    }

    @Test func `a body whose readers are all suspended wants nothing, until one goes on or another comes`() async throws
    {
        try await withLoops(1) { loops, _ in
            await onLoop(loops[0]) { [budget] loop in
                let options = GrowingBodyOptions(window: 64 * 1024, budget: budget)
                let (body, writer) = Body.growing(options, expectedLength: 10, on: loop)
                var heard: [String] = []
                writer.onSuspended = { heard.append("stop") }
                writer.onDrain = { heard.append("go on") }
                func append(_ count: Int) -> WriteVerdict {
                    [UInt8](repeating: 1, count: count).withUnsafeBytes { writer.append($0) }
                }
                guard let one = body.makeReader(on: loop), let two = body.makeReader(on: loop) else {
                    Issue.record("there are no readers")
                    return
                }
                one.isSuspended = true
                #expect(append(1) == .continue, "the other one reads")
                two.isSuspended = true
                #expect(await settled({ heard == ["stop"] }, on: loop))
                #expect(append(1) == .pause, "what was on its way is taken")
                one.isSuspended = false
                #expect(await settled({ heard == ["stop", "go on"] }, on: loop))
                #expect(append(1) == .continue)
                one.isSuspended = true
                #expect(await settled({ heard.count == 3 }, on: loop))
                let three = body.makeReader(on: loop)
                #expect(await settled({ heard.count == 4 }, on: loop))
                three?.close()
                #expect(append(1) == .pause, "only suspended ones are left")
                one.close()
                two.close()
                #expect(await settled({ heard.last == "go on" }, on: loop))
                writer.fail(.abandoned)
            }
        }
    }

    @Test func `a stalled reader is cut and the others get everything`() async throws {
        let total = 1024 * 1024
        try await withLoops(2) { loops, _ in
            let options = GrowingBodyOptions(window: 128 * 1024, budget: budget, lagLimit: 20_000_000)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                let stalled = body.makeReader(on: loop)
                let other = await begin(on: loops[1]) { loop -> ReadResult? in
                    guard let reader = body.makeReader(on: loop) else { return nil }
                    return await readAll(reader, on: loop)
                }
                let pump = Pump(writer, total: total)
                await pump.finish(on: loop)
                let result = await other.value
                #expect(result?.count == total)
                #expect(result?.wrongAt == nil)
                await #expect(throws: BodyError.tooSlow) {
                    _ = try await stalled?.next(maxBytes: 1024, on: loop)
                }
            }
        }
    }

    @Test(arguments: [true, false])
    func `a cut fill gives what came, then fails, and nobody joins it`(spills: Bool) async throws {
        try await withLoops(1) { loops, pool in
            let spill = spills ? SpillFile.unlimited("\(folder.path)/cut", pool: pool) : nil
            let options = GrowingBodyOptions(window: 1024 * 1024, spill: spill, budget: budget)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                guard let reader = body.makeReader(on: loop) else { return }
                let pump = Pump(writer, total: 1 << 20, stopAt: 160 * 1024)
                await pump.finish(on: loop)
                let result = await readAll(reader, on: loop)
                #expect(result == ReadResult(count: 160 * 1024, error: .source("cut")))
                #expect(body.makeReader(on: loop) == nil)
                #expect(body.inMemory() == nil)
            }
        }
    }

    @Test(arguments: [(100, 99), (100, 101)])
    func `a body of another than its declared length is truncated, not complete`(declared: Int, sent: Int) async throws
    {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(budget: budget)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, expectedLength: Int64(declared), on: loop)
                Pump(writer, total: sent).run()
                #expect(body.end == .failed(.truncated))
            }
        }
    }

    @Test func `a writer that goes away fails its body`() async throws {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(budget: budget)
            await onLoop(loops[0]) { loop in
                let body = Body.growing(options, on: loop).body
                #expect(body.end == .failed(.abandoned))
            }
        }
    }

    @Test func `a waiting reader is cancelled`() async throws {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(budget: budget)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                let outcome = Mutex<BodyError?>(nil)
                let task = Task.immediate(executorPreference: loop.taskExecutor) {
                    guard let reader = body.makeReader(on: loop) else { return }
                    do throws(BodyError) { _ = try await reader.next(maxBytes: 1, on: loop) } catch {
                        outcome.withLock { $0 = error }
                    }
                }
                task.cancel()
                await task.value
                #expect(outcome.withLock { $0 } == .cancelled)
                #expect(body.readerCount == 0)
                writer.finish()
            }
        }
    }

    @Test(arguments: [true, false])
    func `when the last reader leaves, only a fill that is not stored is given up`(spills: Bool) async throws {
        try await withLoops(1) { loops, pool in
            let spill = spills ? SpillFile.unlimited("\(folder.path)/left", pool: pool) : nil
            let options = GrowingBodyOptions(spill: spill, budget: budget)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                let told = Flag()
                writer.onAbandoned = { told.isSet = true }
                body.makeReader(on: loop)?.close()
                if spills {
                    // Jobs of the loop come in their order.
                    for _ in 0..<3 { await nextTurn(of: loop) }
                    #expect(!told.isSet)
                } else {
                    #expect(await settled({ told.isSet }, on: loop))
                }
                writer.finish()
            }
        }
    }

    @Test func `a file that cannot be written costs the storing, never the response`() async throws {
        let total = 1024 * 1024
        try await withLoops(1) { loops, pool in
            let options = GrowingBodyOptions(
                window: 64 * 1024,
                spill: .unlimited("\(folder.path)/missing/spill", pool: pool),
                budget: budget
            )
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                guard let reader = body.makeReader(on: loop) else { return }
                let pump = Pump(writer, total: total)
                pump.run()
                let result = await readAll(reader, on: loop)
                #expect(result.count == total)
                #expect(result.wrongAt == nil)
                guard case .growing(let growing) = body.source else { return }
                await #expect(throws: BodyError.self) { try await growing.flush() }
            }
        }
    }

    @Test func `a complete body in memory becomes one chunk`() async throws {
        try await withLoops(1) { loops, _ in
            let options = GrowingBodyOptions(budget: budget)
            await onLoop(loops[0]) { loop in
                let (body, writer) = Body.growing(options, on: loop)
                let pump = Pump(writer, total: 100_001, step: 999)
                #expect(pump.run())
                let chunk = body.inMemory()?.wholeChunk
                #expect(chunk?.array(0..<(chunk?.capacity ?? 0)) == pattern(100_001))
            }
        }
    }
}

/// Loop-bound.
final class Flag { var isSet = false }

/// Waits until `condition` holds, for some minutes at most.
func settled(_ condition: () -> Bool, on loop: isolated EventLoop) async -> Bool {
    for _ in 0..<600_000 {
        if condition() { return true }
        try? await loop.sleep(nanoseconds: 200_000)
    }
    return condition()
}

/// Returns when the jobs have run that were submitted to the loop before.
private func nextTurn(of loop: isolated EventLoop) async {
    await withUnsafeContinuation { waiter in loop.submit { _ in waiter.resume() } }
}
