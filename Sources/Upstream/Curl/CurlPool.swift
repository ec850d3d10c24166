// The libcurl objects of one loop that are reused: its multi handle, the spare easy handles, the lists of fields, and
// the pinned addresses.

import CLibcurl
import EventLoop
import HTTPWire

/// The transfers that libcurl carries; loop-bound, owned by the client.
final class CurlPool {
    let multi: CurlMulti
    private let bufferSize: Int
    /// The easy handles that carry no transfer.
    private var idle: [EasyHandle] = []
    private var pins: [String: Pin] = [:]
    /// The names of proxies for libcurl, by which it tells its connections apart: an alias stands for the credentials,
    /// too, which libcurl does not compare, and does not depend on the name servers.
    private var aliases: [UpstreamProxy: String] = [:]
    private var aliasCount = 0

    /// The addresses that libcurl was given for a name.
    private struct Pin {
        var addresses: [SocketAddress]
        var at: UInt64
    }

    init(_ multi: CurlMulti, bufferSize: Int) {
        self.multi = multi
        self.bufferSize = bufferSize
    }

    /// Gives the transfer a handle, whose timer it needs at once.
    /// - Throws: `.internal` if libcurl has no handle, `.request` if it does not accept the host.
    func take(_ transfer: Transfer, to origin: Origin) throws(UpstreamError) {
        guard let target = target(origin) else {
            throw UpstreamError(.request, detail: "libcurl takes no URL with \(origin.name): check the host")
        }
        guard let handle = idle.popLast() ?? EasyHandle(self, bufferSize: bufferSize) else {
            throw UpstreamError(.internal, detail: "libcurl has no handle for the request to \(origin.name)")
        }
        handle.take(transfer, to: target)
        transfer.armTimer()
    }

    private func target(_ origin: Origin) -> CurlTarget? {
        if let known = origin.carried as? CurlTarget { return known }
        let new = CurlTarget(origin, proxyAlias: origin.proxy.map(alias))
        origin.carried = new
        return new
    }

    private func alias(of proxy: UpstreamProxy) -> String {
        if let known = aliases[proxy] { return known }
        // A reload may bring new proxies; an alias is never used again for another one.
        if aliases.count >= 64 { aliases.removeAll() }
        aliasCount += 1
        let new = "proxy-\(aliasCount)"
        aliases[proxy] = new
        return new
    }

    /// Starts the transfer of a handle in libcurl.
    /// - Parameters:
    ///   - addresses: the only addresses that it may go to.
    ///   - isFresh: whether it needs a new connection rather than an idle one.
    func carry(
        _ transfer: Transfer,
        to origin: Origin,
        at addresses: [SocketAddress],
        isFresh: Bool
    ) throws(UpstreamError) {
        guard let handle = transfer.carrier as? EasyHandle else {
            throw UpstreamError(.internal, detail: "libcurl has no handle for the request to \(origin.name)")
        }
        handle.apply(transfer.request, transfer.target, origin, isFresh: isFresh)
        handle.addresses = addresses
        // The addresses are always given again for another try, since libcurl may have forgotten them.
        if origin.isPinned { pin(handle, addresses, always: handle.retries > 0 || transfer.timesSent > 0) }
        transfer.state = .running
        transfer.deadlines.enter(.connecting, now: Monotonic.now())
        guard handle.begin() else {
            throw UpstreamError(.internal, detail: "libcurl did not take the request to \(origin.name)")
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

    /// Collects the transfers that libcurl has finished; called outside libcurl.
    func collect() {
        while let (easy, result) = multi.nextFinished() {
            EasyHandle.of(c_curl_get_private(easy))?.finish(result)
        }
    }

    /// Takes a handle back whose transfer has ended and which libcurl does not use any more.
    func giveBack(_ handle: EasyHandle) {
        if idle.count < 64 { idle.append(handle) }
    }

    /// Closes every connection; the caller has ended every transfer.
    func close() {
        // The order matters: first the handles, then the multi, then the objects that its callbacks used.
        idle.removeAll()
        multi.close()
    }
}

@available(*, unavailable) extension CurlPool: Sendable {}

// MARK: - Where to connect

/// An origin in the form that libcurl needs; loop-bound, held by the ``Origin`` and by every handle that uses its URL.
final class CurlTarget {
    /// The parsed URL to which libcurl connects; a request's target never passes through its URL parser. Freed with
    /// this object, which the handles that use the URL hold.
    let url: OpaquePointer
    /// The host and port under which libcurl is given addresses: those of the origin, or of its proxy.
    let pinName: String
    /// The URL of the proxy for libcurl; empty if there is none.
    let proxyURL: String

    /// Makes the form of an origin; nil if libcurl does not accept the URL.
    /// - Parameter alias: the name that stands for the proxy.
    init?(_ origin: Origin, proxyAlias alias: String? = nil) {
        guard let url = curl_url() else { return nil }
        let text = "\(origin.isTLS ? "https" : "http")://\(origin.connectName):\(origin.url.port)/"
        guard curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else {
            curl_url_cleanup(url)
            return nil
        }
        self.url = url
        if let proxy = origin.proxy, let alias {
            pinName = "\(alias):\(proxy.port)"
            proxyURL = "http://\(pinName)"
        } else {
            pinName = "\(origin.url.name(numericHost: nil)):\(origin.url.port)"
            proxyURL = ""
        }
    }

    deinit { curl_url_cleanup(url) }
}

@available(*, unavailable) extension CurlTarget: Sendable {}

// MARK: - Lists of fields

/// A list of C strings that libcurl reads during one transfer; loop-bound. libcurl does not free it.
final class HeaderList {
    // This object owns both. They are replaced only while entries are added, when no transfer uses the list.
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 1)
    private var nodes = UnsafeMutableBufferPointer<curl_slist>.allocate(capacity: 32)
    private var used = 0
    /// The offset at which each entry begins.
    private var starts: [Int] = []

    deinit {
        memory.deallocate()
        nodes.deallocate()
    }

    func removeAll() {
        used = 0
        starts.removeAll(keepingCapacity: true)
    }

    /// Adds one line; libcurl writes a name without a value as `Name;`.
    func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        starts.append(used)
        write(name)
        if value.isEmpty {
            write(UInt8(ascii: ";"))
        } else {
            write(UInt8(ascii: ":"))
            write(UInt8(ascii: " "))
        }
        write(value)
        write(0)
    }

    /// Adds a line as libcurl reads it: `Name:` keeps libcurl from adding that field itself.
    func append(_ line: String) {
        starts.append(used)
        var line = line
        line.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        write(0)
    }

    /// Adds all lines except Host as one entry: libcurl writes an entry as it is, and searches all entries for each
    /// field that it might add itself. No value may be empty.
    func appendTogether(_ fields: Fields) {
        let start = used
        fields.forEachRun(without: .host) { write($0) }
        guard used > start else { return }
        starts.append(start)
        // libcurl writes the end of the last line itself.
        used -= 2
        write(0)
    }

    /// The list; valid until the next `removeAll()`.
    func link() -> UnsafeMutablePointer<curl_slist>? {
        guard !starts.isEmpty else { return nil }
        if starts.count > nodes.count {
            nodes.deallocate()
            nodes = .allocate(capacity: starts.count * 2)
        }
        guard let text = memory.baseAddress, let first = nodes.baseAddress else { return nil }
        for position in starts.indices {
            let next = position + 1 < starts.count ? first + position + 1 : nil
            let data = (text + starts[position]).assumingMemoryBound(to: CChar.self)
            (first + position).initialize(to: curl_slist(data: data, next: next))
        }
        return first
    }

    // MARK: - Bytes

    private func write(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        makeRoom(for: bytes.count)
        memory.baseAddress.map { ($0 + used).copyMemory(from: source, byteCount: bytes.count) }
        used += bytes.count
    }

    private func write(_ byte: UInt8) {
        makeRoom(for: 1)
        memory[used] = byte
        used += 1
    }

    private func makeRoom(for count: Int) {
        guard count > memory.count - used else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (used + count), alignment: 1)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<used]))
        memory.deallocate()
        memory = larger
    }
}

@available(*, unavailable) extension HeaderList: Sendable {}
