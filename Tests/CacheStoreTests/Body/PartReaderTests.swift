// Readers of a part of a body, and of several things one after the other.

import EventLoop
import Glibc
import LoopSupport
import StoreSupport
import Testing

@testable import CacheStore

@Suite(.timeLimit(.minutes(5))) struct PartReaderTests {
    private let length = 1_000_000

    /// The bytes that a reader gives, and how many of its pieces were pieces of a file.
    private static func read(
        _ reader: BodyReader,
        on loop: isolated EventLoop
    ) async -> (bytes: [UInt8], files: Int, error: BodyError?) {
        var bytes: [UInt8] = []
        var files = 0
        do throws(BodyError) {
            while let piece = try await reader.next(maxBytes: 100_000, on: loop) {
                if case .file = piece { files += 1 }
                let part = try await piece.load(on: loop)
                bytes += part.chunk.array(part.range)
            }
        } catch {
            return (bytes, files, error)
        }
        return (bytes, files, nil)
    }

    private static func part(_ body: Body, _ range: Range<Int>, on loop: EventLoop) async -> [UInt8]? {
        await onLoop(loop) { loop in
            guard let reader = body.makeReader(Int64(range.lowerBound)..<Int64(range.upperBound), on: loop) else {
                return nil
            }
            let got = await Self.read(reader, on: loop)
            return got.error == nil ? got.bytes : nil
        }
    }

    static let ranges: [Range<Int>] = [
        0..<1, 0..<1_000_000, 999_999..<1_000_000, 262_143..<262_145, 262_144..<524_288, 5..<5, 300_000..<700_001,
    ]

    @Test(arguments: ranges)
    func `a part of a chunk`(range: Range<Int>) async throws {
        try await withPool { _, loop in
            let bytes = pattern(length)
            #expect(await Self.part(.complete(bytes), range, on: loop) == Array(bytes[range]))
        }
    }

    /// A body in a file, of which each block is verified before it is read.
    /// - Parameter damaged: where a byte of the file is another one; nil for a file that is whole.
    private static func file(_ bytes: [UInt8], damaged: Int? = nil, _ pool: IOPool) throws -> Body {
        let folder = Folder()
        var (written, sums) = (bytes, BlockSums())
        bytes.withUnsafeBytes { sums.update($0) }
        if let damaged { written[damaged] ^= 1 }
        overwrite("\(folder.path)/body", [UInt8](repeating: 0, count: 4096) + written)
        let verification = SharedFile.Verification(
            bodyOffset: 4096,
            bodyLength: Int64(bytes.count),
            sums: sums.sums,
            onDamage: { _ in },
            onVerified: {}
        )
        // It stays readable when its folder is gone.
        let descriptor = open("\(folder.path)/body", O_RDONLY)
        let file = SharedFile(descriptor: descriptor, pool: pool, calls: .real, verification: verification)
        return .file(file, offset: 4096, length: Int64(bytes.count))
    }

    @Test(arguments: ranges)
    func `a part of a file, block by block`(range: Range<Int>) async throws {
        try await withPool { pool, loop in
            let bytes = pattern(length)
            let body = try Self.file(bytes, pool)
            #expect(await Self.part(body, range, on: loop) == Array(bytes[range]))
        }
    }

    @Test func `only the blocks of a part are verified`() async throws {
        try await withPool { pool, loop in
            let bytes = pattern(length)
            // In the third block.
            let body = try Self.file(bytes, damaged: 600_000, pool)
            #expect(await Self.part(body, 300_000..<500_000, on: loop) == Array(bytes[300_000..<500_000]))
            #expect(await Self.part(body, 500_000..<530_000, on: loop) == nil)
        }
    }

    @Test(arguments: [(true, 40_000), (false, 40_000), (true, 900_000), (false, 900_000)])
    func `a part of what still grows ends with its last byte`(spills: Bool, start: Int) async throws {
        let folder = Folder()
        try await withPool { pool, loop in
            let budget = BodyBudget()
            let spill = spills ? SpillFile.unlimited("\(folder.path)/spill", pool: pool) : nil
            let options = GrowingBodyOptions(window: 128 * 1024, spill: spill, budget: budget)
            let got = await onLoop(loop) { loop in
                let (body, writer) = Body.growing(options, expectedLength: 1_000_000, on: loop)
                let reader = body.makeReader(Int64(start)..<Int64(start + 50_000), on: loop)
                let pump = Pump(writer, total: 1_000_000, stopAt: 980_000)
                pump.run()
                guard let reader else { return (bytes: [UInt8](), files: 0, error: BodyError.tooSlow as BodyError?) }
                defer { reader.close() }
                return await Self.read(reader, on: loop)
            }
            #expect(got.bytes == Array(pattern(start + 50_000)[start...]) && got.error == nil)
        }
    }

    @Test func `who waits far ahead makes nobody else slow`() {
        var state = GrowingBodyState(window: 65536, spills: false, keepsStart: true)
        let near = state.join()
        let far = state.join()
        state.readers[far].position = 1 << 40
        let chunk = Chunk(capacity: 1000)
        state.append(1000, in: chunk)
        state.advance(near, by: 1000)
        let isLagging = state.cutLaggards(now: 1, limit: 0)
        #expect(!isLagging)
        #expect(!state.readers[near].isCut && !state.readers[far].isCut)
    }

    /// Serves holes from a table, as a fetch would.
    private final class Table: PartSource {
        var asked: [Range<Int64>] = []
        private let bytes: [UInt8]

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        func readers(
            for range: Range<Int64>,
            on loop: isolated EventLoop
        ) async throws(BodyError) -> [BodySequence.Part] {
            asked.append(range)
            if range.lowerBound > 800 { throw .truncated }
            // Half of it at once, the rest as another hole.
            let middle = range.count > 10 ? range.lowerBound + 10 : range.upperBound
            let part = Body.complete(Array(bytes[Int(range.lowerBound)..<Int(middle)])).makeReader(on: loop)
            let rest = middle..<range.upperBound
            return (part.map { [.reader($0)] } ?? []) + (rest.isEmpty ? [] : [.hole(rest, self)])
        }
    }

    @Test func `a sequence reads its parts in order and asks for holes when it comes to them`() async throws {
        try await withPool { _, loop in
            let result = await onLoop(loop) { loop -> (Bool, [Range<Int64>], Bool, BodyError?) in
                let bytes = pattern(1000)
                let table = Table(bytes)
                let whole = Body.complete(bytes)
                guard let first = whole.makeReader(5..<100, on: loop), let last = whole.makeReader(115..<300, on: loop)
                else { return (false, [], false, nil) }
                let reader = BodyReader(
                    BodySequence([.reader(first), .hole(100..<115, table), .reader(last), .hole(900..<901, table)]),
                    on: loop
                )
                let isReady = if case .piece = reader.nextIfReady(maxBytes: 10) { true } else { false }
                let got = await Self.read(reader, on: loop)
                reader.close()
                let isClosed = if case .failed(.cancelled) = reader.nextIfReady(maxBytes: 1) { true } else { false }
                return (isReady && got.bytes == Array(bytes[15..<300]), table.asked, isClosed, got.error)
            }
            #expect(result.0 && result.2 && result.3 == .truncated)
            #expect(result.1 == [100..<115, 110..<115, 900..<901])
        }
    }
}
