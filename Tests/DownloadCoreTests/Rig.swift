// A download core on real loops over a scripted origin, and what one question came to.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import Policies
import Synchronization
import TestSupport
import Testing

/// What a client would have got.
struct Got: Sendable {
    var status = 0
    var fields = Fields()
    /// Nil where the answer had no body to read.
    var body: [UInt8]?
    /// Why the body ended early.
    var error: BodyError?
    var length: Int64?
    var age: Int64?
    /// The value of Cache-Status without the name of the cache; ttl is rounded up to hundreds of seconds, and the age
    /// down, because the clock goes on while a test runs.
    var cache = ""
    var failure: FetchError?
    var trailers = Fields()

    var text: String? { body.map { String(decoding: $0, as: UTF8.self) } }
}

let host = "http://origin.test"

/// Nanoseconds that no test takes: what is not to end by itself has them.
let patience: UInt64 = 600_000_000_000

final class Rig: Sendable {
    let loops: [EventLoop]
    let pool: IOPool
    let folder: TemporaryFolder
    let disk: DiskTier?
    let memory: MemoryTier
    let budget: BodyBudget
    let clock = WallClock()
    let core: DownloadCore
    let origin = Origin()
    private let told = Told()

    /// What the core has reported.
    var reports: [String] { told.texts.withLock { $0 } }

    private final class Told: Sendable {
        let texts = Mutex<[String]>([])
    }

    init(
        loops count: Int,
        disk hasDisk: Bool,
        shared: [any ResponseTier] = [],
        memoryMaxObject: Int,
        budget bytes: Int,
        headTimeout: UInt64
    ) async throws {
        loops = try (0..<count).map { try EventLoop.start(index: $0) }
        pool = try IOPool(threads: 2)
        folder = try TemporaryFolder("drydock-download")
        disk =
            hasDisk
            ? try await DiskTier.open(
                path: folder.file("cache"),
                limits: DiskLimits(size: 1 << 30, minFree: 0),
                pool: pool
            ) : nil
        memory = MemoryTier(
            size: 64 << 20,
            maxObject: memoryMaxObject + 4096,
            pins: disk?.invalidations.pins ?? Pins()
        )
        budget = BodyBudget(limit: bytes)
        core = DownloadCore(
            cacheName: "drydock",
            memory: memory,
            memoryMaxObject: memoryMaxObject,
            behind: (disk.map { [$0] } ?? []) + shared,
            diskMaxObject: 64 << 20,
            budget: budget,
            clock: clock,
            headTimeout: headTimeout
        ) { [told] report in told.texts.withLock { $0.append(report.text) } }
    }

    /// Another core with nothing in memory, on a folder of its own, as after a restart.
    func another(on path: String) async throws -> (core: DownloadCore, disk: DiskTier) {
        let limits = DiskLimits(size: 1 << 30, minFree: 0)
        let disk = try await DiskTier.open(path: path, limits: limits, pool: pool)
        let core = DownloadCore(
            cacheName: "drydock",
            memory: MemoryTier(),
            memoryMaxObject: 1 << 20,
            behind: [disk],
            diskMaxObject: 1 << 20,
            budget: budget,
            clock: clock,
            headTimeout: patience
        )
        return (core, disk)
    }

    func ask(
        _ path: String = "/a",
        method: Method = .get,
        _ fields: [(String, String)] = [],
        policy: CachePolicy = CachePolicy(),
        headFormatID: UInt64 = 1,
        collapse: CollapseLimits = CollapseLimits(wait: patience)
    ) -> CacheRequest {
        CacheRequest(
            key: key(path),
            request: RequestHead(method: method, target: path, fields: Fields([("Host", "proxy.test")] + fields)),
            originFields: Fields(fields),
            path: path,
            policy: policy,
            headFormatID: headFormatID,
            collapse: collapse,
            prepare: { StoredResponse.prepare($0, length: $0.bodyLength, via: "1.1 shape\(headFormatID)") }
        )
    }

    func key(_ path: String = "/a") -> CacheKey { CacheKey(service: "s", url: host + path) }

    /// Asks, and reads the body to its end.
    func start(
        _ ask: CacheRequest,
        loop index: Int = 0,
        onInterim: (@Sendable (Int) -> Void)? = nil,
        answered: Valve? = nil,
        reading: Valve? = nil
    ) async -> Task<Got, Never> {
        let (core, origin) = (core, origin)
        return await begin(on: loops[index]) { loop in
            let answer = await core.answer(
                ask,
                from: ScriptedSource(origin),
                onInterim: onInterim.map { told in { told($0.status) } },
                on: loop
            )
            answered?.open()
            return await Self.read(answer, reading, on: loop)
        }
    }

    func get(_ ask: CacheRequest, loop: Int = 0) async -> Got { await start(ask, loop: loop).value }

    func get(_ path: String = "/a", _ fields: [(String, String)] = [], policy: CachePolicy = CachePolicy()) async -> Got
    {
        await get(ask(path, fields, policy: policy))
    }

    /// A request that the origin has to answer, with what its answer does to what is stored.
    /// - Parameter named: the paths that the answer names on the same origin.
    func pass(
        _ method: Method,
        _ path: String = "/a",
        _ fields: [(String, String)] = [],
        named: [String] = [],
        policy: CachePolicy = CachePolicy(),
        onInterim: (@Sendable (Int) -> Void)? = nil,
        loop index: Int = 0
    ) async -> Got {
        let (core, origin) = (core, origin)
        let ask = ask(path, method: method, fields, policy: policy)
        let keys = named.map { key($0) }
        return await onLoop(loops[index]) { loop in
            let request = FetchRequest(method: method, path: path, fields: ask.originFields)
            let answer = await core.pass(
                UncachedRequest(request, ask, url: host + path) { _ in keys },
                from: ScriptedSource(origin),
                onInterim: onInterim.map { told in { told($0.status) } },
                on: loop
            )
            return await Self.read(answer, nil, on: loop)
        }
    }

    func explain(_ ask: CacheRequest) async -> StoredExplanation {
        let core = core
        return await onLoop(loops[0]) { loop in await core.lookup.explain(ask, on: loop) }
    }

    /// Another method, or whatever else passes by.
    func relay(_ method: Method, _ path: String = "/a", loop index: Int = 0) async -> Got {
        let (core, origin) = (core, origin)
        return await onLoop(loops[index]) { loop in
            let request = FetchRequest(method: method, path: path, fields: Fields())
            let answer = await core.forwarder.forward(
                request,
                from: ScriptedSource(origin),
                ForwardReason(.method),
                on: loop
            )
            return await Self.read(answer, nil, on: loop)
        }
    }

    private static func read(_ answer: Answer, _ valve: Valve?, on loop: isolated EventLoop) async -> Got {
        var got = Got(status: answer.head.status, fields: answer.head.fields)
        got.length = answer.length
        got.age = answer.age.map { $0 / 100 * 100 }
        got.failure = answer.failure
        if var status = answer.cacheStatus {
            status.ttl = status.ttl.map { ($0 > 0 ? $0 + 99 : $0) / 100 * 100 }
            got.cache = String(status.value.dropFirst("drydock; ".count))
        }
        guard let reader = answer.reader else { return got }
        while let valve, !valve.isOpen, !Task.isCancelled { try? await loop.sleep(nanoseconds: 1_000_000) }
        var bytes: [UInt8] = []
        do throws(BodyError) {
            while let piece = try await reader.next(maxBytes: 65536, on: loop) {
                let part = try await piece.load(on: loop)
                bytes += part.chunk.array(part.range)
            }
            got.trailers = reader.trailers
        } catch {
            got.error = error
        }
        reader.close()
        got.body = bytes
        return got
    }

    /// What was stored has reached the disk, and no fill is under way.
    func settle() async -> Bool { await eventually { core.fillCount == 0 } }

    func close() {
        for loop in loops { loop.stop() }
        disk?.close()
        pool.stop()
    }
}

/// Runs a test, and sees to it that nothing is left behind: no fill in the table, no fetch, not one byte of the
/// budget but for stored parts.
/// - Parameter shared: tiers behind the disk.
func withRig(
    loops: Int = 1,
    disk: Bool = false,
    shared: [any ResponseTier] = [],
    memoryMaxObject: Int = 8 << 20,
    budget: Int = 64 << 20,
    headTimeout: UInt64 = patience,
    _ test: (Rig) async throws -> Void
) async throws {
    let rig = try await Rig(
        loops: loops,
        disk: disk,
        shared: shared,
        memoryMaxObject: memoryMaxObject,
        budget: budget,
        headTimeout: headTimeout
    )
    defer { rig.close() }
    try await test(rig)
    #expect(await rig.settle(), "\(rig.core.fillCount) fills are left in the table")
    #expect(await eventually { rig.origin.active == 0 }, "\(rig.origin.active) fetches go on")
    let isGivenBack = await eventually { rig.budget.used == rig.core.partialStatistics.heldBytes }
    #expect(isGivenBack, "\(rig.budget.used) bytes of the budget are not given back")
}
