// The sources that ask origins: the origin of a service, or one that the target of a request names.

package import DownloadCore
package import EventLoop
import HTTPWire
import Policies
package import Upstream

/// The source that asks one origin. Loop-bound; it keeps nothing of a request, so that one serves all requests of a
/// service and a plan.
package final class OriginSource: FetchSource {
    private let service: ServicePlan
    /// The service's breaker policy, kept here so that requests need not read the plan.
    private let breaker: BreakerPolicy?
    /// Whether the end of each fetch is reported to the breaker, to waiting calls, or to those that learn latencies.
    private let isWatched: Bool
    private let plan: RequestPlan
    /// The value of Authorization of the endpoint, or of the service.
    private let authorization: String?
    private let terms: UpstreamTerms
    private let runtime: ServiceRuntime
    /// The runtime's admission, kept here because a nested member is retained with each use.
    private let admission: Admission
    private let client: UpstreamClient
    private let onFetch: () -> Void
    /// Where requests that are passed on without a wait are listed, and what they are called there.
    private let listed: (calls: CallsUnderWay, destination: CallDestination)?

    /// Makes a source.
    /// - Parameters:
    ///   - origin: the origin of all requests; nil in forward mode, in which each request names its own.
    ///   - plan: the plan of the endpoint, or of the service.
    ///   - target: the rules for the origin's addresses; nil for those of the service.
    ///   - addresses: the addresses, if the host was looked up and checked before; nil to let each transfer look it up.
    ///   - listed: the list for fetches that begin without a wait; other callers list their calls themselves.
    ///   - timeouts: the rest of the timeouts, if a part has passed; nil for those of the plan.
    ///   - onFetch: called for each request that is sent.
    package init(
        service: ServicePlan,
        origin: OriginAddress,
        plan: RequestPlan,
        runtime: ServiceRuntime,
        client: UpstreamClient,
        target: TargetRules? = nil,
        addresses: [SocketAddress]? = nil,
        listed: (calls: CallsUnderWay, destination: CallDestination)? = nil,
        timeouts: Timeouts? = nil,
        onFetch: @escaping () -> Void = {}
    ) {
        self.service = service
        breaker = service.breaker
        isWatched = service.breaker != nil || service.park != nil || !plan.learners.isEmpty
        self.plan = plan
        authorization = service.authorization(of: plan)
        terms = UpstreamTerms(
            url: origin.root,
            host: origin.authority,
            timeouts: timeouts ?? plan.timeouts,
            tls: service.tls,
            target: target ?? service.target,
            addresses: addresses,
            proxy: service.proxies.proxy(to: origin),
            limits: service.responseLimits,
            isLenient: service.isLenient
        )
        self.runtime = runtime
        admission = runtime.admission
        self.client = client
        self.listed = listed
        self.onFetch = onFetch
    }

    package func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        // A fetch that the origin's breaker refuses does not queue for a slot.
        if isLeftAlone() { throw refuse() }
        if !admission.takeFreeSlot() {
            do throws(AdmissionRefusal) { try await admission.acquire(request.urgency, on: loop) } catch {
                throw refused(error)
            }
        }
        return try beginWithSlot(request, sink)
    }

    // This function is separate from the one that waits, whose frame would otherwise hold all of it.

    @inline(never) private func isLeftAlone() -> Bool {
        breaker != nil && runtime.resilience.leavesAlone(terms.url)
    }

    @inline(never) private func refused(_ refusal: AdmissionRefusal) -> FetchError {
        FetchError(refusal, service: service)
    }

    @inline(never) private func beginWithSlot(
        _ request: FetchRequest,
        _ sink: any FetchSink
    ) throws(FetchError) -> OriginFetch {
        guard let fetch = begin(request, sink) else { throw refuse() }
        return fetch
    }

    package func startWithoutWaiting(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)? {
        if breaker != nil, runtime.resilience.leavesAlone(terms.url) { return nil }
        guard admission.takeFreeSlot(), let fetch = begin(request, sink) else { return nil }
        if let listed { fetch.beginCall(listed.calls, listed.destination) }
        return fetch
    }

    /// Begins a fetch with the caller's slot, which the fetch returns; nil if the origin's breaker refuses it, in which
    /// case the slot is free again.
    private func begin(_ request: consuming FetchRequest, _ sink: any FetchSink) -> OriginFetch? {
        var watch: OriginWatch?
        if isWatched {
            let parked = service.park == nil ? nil : runtime.parked
            watch = OriginWatch(runtime.resilience, terms.url, breaker, parked, plan.learners)
            if watch == nil {
                admission.release()
                return nil
            }
        }
        let fetch = OriginFetch(sink: sink, admission: admission, figures: runtime.origins)
        if let watch { fetch.watch = watch }
        runtime.countFetch()
        onFetch()
        let body = request.body
        fetch.transfer = client.start(upstreamRequest(request), body: body, delegate: fetch)
        return fetch
    }

    /// The refusal that a request gets; it is counted.
    @inline(never) private func refuse() -> FetchError {
        runtime.resilience.countRefusal()
        return FetchError(leavingAlone: terms.url, service, runtime.resilience)
    }

    private func upstreamRequest(_ request: consuming FetchRequest) -> UpstreamRequest {
        var fields = request.fields
        fields.remove(.host)
        plan.rules.apply(to: &fields)
        if let authorization { fields.set(.authorization, authorization) }
        // A proxy gets only the credentials that are configured for it.
        if terms.proxy != nil { fields.remove(.proxyAuthorization) }
        // The client's Host was removed above, so that a Host here comes from the rules. The transfer sends Host first
        // in any case.
        if service.preservesHost, let host = request.clientHost, !fields.contains(.host) { fields.append(.host, host) }
        switch request.framing {
        case .length(let length): fields.set(.contentLength, String(length))
        case .chunked: fields.set(.transferEncoding, "chunked")
        case .none, .untilClose: break
        }
        return UpstreamRequest(
            method: request.method,
            path: plan.query.hasSecrets
                ? QueryDefaults.adding(plan.query.hidden(missingIn: request.path), to: request.path) : request.path,
            fields: fields,
            bodyFraming: request.framing,
            terms: terms
        )
    }
}

@available(*, unavailable) extension OriginSource: Sendable {}

extension FetchError {
    /// The error for a request that its service did not admit.
    package init(_ refusal: AdmissionRefusal, service: ServicePlan) {
        switch refusal {
        case .cancelled: self = .cancelled
        case .queueFull(let length):
            self = .notAdmitted(
                "\(service.label) has \(service.admission.concurrent ?? 0) fetches under way and \(length) waiting; "
                    + "raise max_concurrent or max_queue.length, or try again later"
            )
        case .waitedTooLong(let nanoseconds):
            self = .notAdmitted(
                "no slot of \(service.label) came free within \(nanoseconds / 1_000_000) ms; "
                    + "raise max_concurrent or max_queue.wait, or try again later"
            )
        }
    }
}

/// One fetch under way; it returns its slot exactly once.
final class OriginFetch: DirectCall, EndHandle, TransferDelegate {
    // The members are unchecked, like the two that follow: no code runs while they are changed, and a check would cost
    // instructions with every request.
    @exclusivity(unchecked) var transfer: Transfer?
    @exclusivity(unchecked) private(set) var isEndProven = true
    @exclusivity(unchecked) private var sink: (any FetchSink)?
    private var admission: Admission?
    /// What the end of the fetch is counted in; nil from then on.
    @exclusivity(unchecked) private var figures: OriginFigures?
    /// The receiver of the fetch's end; nil if there is none.
    @exclusivity(unchecked) var watch: OriginWatch?
    /// The properties of the answer's head.
    @exclusivity(unchecked) private var head: (status: Int, length: UInt64?)?

    init(sink: any FetchSink, admission: Admission, figures: OriginFigures) {
        self.sink = sink
        self.admission = admission
        self.figures = figures
        super.init()
        figures.begin()
    }

    deinit {
        count(.cancelled)
        watch?.givenUp()
        admission?.release()
    }

    override func askedNow() -> (method: Method, path: String, status: Int?, expected: UInt64?)? {
        transfer.map { ($0.request.method, $0.request.path, head?.status, head?.length) }
    }

    func resume() { transfer?.resume() }

    func pause() { transfer?.pause() }

    func bodyAvailable() { transfer?.bodyAvailable() }

    var hasContent: Bool { transfer?.hasContent ?? false }

    func cancel() {
        transfer?.cancel()
        end(.cancelled)
    }

    var acceptsReentrantBytes: Bool { sink?.acceptsReentrantBytes ?? false }

    var maximumAtOnce: Int { sink?.maximumAtOnce ?? .max }

    func transfer(_ transfer: Transfer, received interim: ResponseHead) { sink?.received(interim: interim) }

    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) {
        if let watch {
            self.watch = nil
            watch.answered(head.status)
        }
        if Self.isEventStream(head.fields) { transfer.allowSilence() }
        let length: UInt64? = if case .length(let length) = framing { length } else { nil }
        self.head = (head.status, length)
        callAnswered(head.status, expected: length)
        sink?.received(head, framing: framing)
    }

    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow {
        figures?.add(bytes: bytes.count)
        callReceived(bytes.count)
        return sink?.received(bytes) ?? .continue
    }

    var supportsSplice: Bool { sink?.supportsSplice ?? false }

    func transfer(_ transfer: Transfer, moves count: Int, from source: SpliceSource) -> SplicedContent? {
        let content = sink?.splice(count, from: source)
        if case .bytes(let moved)? = content?.result {
            figures?.add(bytes: moved)
            callReceived(moved)
        }
        return content
    }

    func transferFinished(_ transfer: Transfer, trailers: Fields) {
        isEndProven = transfer.isEndProven
        count(head.map { OriginResult(status: $0.status) } ?? .internal)
        let sink = sink
        end(.finished)
        sink?.finished(trailers: trailers)
    }

    func transfer(_ transfer: Transfer, failed error: UpstreamError) {
        let sink = sink
        if let watch {
            self.watch = nil
            watch.failed(error)
        }
        count(OriginResult(error))
        end(.failed(.upstream(error)))
        sink?.failed(.upstream(error))
    }

    private static func isEventStream(_ fields: Fields) -> Bool {
        fields.withFirst(.contentType) { value in
            let type: StaticString = "text/event-stream"
            let length = type.utf8CodeUnitCount
            guard value.part(0..<length).equalsIgnoringCase(type) else { return false }
            return value.count == length || value[length] == UInt8(ascii: ";") || value[length] == UInt8(ascii: " ")
        } ?? false
    }

    /// Counts the end of the fetch, once.
    private func count(_ result: OriginResult) {
        guard let figures else { return }
        self.figures = nil
        figures.add(result, connecting: transfer?.connectTime, firstByte: transfer?.firstByteTime)
    }

    private func end(_ end: CallEnd) {
        count(.cancelled)
        sink = nil
        transfer = nil
        endCall(end)
        if let watch {
            self.watch = nil
            watch.givenUp()
        }
        admission?.release()
        admission = nil
    }
}

/// The source of forward mode. Loop-bound; made for one request.
///
/// A name is looked up once, because a second answer of the name servers could contain an address that the check of the
/// first one would have refused.
final class ForwardSource: FetchSource {
    private let origin: OriginAddress
    private let isProxied: Bool
    private let target: TargetRules
    private let timeouts: Timeouts
    private let client: UpstreamClient
    private let listeners: OwnListeners
    private let makeSource: ([SocketAddress]?, Timeouts) -> OriginSource

    /// Makes a source.
    /// - Parameters:
    ///   - proxies: the proxies of the service; a proxy looks up the origin's name itself.
    ///   - target: the rules for the origin's addresses.
    ///   - makeSource: makes the source for requests to these addresses within the rest of the timeouts; nil addresses
    ///     are looked up by the transfer.
    init(
        _ origin: OriginAddress,
        _ proxies: UpstreamProxies,
        _ target: TargetRules,
        _ timeouts: Timeouts,
        _ client: UpstreamClient,
        _ listeners: OwnListeners,
        makeSource: @escaping ([SocketAddress]?, Timeouts) -> OriginSource
    ) {
        self.origin = origin
        isProxied = proxies.proxy(to: origin) != nil
        self.target = target
        self.timeouts = timeouts
        self.client = client
        self.listeners = listeners
        self.makeSource = makeSource
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        var timeouts = timeouts
        let addresses: [SocketAddress]?
        do throws(UpstreamError) {
            addresses = try await checkedAddresses(&timeouts, on: loop)
        } catch {
            throw .upstream(error)
        }
        return try await makeSource(addresses, timeouts).start(request, sink: sink, on: loop)
    }

    /// The checked addresses of the origin.
    /// - Parameter timeouts: the timeouts; the time for the name is subtracted from that for the connection.
    /// - Returns: nil if no listener of this daemon has the port, or if a proxy looks the name up, so that nothing has
    ///   to be checked.
    /// - Throws: an error if the name leads to this daemon itself, or nowhere.
    private func checkedAddresses(
        _ timeouts: inout Timeouts,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> [SocketAddress]? {
        guard !isProxied, listeners.mayBeOwn(port: origin.effectivePort) else { return nil }
        let target = DialTarget(
            host: origin.host,
            port: origin.effectivePort,
            rules: target,
            timeout: timeouts.connect
        )
        let addresses = try await client.dialler.addresses(of: target, on: loop)
        try listeners.check(addresses, of: origin.host)
        timeouts.connect = target.timeLeft
        return addresses
    }
}

@available(*, unavailable) extension ForwardSource: Sendable {}
