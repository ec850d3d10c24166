// The requests of one loop to all origins.

import CLibcurl
package import EventLoop
import HTTPWire

/// Sends requests to origins; loop-bound, one per loop. Call ``shutdown()`` before the last reference is released.
package final class UpstreamClient: TransferClient {
    private let loop: EventLoop
    private let resolver: Resolver
    /// The pool of libcurl's transfers, and its multi handle, which every event reads; nil once shut down, or if
    /// libcurl could not be initialized.
    private var curl: CurlPool?
    private var multi: CurlMulti?
    /// The connections that do not use libcurl: plain HTTP/1.1.
    private let wire: HTTP1Pool
    /// The connections of callers that speak their own protocol, such as tunnels.
    package let dialler: Dialler
    private let carriers: Carriers
    private var isShutDown = false
    /// The transfers in progress; each knows its index here. Unchecked, since a check would be paid for with every
    /// transfer: `start` appends and `released` removes, and neither makes another call in between. `shutdown` iterates
    /// a copy, because the ends that it reports call `released`.
    @exclusivity(unchecked) private var active: [Transfer] = []
    /// The transfers that wait for the resolver, by a number that an answer from another thread can carry.
    private var resolving: [UInt64: (transfer: Transfer, question: ResolverQuestion)] = [:]
    private var lastQuestion: UInt64 = 0
    // Unchecked, since a check would be paid for with every transfer: only `start` uses it, and a look-up makes no
    // other call.
    @exclusivity(unchecked) private var origins = RecentOrigins()
    /// The transfers with parts to hand on. Unchecked, since a check would be paid for with every event: `settle` swaps
    /// it for an empty one before it calls a delegate, which may append by `mark`.
    @exclusivity(unchecked) private var marked: [Transfer] = []
    /// An empty array, whose capacity serves the next drain.
    private var delivered: [Transfer] = []
    private var isSettling = false
    private let wake: LoopTimer
    private let reference: ClientReference

    /// The carriers that a client has.
    enum Carriers {
        /// Drydock's own carrier for plain HTTP, libcurl for https.
        case both
        /// libcurl for plain HTTP, too, so that tests can compare both carriers.
        case libcurlAlone
        /// Drydock's own carrier only, as if libcurl could not be initialized.
        case wireAlone
    }

    package convenience init(
        on loop: isolated EventLoop,
        resolver: Resolver,
        limits: UpstreamLimits = UpstreamLimits()
    ) {
        self.init(on: loop, resolver: resolver, limits: limits, carriers: .both)
    }

    init(on loop: isolated EventLoop, resolver: Resolver, limits: UpstreamLimits, carriers: Carriers) {
        self.carriers = carriers
        self.loop = loop
        self.resolver = resolver
        // The initialization is thread-safe: the first caller runs it, the others wait.
        Self.initializeLibrary
        let reference = ClientReference()
        self.reference = reference
        wake = LoopTimer(on: loop) { reference.client?.settle() }
        multi = carriers == .wireAlone ? nil : CurlMulti(on: loop, limits: limits) { reference.client?.settle() }
        curl = multi.map { CurlPool($0, bufferSize: limits.bufferSize) }
        wire = HTTP1Pool(on: loop, limits: limits)
        dialler = Dialler(on: loop, resolver: resolver)
        reference.client = self
        wire.client = self
    }

    deinit {
        assert(isShutDown, "shut an UpstreamClient down before its last reference goes")
        reference.client = nil
        wire.client = nil
    }

    private static let initializeLibrary: Void = { curl_global_init(Int(CURL_GLOBAL_DEFAULT)) }()

    /// True while libcurl is on the stack.
    var mustKeepTransfers: Bool { multi?.isInside ?? false }

    /// The number of transfers that have not ended.
    package var activeCount: Int { active.count }
    /// The number of sockets to origins, including idle connections and those that are being dialled, without tunnels.
    package var connectionCount: Int { (multi?.socketCount ?? 0) + wire.socketCount + dialler.socketCount }

    /// Begins a transfer. The delegate is called later, not from within this call.
    /// - Parameter body: the source of the body; needed if `request.bodyFraming` announces one.
    package func start(
        _ request: consuming UpstreamRequest,
        body: (any RequestBodySource)?,
        delegate: any TransferDelegate
    ) -> Transfer {
        let transfer = Transfer(request, client: self, source: body, delegate: delegate, activeIndex: active.count)
        active.append(transfer)
        do throws(UpstreamError) {
            let terms = transfer.request.terms
            let (target, origin) = try origins.find(
                terms.url,
                transfer.request.path,
                method: transfer.request.method,
                proxy: terms.proxy
            )
            transfer.target = target
            transfer.destination = origin
            guard !isShutDown else {
                throw UpstreamError(.cancelled, detail: "the request to \(origin.name) came after the shutdown")
            }
            if !isForOwnCarrier(origin) {
                if transfer.request.isUpgrade {
                    try SecureConnection.take(transfer, to: origin, wire)
                } else {
                    try libcurl(for: origin).take(transfer, to: origin)
                }
            }
            resolve(transfer, isFresh: transfer.request.isUpgrade)
        } catch {
            transfer.conclude(.failure(error))
        }
        if let origin = transfer.destination, isForOwnCarrier(origin) { wakeLater() } else { poke() }
        return transfer
    }

    /// Fails all transfers and closes all connections; called outside libcurl. Later requests fail.
    package func shutdown() {
        guard !isShutDown else { return }
        precondition(!mustKeepTransfers, "a source of a request body cannot shut its client down")
        // From here on no transfer begins: delegates may ask for one when they are told of the end.
        isShutDown = true
        let curl = curl
        self.curl = nil
        multi = nil
        for transfer in active {
            transfer.end(
                .failure(
                    UpstreamError(
                        .cancelled,
                        detail: "the transfer from \(transfer.destinationName) was cut by the shutdown"
                    )
                )
            )
        }
        curl?.close()
        wire.close()
        dialler.close()
    }

    /// Whether Drydock's own carrier carries requests to the origin.
    private func isForOwnCarrier(_ origin: Origin) -> Bool {
        // Requests in plain HTTP to a proxy never go through libcurl, whichever carrier a test wants.
        !origin.isTLS && (carriers != .libcurlAlone || origin.proxy != nil)
    }

    private func libcurl(for origin: Origin) throws(UpstreamError) -> CurlPool {
        guard let curl else {
            throw UpstreamError(
                .internal,
                detail: "libcurl could not begin, so that nothing goes to \(origin.name): free memory and restart"
            )
        }
        return curl
    }

    // MARK: - Addresses

    func resolve(_ transfer: Transfer, isFresh: Bool) {
        guard let origin = transfer.destination else { return }
        transfer.state = .resolving
        let terms = transfer.request.terms
        if origin.proxy != nil, let own = origin.ownAddress, !terms.target.allows(own) {
            return transfer.conclude(.failure(.refused(origin.name, at: own.host)))
        }
        let rules = transfer.dialRules
        if let addresses = terms.addresses { return proceed(transfer, origin, addresses, isFresh: isFresh) }
        // A numeric host for which every address is allowed needs neither rules nor the resolver.
        if origin.isNumeric, rules == .any {
            return proceed(transfer, origin, origin.addresses, isFresh: isFresh)
        }
        if let known = resolver.known(origin.key, isNumeric: origin.isNumeric, rules: rules) {
            return resolved(transfer, known, isFresh: isFresh)
        }
        // The timer of the carrier is needed already.
        if transfer.carrier == nil { transfer.attach(to: HTTP1Connection(wire, wire.connections(to: origin))) }
        transfer.armTimer()
        lastQuestion += 1
        let number = lastQuestion
        let question = resolver.ask(origin.key.host, port: origin.key.port, rules: rules) {
            [loop, reference] result in
            loop.submit { _ in reference.client?.answered(number, result, isFresh: isFresh) }
        }
        resolving[number] = (transfer, question)
        transfer.question = number
    }

    /// Takes an answer of the resolver; no transfer waits under the number if it has ended meanwhile.
    private func answered(_ number: UInt64, _ result: Result<[SocketAddress], UpstreamError>, isFresh: Bool) {
        guard let transfer = resolving.removeValue(forKey: number)?.transfer else { return }
        transfer.question = nil
        resolved(transfer, result, isFresh: isFresh)
        settle()
    }

    private func resolved(_ transfer: Transfer, _ result: Result<[SocketAddress], UpstreamError>, isFresh: Bool) {
        guard transfer.state == .resolving, let origin = transfer.destination else { return }
        switch result {
        case .success(let addresses): proceed(transfer, origin, addresses, isFresh: isFresh)
        case .failure(let error): transfer.conclude(.failure(origin.proxy.map { error.of($0) } ?? error))
        }
    }

    private func proceed(
        _ transfer: Transfer,
        _ origin: Origin,
        _ addresses: [SocketAddress],
        isFresh: Bool
    ) {
        do throws(UpstreamError) {
            try transfer.request.checkFraming(origin.name)
            if isForOwnCarrier(origin) {
                transfer.state = .running
                wire.carry(transfer, to: wire.connections(to: origin), at: addresses, isFresh: isFresh)
            } else if let connection = transfer.carrier as? SecureConnection {
                transfer.state = .running
                connection.open(addresses, transfer)
            } else {
                try libcurl(for: origin).carry(transfer, to: origin, at: addresses, isFresh: isFresh)
            }
        } catch {
            // The delegate is told later.
            transfer.conclude(.failure(error))
        }
    }

    // MARK: - The drain

    /// Has libcurl run at once.
    func poke() {
        guard !isSettling, !mustKeepTransfers else { return }
        if let multi {
            isSettling = true
            if multi.isDue { multi.runDue() }
            curl?.collect()
            isSettling = false
        }
        wakeLater()
    }

    /// Runs libcurl's due work and delivers the results, a bounded number of times; outside libcurl.
    func settle() {
        guard !isSettling else { return }
        isSettling = true
        for _ in 0..<16 {
            if let multi, multi.isDue { multi.runDue() }
            curl?.collect()
            guard !marked.isEmpty else { break }
            // The arrays are swapped, so that neither is copied or released.
            var batch: [Transfer] = []
            swap(&batch, &delivered)
            swap(&batch, &marked)
            for transfer in batch { transfer.deliver() }
            batch.removeAll(keepingCapacity: true)
            swap(&batch, &delivered)
        }
        isSettling = false
        wakeLater()
    }

    func beginEvent() { isSettling = true }

    func endEvent() {
        isSettling = false
        if !marked.isEmpty || multi?.isDue == true { settle() }
    }

    func wakeLater() {
        if !marked.isEmpty || multi?.isDue == true { wake.startInThisTurn() }
    }

    func mark(_ transfer: Transfer) { marked.append(transfer) }

    func released(_ transfer: Transfer) {
        let last = active.removeLast()
        if last !== transfer {
            active[transfer.activeIndex] = last
            last.activeIndex = transfer.activeIndex
        }
        guard let number = transfer.question else { return }
        transfer.question = nil
        resolving.removeValue(forKey: number)?.question.leave()
    }
}

@available(*, unavailable) extension UpstreamClient: Sendable {}

/// The way by which another thread's answer finds the client: the reference is passed between threads, its content is
/// read on the loop only.
private final class ClientReference: @unchecked Sendable {  // `client` is read and written on the loop's thread only
    // Unowned: the client clears it when it ends. A weak reference would slow down every use of the client.
    unowned var client: UpstreamClient?
}
