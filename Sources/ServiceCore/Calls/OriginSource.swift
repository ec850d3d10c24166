// Origins as sources of fetches: that of a service, and one that the target of a request names.

package import DownloadCore
package import EventLoop
import HTTPWire
import Policies
package import Upstream

/// Loop-bound; it keeps nothing of a request, so that one serves all requests of a service and a plan.
package final class OriginSource: FetchSource {
    private let service: ServicePlan
    /// The service's: a plan is not to be looked into with each request.
    private let breaker: BreakerPolicy?
    /// Somebody wants to hear how fetches end: the breaker, the calls that are parked, or who learns how long they take.
    private let isWatched: Bool
    private let plan: RequestPlan
    /// Of the endpoint, or of the service.
    private let authorization: String?
    private let terms: UpstreamTerms
    private let runtime: ServiceRuntime
    /// The runtime's, held here as well: a member of a member is retained with each use.
    private let admission: Admission
    private let client: UpstreamClient
    private let onFetch: () -> Void
    /// Where requests that are passed on without a wait are listed, and what they are called there.
    private let listed: (calls: CallsUnderWay, place: CallPlace)?

    /// - Parameters:
    ///   - origin: where the request goes; in forward mode every request names its own.
    ///   - plan: of the endpoint, or of the service.
    ///   - target: the addresses that the origin may have; nil: as the service says.
    ///   - addresses: those that it has, if its host was looked up and they were looked at before; nil: each transfer
    ///   looks it up.
    ///   - listed: where fetches are listed that begin without a wait; whoever else asks lists its calls itself.
    ///   - timeouts: what is left of them where a part was used before; nil: as the plan says.
    ///   - onFetch: called for each request that is sent.
    package init(
        service: ServicePlan,
        origin: OriginAddress,
        plan: RequestPlan,
        runtime: ServiceRuntime,
        client: UpstreamClient,
        target: TargetRules? = nil,
        addresses: [SocketAddress]? = nil,
        listed: (calls: CallsUnderWay, place: CallPlace)? = nil,
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
        // What the origin's breaker refuses does not queue for a slot.
        if isLeftAlone() { throw refuse() }
        if !admission.takeFreeSlot() {
            do throws(AdmissionRefusal) { try await admission.acquire(request.urgency, on: loop) } catch {
                throw refused(error)
            }
        }
        return try beginWithSlot(request, sink)
    }

    // Apart from the function that waits, which would have all of it in its frame.

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
        if let listed { fetch.beginCall(listed.calls, listed.place) }
        return fetch
    }

    /// Whoever calls has a slot, which the fetch gives back; nil where the origin's breaker refuses it,
    /// and the slot is free again.
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
        let fetch = OriginFetch(sink: sink, admission: admission)
        if let watch { fetch.watch = watch }
        runtime.countFetch()
        onFetch()
        let body = request.body
        fetch.transfer = client.start(upstreamRequest(request), body: body, delegate: fetch)
        return fetch
    }

    /// As a request hears it; counted.
    @inline(never) private func refuse() -> FetchError {
        runtime.resilience.countRefusal()
        return FetchError(leavingAlone: terms.url, service, runtime.resilience)
    }

    private func upstreamRequest(_ request: consuming FetchRequest) -> UpstreamRequest {
        var fields = request.fields
        fields.remove(.host)
        plan.rules.apply(to: &fields)
        if let authorization { fields.set(.authorization, authorization) }
        // A proxy gets the credentials that are configured for it, and no others.
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

/// One fetch under way; gives its slot back exactly once.
final class OriginFetch: DirectCall, EndHandle, TransferDelegate {
    // Unchecked, like the two that follow: no code runs while they are changed, and a check would cost instructions
    // with every request.
    @exclusivity(unchecked) var transfer: Transfer?
    @exclusivity(unchecked) private(set) var isEndProven = true
    @exclusivity(unchecked) private var sink: (any FetchSink)?
    private var admission: Admission?
    /// Hears how the fetch ended; nil where nobody wants to.
    @exclusivity(unchecked) var watch: OriginWatch?
    /// Of the answer.
    @exclusivity(unchecked) private var head: (status: Int, length: UInt64?)?

    init(sink: any FetchSink, admission: Admission) {
        self.sink = sink
        self.admission = admission
        super.init()
    }

    deinit {
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
        callReceived(bytes.count)
        return sink?.received(bytes) ?? .continue
    }

    var supportsSplice: Bool { sink?.supportsSplice ?? false }

    func transfer(_ transfer: Transfer, moves count: Int, from source: SpliceSource) -> SplicedContent? {
        let content = sink?.splice(count, from: source)
        if case .bytes(let moved)? = content?.result { callReceived(moved) }
        return content
    }

    func transferFinished(_ transfer: Transfer, trailers: Fields) {
        isEndProven = transfer.isEndProven
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

    private func end(_ end: CallEnd) {
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

/// Loop-bound; made for one request.
///
/// A name is looked up once: a second answer of the name servers could be an address that the first look would have
/// refused.
final class ForwardSource: FetchSource {
    private let origin: OriginAddress
    private let isProxied: Bool
    private let target: TargetRules
    private let timeouts: Timeouts
    private let client: UpstreamClient
    private let listeners: OwnListeners
    private let makeSource: ([SocketAddress]?, Timeouts) -> OriginSource

    /// - Parameters:
    ///   - proxies: of the service; one that stands before the origin looks its name up.
    ///   - target: the addresses that the origin may have.
    ///   - makeSource: the source for requests that go to these addresses, within what is left of the timeouts; nil: to
    ///   those that the transfer finds out.
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

    /// - Returns: nil where no listener of this daemon has the port, or a proxy looks the name up: then there is nothing
    ///   to find out here, and the transfer looks up what it needs.
    /// - Parameter timeouts: what the name takes is taken from the time for the connection.
    /// - Throws: that the name leads to this daemon itself, or nowhere.
    private func checkedAddresses(
        _ timeouts: inout Timeouts,
        on loop: isolated EventLoop
    ) async throws(UpstreamError) -> [SocketAddress]? {
        guard !isProxied, listeners.mayBeOwn(port: origin.effectivePort) else { return nil }
        let place = DialTarget(
            host: origin.host,
            port: origin.effectivePort,
            rules: target,
            timeout: timeouts.connect
        )
        let addresses = try await client.dialler.addresses(of: place, on: loop)
        try listeners.check(addresses, of: origin.host)
        timeouts.connect = place.timeLeft
        return addresses
    }
}

@available(*, unavailable) extension ForwardSource: Sendable {}
