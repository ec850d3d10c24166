// The libcurl objects of one loop: its multi handle, the spare easy handles, and the pinned addresses.

import CLibcurl
import EventLoop

/// The transfers that libcurl carries; loop-bound, the client's own.
final class CurlPool {
    let multi: CurlMulti
    private let bufferSize: Int
    /// Handles that wait for work.
    private var idle: [EasyHandle] = []
    private var pins: [String: Pin] = [:]
    /// The names of proxies for libcurl, which tells its connections apart by them: with the credentials, which libcurl
    /// does not look at, and without the name servers.
    private var aliases: [UpstreamProxy: String] = [:]
    private var aliasCount = 0

    /// Addresses that libcurl was given for a name.
    private struct Pin {
        var addresses: [SocketAddress]
        var at: UInt64
    }

    init(_ multi: CurlMulti, bufferSize: Int) {
        self.multi = multi
        self.bufferSize = bufferSize
    }

    /// Gives the transfer a handle, whose timer it needs at once.
    /// - Throws: `.internal` where libcurl has none, `.request` where it takes no such host.
    func take(_ transfer: Transfer, to place: Origin) throws(UpstreamError) {
        guard let target = target(place) else {
            throw UpstreamError(.request, detail: "libcurl takes no URL with \(place.name): check the host")
        }
        guard let handle = idle.popLast() ?? EasyHandle(self, bufferSize: bufferSize) else {
            throw UpstreamError(.internal, detail: "libcurl has no handle for the request to \(place.name)")
        }
        handle.take(transfer, to: target)
        transfer.armTimer()
    }

    private func target(_ place: Origin) -> CurlPlace? {
        if let known = place.carried as? CurlPlace { return known }
        let new = CurlPlace(place, proxyAlias: place.proxy.map(alias))
        place.carried = new
        return new
    }

    private func alias(of proxy: UpstreamProxy) -> String {
        if let known = aliases[proxy] { return known }
        // A reload may bring new ones; what an old name meant is never given away.
        if aliases.count >= 64 { aliases.removeAll() }
        aliasCount += 1
        let new = "proxy-\(aliasCount)"
        aliases[proxy] = new
        return new
    }

    /// Has libcurl begin with the transfer of a handle.
    /// - Parameters:
    ///   - addresses: the only ones that it may go to.
    ///   - isFresh: by a connection of its own, not by an idle one.
    func carry(
        _ transfer: Transfer,
        to place: Origin,
        at addresses: [SocketAddress],
        isFresh: Bool
    ) throws(UpstreamError) {
        guard let handle = transfer.carrier as? EasyHandle else {
            throw UpstreamError(.internal, detail: "libcurl has no handle for the request to \(place.name)")
        }
        handle.apply(transfer.request, transfer.target, place, isFresh: isFresh)
        handle.addresses = addresses
        // What libcurl was told has helped once already where the transfer begins anew.
        if place.isPinned { pin(handle, addresses, always: handle.retries > 0 || transfer.timesSent > 0) }
        transfer.state = .running
        transfer.deadlines.enter(.connecting, now: Monotonic.now())
        guard handle.begin() else {
            throw UpstreamError(.internal, detail: "libcurl did not take the request to \(place.name)")
        }
    }

    /// Gives libcurl the addresses of a name, unless it got the same ones a short time ago; it forgets them after 60 s.
    private func pin(_ handle: EasyHandle, _ addresses: [SocketAddress], always: Bool) {
        guard let name = handle.target?.pinName else { return }
        let now = Monotonic.now()
        if !always, let pin = pins[name], pin.addresses == addresses, now < pin.at &+ 30_000_000_000 {
            return handle.unpin()
        }
        if pins.count >= 1024 { pins.removeAll(keepingCapacity: true) }
        pins[name] = Pin(addresses: addresses, at: now)
        handle.pin(name, to: addresses)
    }

    /// Hears of the transfers that libcurl is done with; outside libcurl.
    func collect() {
        while let (easy, result) = multi.nextFinished() {
            EasyHandle.of(c_curl_get_private(easy))?.finish(result)
        }
    }

    /// The handle is out of libcurl's hands, and its transfer has ended.
    func giveBack(_ handle: EasyHandle) {
        if idle.count < 64 { idle.append(handle) }
    }

    /// Closes every connection; every transfer has ended by now.
    func close() {
        // First the handles, then the multi, then what its callbacks used.
        idle.removeAll()
        multi.close()
    }
}

@available(*, unavailable) extension CurlPool: Sendable {}
