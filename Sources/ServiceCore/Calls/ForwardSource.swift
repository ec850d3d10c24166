// The origin that the target of a request names: its addresses are looked at first, and the request goes to these and
// to no others.

import DownloadCore
import EventLoop
import HTTPWire
import Upstream

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
