// The time that a request has for its connection where the origin's name is looked up before.

import DownloadCore
import EventLoop
import Glibc
import HTTPWire
import LoopSupport
import TestSupport
import Testing

@testable import ServiceCore
@testable import Upstream

@Suite(.timeLimit(.minutes(5))) struct ForwardSourceTests {
    /// A millisecond, in nanoseconds.
    private static let ms: UInt64 = 1_000_000

    @Test("the name and the connection have one time together", arguments: [true, false])
    func oneTimeout(isLookedUp: Bool) async throws {
        let loop = try EventLoop.start()
        let pool = try IOPool(threads: 1)
        let given = Monitor<[Timeouts]>([])
        await begin(on: loop) { loop in
            let resolver = Resolver(pool: pool) { _, port in
                usleep(60_000)
                return SystemResolver.lookup("127.0.0.2", port: port)
            }
            let client = UpstreamClient(on: loop, resolver: resolver)
            let own = SocketAddress(numericHost: "127.0.0.1", port: isLookedUp ? 9 : 10).map { [$0] } ?? []
            let listeners = OwnListeners(clients: own, admin: [], resolver: resolver)
            let origin = OriginAddress(scheme: "http", host: "origin.test", port: 9, basePath: "")
            let service = ServicePlan(name: "", origin: nil)
            var timeouts = Timeouts()
            timeouts.connect = 600_000 * Self.ms
            let source = ForwardSource(origin, .none, .any, timeouts, client, listeners) { addresses, timeouts in
                given.update { $0.append(timeouts) }
                return OriginSource(
                    service: service,
                    origin: origin,
                    plan: service.request,
                    runtime: ServiceRuntime(name: "", limits: AdmissionLimits()),
                    client: client,
                    addresses: addresses,
                    timeouts: timeouts
                )
            }
            let handle = try? await source.start(
                FetchRequest(method: .get, path: "/", fields: Fields()),
                sink: NoSink(),
                on: loop
            )
            handle?.cancel()
            client.shutdown()
        }.value
        loop.stop()
        pool.stop()
        let left = try #require(given.read { $0.first })
        // What the look-up took, 60 ms at least, is gone; without one nothing is.
        #expect(try #require(left.connect) <= (isLookedUp ? 599_940 : 600_000) * Self.ms)
        if !isLookedUp { #expect(left.connect == 600_000 * Self.ms) }
        #expect(left.firstByte == Timeouts().firstByte)
    }
}

/// Hears nothing.
private final class NoSink: EndSink {
    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) {}
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow { .continue }
    func finished(trailers: Fields) {}
    func failed(_ error: FetchError) {}
}

@available(*, unavailable) extension NoSink: Sendable {}
