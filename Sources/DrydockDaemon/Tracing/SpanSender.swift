// The spans of the daemon on their way to a collector.

import DownloadCore
import EventLoop
import HTTPWire
import Logging
import ProxyServer
import ServiceCore
import Synchronization
import Upstream

/// Sends spans to the collector of the configuration in force.
///
/// Sendable: the sending itself is loop-bound, in a box; the box is under a mutex.
final class SpanSender: DaemonFeature {
    let queue: SpanQueue
    private let instance: String
    private let logger: Logger
    private let sending = Mutex<LoopBox<SpanSending>?>(nil)

    /// - Parameter instance: the name of the daemon, which its spans carry.
    init(_ queue: SpanQueue, instance: String, logger: Logger) {
        self.queue = queue
        self.instance = instance
        self.logger = logger
    }

    /// Begins to send on a loop, if tracing is on.
    func start(on loop: isolated EventLoop, _ resolver: Resolver) {
        let sending = SpanSending(queue, instance: instance, logger: logger, resolver)
        sending.follow(on: loop)
        let box = LoopBox(sending, on: loop)
        self.sending.withLock { $0 = box }
        queue.listen { box.submit { sending, _ in sending.send() } }
    }

    /// Goes on with the settings that are in force from now on.
    func update(_ settings: TracingSettings) {
        queue.update(settings)
        sending.withLock { $0 }?.submit { sending, loop in sending.follow(on: loop) }
    }

    /// Sends what waits, within `two seconds`, and ends.
    func stop() async {
        let box = sending.exchange(nil)
        queue.listen {}
        guard let box else { return }
        _ = await box.run { sending, loop in await sending.finish(on: loop) }
        await Self.end(box, on: box.loop)
    }

    private static func end(_ box: LoopBox<SpanSending>, on loop: isolated EventLoop) { _ = box.take(on: loop) }

    var gauges: [Gauge] {
        [
            Gauge(
                "drydock_spans_total",
                "Spans of traced requests by what became of them.",
                isCounter: true,
                label: ("result", "sent"),
                read: { [queue] in queue.sentCount }
            ),
            Gauge(
                "drydock_spans_total",
                "Spans of traced requests by what became of them.",
                isCounter: true,
                label: ("result", "dropped"),
                read: { [queue] in queue.droppedCount }
            ),
        ]
    }
}

/// Sends one batch of spans after the other. Loop-bound.
///
/// A batch that the collector does not take is dropped and counted: spans are not worth the memory that a collector away
/// would cost.
private final class SpanSending: TransferDelegate {
    /// The nanoseconds between two looks at what waits.
    private static let interval: UInt64 = 5_000_000_000
    /// The nanoseconds within which a collector takes a batch.
    private static let timeout: UInt64 = 10_000_000_000
    /// The nanoseconds within which the last batches of a daemon that ends are taken.
    private static let lastTime: UInt64 = 2_000_000_000

    private let queue: SpanQueue
    private let instance: String
    private let logger: Logger
    private let resolver: Resolver
    /// Nil until tracing is on for the first time.
    private var client: UpstreamClient?
    private var timer: LoopTimer?
    /// The batch under way, and its answer.
    private var transfer: Transfer?
    private var count = 0
    private var status: Int?
    private var answer = CollectorAnswer()
    /// Where the batch under way goes.
    private var destination = ""
    /// The spans that were dropped since the collector took one; nil while it takes them.
    private var lost: Int?
    /// Whether the collector did not take all spans of its last batch.
    private var rejects = false
    private var isEnding = false
    private var whenIdle: UnsafeContinuation<Void, Never>?

    init(_ queue: SpanQueue, instance: String, logger: Logger, _ resolver: Resolver) {
        self.queue = queue
        self.instance = instance
        self.logger = logger
        self.resolver = resolver
    }

    /// Looks from time to time at what waits, as long as tracing is on.
    func follow(on loop: isolated EventLoop) {
        guard !isEnding else { return }
        guard queue.settings.collector != nil else {
            timer?.cancel()
            timer = nil
            return send()
        }
        if client == nil { client = UpstreamClient(on: loop, resolver: resolver) }
        guard timer == nil else { return }
        let timer = LoopTimer(on: loop) { [weak self] in self?.send() }
        timer.start(every: Self.interval)
        self.timer = timer
    }

    /// Sends a batch, unless one is under way.
    func send() {
        guard transfer == nil else { return }
        let batch = queue.take()
        guard !batch.isEmpty else { return }
        guard let collector = queue.settings.collector, let client else {
            queue.dropped(batch.count)
            return dropAll()
        }
        let document = SpanDocument.bytes(of: batch, instance: instance)
        let fields = Fields([
            ("Content-Type", "application/json"), ("Content-Length", "\(document.count)"),
            ("User-Agent", "drydock/\(DrydockVersion.current)"),
            // A daemon that is asked on the way does not trace this.
            ("traceparent", TraceContext.made(isSampled: false).parentValue),
        ])
        let request = UpstreamRequest(
            method: .post,
            path: collector.path(appending: "/v1/traces"),
            fields: fields,
            bodyFraming: .length(UInt64(document.count)),
            terms: UpstreamTerms(
                url: collector.root,
                host: collector.authority,
                timeouts: Timeouts(firstByte: Self.timeout, idle: Self.timeout, total: Self.timeout)
            )
        )
        (count, status, destination) = (batch.count, nil, collector.base)
        answer = CollectorAnswer()
        transfer = client.start(request, body: ContentSource(document), delegate: self)
    }

    /// Sends what waits, and ends.
    func finish(on loop: isolated EventLoop) async {
        isEnding = true
        timer?.cancel()
        timer = nil
        send()
        if transfer != nil {
            let deadline = LoopTimer(on: loop) { [weak self] in self?.giveUp() }
            deadline.start(after: Self.lastTime)
            await withUnsafeContinuation { whenIdle = $0 }
            deadline.cancel()
        }
        client?.shutdown()
        client = nil
    }

    private func giveUp() {
        guard let transfer else { return }
        transfer.cancel()
        end("the daemon ends")
    }

    func transfer(_ transfer: Transfer, received interim: ResponseHead) {}

    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) { status = head.status }

    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow {
        answer.append(bytes)
        return .continue
    }

    func transferFinished(_ transfer: Transfer, trailers: Fields) {
        let isTaken = status.map { 200..<300 ~= $0 } ?? false
        end(isTaken ? nil : "it answered \(status ?? 0)")
    }

    func transfer(_ transfer: Transfer, failed error: UpstreamError) { end(error.description) }

    /// Counts the batch under way.
    /// - Parameter error: why the collector did not take it; nil if it did.
    private func end(_ error: String?) {
        transfer = nil
        if let error {
            queue.dropped(count)
            if lost == nil {
                let remedy = "start it, or correct 'tracing.otlp'"
                logger.warning(
                    "spans are dropped, since the collector at \(destination) takes none: \(error); \(remedy)"
                )
            }
            lost = (lost ?? 0) + count
            if isEnding { dropAll() }
        } else {
            let rejection = answer.rejection(of: count)
            tell(rejection)
            queue.dropped(rejection?.spans ?? 0)
            queue.sent(count - (rejection?.spans ?? 0))
            if let lost {
                logger.notice("the collector at \(destination) takes spans again, after \(lost) were dropped")
            }
            lost = nil
            if isEnding || queue.hasBatch { send() }
        }
        guard transfer == nil, let waiter = whenIdle else { return }
        whenIdle = nil
        waiter.resume()
    }

    /// Says that the collector takes only a part of the spans, until it takes a whole batch.
    private func tell(_ rejection: CollectorAnswer.Rejection?) {
        if let rejection, !rejects {
            let reason = rejection.reason.isEmpty ? "it does not say why" : rejection.reason
            logger.warning(
                "the collector at \(destination) did not take \(rejection.spans) of \(count) spans: \(reason); look at its limits and its log"
            )
        }
        rejects = rejection != nil
    }

    private func dropAll() {
        var rest = queue.take()
        while !rest.isEmpty {
            queue.dropped(rest.count)
            rest = queue.take()
        }
    }
}

@available(*, unavailable) extension SpanSending: Sendable {}
