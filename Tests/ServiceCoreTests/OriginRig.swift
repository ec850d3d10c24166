// A service over a scripted origin on loopback, and what its fetches come to.

import Content
import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import Policies
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

struct Heard: Sendable {
    var status = 0
    var body: [UInt8] = []
    var error: FetchError?
    var isOver = false
    var heads = 0
}

/// Writes down what a fetch came to; loop-bound.
private final class Sink: EndSink {
    let heard: Monitor<Heard>

    init(_ heard: Monitor<Heard>) { self.heard = heard }

    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) {
        heard.update {
            $0.status = head.status
            $0.heads += 1
        }
    }
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        heard.update { $0.body += Array(bytes) }
        return .continue
    }
    func finished(trailers: Fields) { heard.update { $0.isOver = true } }
    func failed(_ error: FetchError) {
        heard.update {
            $0.error = error
            $0.isOver = true
        }
    }
}

@available(*, unavailable) extension Sink: Sendable {}

/// What lives on the loop.
private final class Inside: @unchecked Sendable {  // used on the loop only
    var client: UpstreamClient?
    var handles: [any FetchHandle] = []
    var calls: CallsUnderWay?
}

/// A service over a real origin on loopback.
final class OriginRig: Sendable {
    let loop: EventLoop
    let pool: IOPool
    let origin: ScriptedOrigin
    let runtime: ServiceRuntime
    let reports = Monitor<[ServiceReport]>([])
    /// Monotonic nanoseconds of breakers and budgets.
    let now = Monitor<UInt64>(1_000_000_000)
    /// Told of the calls, where somebody wants that.
    let events: EventHub?
    private let limits: AdmissionLimits
    private let retry: RetryPolicy
    private let expect: ContentExpectation
    private let breaker: BreakerPolicy?
    /// How often another attempt may be made.
    private let attempts: Monitor<Int>
    private let inside = Inside()

    /// - Parameter expect: what bodies must be.
    init(
        _ limits: AdmissionLimits = AdmissionLimits(),
        retry: RetryPolicy = RetryPolicy(),
        expect: ContentExpectation = .anything,
        breaker: BreakerPolicy? = nil,
        attempts: Int = .max,
        events: EventHub? = nil,
        _ handler: @escaping ScriptedOrigin.Handler
    ) async throws {
        loop = try EventLoop.start()
        pool = try IOPool(threads: 2)
        origin = try ScriptedOrigin(handler)
        runtime = ServiceRuntime(
            name: "s",
            limits: limits,
            now: { [now] in now.read { $0 } },
            onReport: { [reports] report in reports.update { $0.append(report) } }
        )
        self.limits = limits
        self.retry = retry
        self.expect = expect
        self.breaker = breaker
        self.attempts = Monitor(attempts)
        self.events = events
        let (inside, pool) = (inside, pool)
        await begin(on: loop) { loop in
            inside.calls = events.map { .make($0, on: loop) }
            let resolver = Resolver(pool: pool, lookup: { SystemResolver.lookup($0, port: $1) })
            inside.client = UpstreamClient(on: loop, resolver: resolver)
        }.value
    }

    /// Starts a fetch; throws what the source throws.
    /// - Parameter isDirect: without a wait, as a request that is only passed on.
    func start(
        _ path: String = "/",
        _ fields: [(String, String)] = [],
        method: HTTPWire.Method = .get,
        content: [UInt8]? = nil,
        clientHost: String? = nil,
        rules: FieldRules = FieldRules(),
        authorization: String? = nil,
        preservesHost: Bool = false,
        isDirect: Bool = false
    ) async -> Task<Result<Monitor<Heard>, FetchError>, Never> {
        let address = OriginAddress(scheme: "http", host: "127.0.0.1", port: UInt16(origin.port), basePath: "")
        let plan = RequestPlan(rules: rules, timeouts: Timeouts())
        let service = ServicePlan(
            name: "s",
            origin: address,
            preservesHost: preservesHost,
            request: plan,
            authorization: authorization,
            admission: limits,
            breaker: breaker
        )
        let (inside, runtime, retry, expect, attempts) = (inside, runtime, retry, expect, attempts)
        return await begin(on: loop) { loop in
            guard let client = inside.client else { return .failure(.cancelled) }
            let destination = CallDestination(service: "s", endpoint: "end", root: address.root, secrets: SecretQuery())
            let origin = OriginSource(
                service: service,
                origin: address,
                plan: plan,
                runtime: runtime,
                client: client,
                listed: inside.calls.map { ($0, destination) }
            )
            var source: any FetchSource = origin
            if retry.count > 0 {
                let resilience = runtime.resilience
                source = RetryingSource(
                    origin,
                    retry,
                    expect: expect,
                    resilience: resilience,
                    clock: WallClock(),
                    mayAsk: {
                        attempts.update { left in
                            left -= 1
                            return left >= 0
                        }
                    }
                )
            }
            if let calls = inside.calls, !isDirect { source = CallSource(source, destination, calls, nil) }
            let request = FetchRequest(
                method: method,
                path: path,
                fields: Fields(fields),
                clientHost: clientHost,
                framing: content.map { .length(UInt64($0.count)) } ?? .none,
                body: content.map { ContentSource($0) }
            )
            let heard = Monitor(Heard())
            if isDirect {
                guard let handle = source.startWithoutWaiting(request, sink: Sink(heard)) else {
                    return .failure(.cancelled)
                }
                inside.handles.append(handle)
                return .success(heard)
            }
            do throws(FetchError) {
                inside.handles.append(try await source.start(request, sink: Sink(heard), on: loop))
                return .success(heard)
            } catch {
                return .failure(error)
            }
        }
    }

    /// Runs a fetch to its end.
    func get(
        _ path: String = "/",
        _ fields: [(String, String)] = [],
        method: HTTPWire.Method = .get,
        content: [UInt8]? = nil,
        clientHost: String? = nil,
        rules: FieldRules = FieldRules(),
        authorization: String? = nil,
        preservesHost: Bool = false,
        isDirect: Bool = false
    ) async throws -> Heard {
        let task = await start(
            path,
            fields,
            method: method,
            content: content,
            clientHost: clientHost,
            rules: rules,
            authorization: authorization,
            preservesHost: preservesHost,
            isDirect: isDirect
        )
        let heard = try await task.value.get()
        #expect(await eventually { heard.read { $0.isOver } })
        return heard.read { $0 }
    }

    /// Calls that are listed.
    var callsUnderWay: Int {
        get async { await begin(on: loop) { [inside] _ in inside.calls?.count ?? 0 }.value }
    }

    func cancelAll() async {
        await begin(on: loop) { [inside] _ in
            for handle in inside.handles { handle.cancel() }
        }.value
    }

    func close() async {
        await begin(on: loop) { [inside] _ in
            inside.client?.shutdown()
            inside.client = nil
            inside.handles = []
        }.value
        origin.stop()
        loop.stop()
        pool.stop()
    }
}
