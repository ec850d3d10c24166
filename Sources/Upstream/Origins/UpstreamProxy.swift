// HTTP proxies on the way to origins: the choice for a request, the tunnel that a proxy opens, and its failures.

import EventLoop
import Glibc
import HTTPWire

/// An HTTP proxy through which origins are reached; compared by value. It is an object, so that terms copy one
/// reference.
///
/// Sendable: it is immutable.
package final class UpstreamProxy: Sendable, Hashable {
    /// The host in lower case; an IPv6 address keeps its brackets.
    package let host: String
    package let port: UInt16
    /// The value of Proxy-Authorization, which is a secret; nil if the proxy gets none.
    let authorization: String?

    /// - Parameter credentials: sent by the scheme Basic (RFC 7617), whether the proxy asks for them or not.
    package init(host: String, port: UInt16, credentials: (user: String, password: String)? = nil) {
        self.host = host
        self.port = port
        authorization = credentials.map { "Basic " + Base64.encode(Array("\($0.user):\($0.password)".utf8)) }
    }

    /// Host and port, for messages; never the credentials.
    package var authority: String { "\(host):\(port)" }

    package static func == (one: UpstreamProxy, other: UpstreamProxy) -> Bool {
        one === other
            || one.port == other.port && one.host == other.host && one.authorization == other.authorization
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }
}

extension UpstreamError {
    /// This error for a proxy's name, which was looked up in place of the origin's.
    func of(_ proxy: UpstreamProxy) -> UpstreamError {
        UpstreamError(kind, detail: "the proxy \(proxy.authority) cannot be asked: \(detail)")
    }
}

extension UpstreamProxy {
    /// The error if the proxy refused a tunnel, or, with 407, a request.
    /// - Parameter origin: host and port.
    func refusal(of origin: String, status: Int) -> UpstreamError {
        let what =
            switch status {
            case 407 where authorization == nil:
                "wants credentials for the way to \(origin) (407): write upstream_proxy: http://USER:PASSWORD@\(authority)"
            case 407:
                "does not take the user and the password that it gets for the way to \(origin) (407): correct them in upstream_proxy"
            case 508:
                "has had the request to \(origin) before (508): it leads back to this daemon; correct upstream_proxy"
            case 500...: "did not reach \(origin) (\(status)): see its log"
            default:
                "refuses the way to \(origin) (\(status)): have it allowed there, or write upstream_proxy: none where it is not needed"
            }
        return UpstreamError(.proxy(status), detail: "the proxy \(authority) \(what)")
    }

    /// The error if the proxy was asked for a tunnel, and ended the connection or sent bytes that are not an answer.
    func silence(about origin: String, _ text: String) -> UpstreamError {
        UpstreamError(.proxy(nil), detail: "the proxy \(authority) opened no way to \(origin): \(text); see its log")
    }
}

// MARK: - Which proxy

/// The proxies that a service, or forward mode, is configured with.
package enum UpstreamProxies: Sendable, Hashable {
    /// Origins are connected to without a proxy.
    case none
    /// All requests go through this proxy.
    case one(UpstreamProxy)
    /// Each scheme has a proxy or none, and some hosts have none.
    case byScheme(http: UpstreamProxy?, https: UpstreamProxy?, except: ProxyExceptions)

    /// The proxy for an origin; nil for none.
    /// - Parameters:
    ///   - scheme: `http` or `https`.
    ///   - host: the host in lower case, an IPv6 address in brackets.
    package func proxy(scheme: String, host: String, port: UInt16) -> UpstreamProxy? {
        switch self {
        case .none: return nil
        case .one(let proxy): return proxy
        case .byScheme(let http, let https, let exceptions):
            guard let proxy = scheme == "https" ? https : http else { return nil }
            return exceptions.contain(host, port: port) ? nil : proxy
        }
    }
}

/// The hosts of `no_proxy`, by the rules of curl: a name stands for itself and all names below it, with or without a
/// dot in front; an address stands for itself, and with a prefix length for a network; `*` alone stands for all.
/// Unlike for curl, `HOST:PORT` stands for that port alone.
package struct ProxyExceptions: Sendable, Hashable {
    private enum Rule: Hashable {
        /// A name in lower case, without dots at its ends.
        case name(String)
        case network([UInt8], length: Int)
    }

    private struct Entry: Hashable {
        let rule: Rule
        let port: UInt16?
    }

    private let isAll: Bool
    private let entries: [Entry]

    /// - Parameter list: entries separated by commas or blanks, such as `localhost,.example.com,10.0.0.0/8`.
    package init(_ list: String) {
        isAll = list == "*"
        entries = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.compactMap { Self.entry($0) }
    }

    /// Whether the list has the origin.
    /// - Parameter host: the host in lower case, an IPv6 address in brackets.
    package func contain(_ host: String, port: UInt16) -> Bool {
        if isAll { return true }
        if entries.isEmpty { return false }
        let key = ResolverKey(host: host, port: port)
        let address = SystemResolver.numeric(key.host, port: port)?.ipBytes
        let name = key.host.hasSuffix(".") ? String(key.host.dropLast()) : key.host
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            switch (entry.rule, address) {
            case (.network(let network, let length), let address?):
                return Self.isEqual(network, address, bits: length)
            case (.name(let suffix), nil): return name == suffix || name.hasSuffix("." + suffix)
            default: return false
            }
        }
    }

    private static func entry(_ text: Substring) -> Entry? {
        if let rule = network(text) { return Entry(rule: rule, port: nil) }
        var host = text
        var port: UInt16?
        if let colon = text.lastIndex(of: ":"), let number = UInt16(text[text.index(after: colon)...]) {
            (host, port) = (text[..<colon], number)
        }
        if let rule = network(host) { return Entry(rule: rule, port: port) }
        if host.hasSuffix(".") { host = host.dropLast() }
        if host.hasPrefix(".") { host = host.dropFirst() }
        return host.isEmpty ? nil : Entry(rule: .name(String(host)), port: port)
    }

    /// The network that a text names: `10.0.0.1`, `10.0.0.0/8`, `::1`, `[::1]` or `fd00::/8`; nil for other texts.
    private static func network(_ text: Substring) -> Rule? {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        let bare = isBracketed ? text.dropFirst().dropLast() : text
        let parts = bare.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let bytes = SocketAddress(numericHost: String(parts[0]), port: 0)?.ipBytes else {
            return nil
        }
        guard parts.count == 2 else { return .network(bytes, length: bytes.count * 8) }
        guard let length = Int(parts[1]), (0...bytes.count * 8).contains(length) else { return nil }
        return .network(bytes, length: length)
    }

    private static func isEqual(_ one: [UInt8], _ other: [UInt8], bits: Int) -> Bool {
        guard one.count == other.count else { return false }
        return one.indices.allSatisfy { index in
            let left = min(max(bits - index * 8, 0), 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> left)
            return one[index] & mask == other[index] & mask
        }
    }
}

// MARK: - Tunnels

/// A CONNECT request to a proxy.
struct TunnelRequest {
    let proxy: UpstreamProxy
    /// The host and port that the tunnel leads to.
    let authority: String
    /// The entries of Via of the request that the tunnel is for, by which a loop is found.
    let via: [String]

    init(_ proxy: UpstreamProxy, to host: String, _ port: UInt16, via: [String]) {
        self.proxy = proxy
        authority = "\(host):\(port)"
        self.via = via
    }

    /// The field lines of the head of the request, as names and values.
    var fields: [(name: String, value: String)] {
        let credentials = proxy.authorization.map { [("Proxy-Authorization", $0)] } ?? []
        return credentials + via.map { ("Via", $0) }
    }

    var head: [UInt8] {
        var text = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        return Array((text + "\r\n").utf8)
    }
}

/// One CONNECT request on a connection to a proxy; loop-bound, held by the dial. It reads no byte beyond the head of
/// the answer: those belong to the origin.
final class TunnelOpening: IOHandler {
    private let request: TunnelRequest
    // The socket is open until it is taken.
    private var descriptor: Int32
    private let event: (() -> Void) -> Void
    private let completion: (UpstreamError?) -> Void
    private var watch: IOEvent?
    private var unsent: ArraySlice<UInt8>
    private var parser = ResponseParser(limits: .response, isLenient: true)
    /// The received start of a head that is not complete yet.
    private var part: [UInt8] = []
    private var interimCount = 0

    /// - Parameters:
    ///   - event: runs every event of the opening.
    ///   - completion: called once at the end, with nil if there is a tunnel; it takes the descriptor.
    init(
        _ request: TunnelRequest,
        _ descriptor: Int32,
        on loop: EventLoop,
        event: @escaping (() -> Void) -> Void,
        completion: @escaping (UpstreamError?) -> Void
    ) {
        self.request = request
        self.descriptor = descriptor
        self.event = event
        self.completion = completion
        unsent = request.head[...]
        watch = IOEvent(onThreadOf: loop, descriptor: descriptor, handler: self)
    }

    func begin() { send() }

    /// Takes the descriptor, and ends the events.
    func takeDescriptor() -> Int32 {
        watch?.cancel()
        watch = nil
        defer { descriptor = -1 }
        return descriptor
    }

    func ready(_ readiness: IOReadiness) {
        event { if readiness == .write { send() } else { receive() } }
    }

    private func send() {
        while !unsent.isEmpty {
            switch unsent.withUnsafeBytes({ WireSocket.send(descriptor, $0) }) {
            case .bytes(let count): unsent = unsent.dropFirst(count)
            case .wouldBlock, .end, .truncated: return watch?.watch([.read, .write]) ?? ()
            case .failed(let code): return fail(String(cString: strerror(code)))
            }
        }
        watch?.watch(.read)
    }

    private enum Step {
        case more
        case answered(Int)
        /// The received bytes are not an answer.
        case silence(String)
    }

    private func receive() {
        let step = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { room -> Step in
            switch WireSocket.peek(descriptor, into: room) {
            case .bytes(let count): take(UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
            case .wouldBlock: .more
            case .end, .truncated: .silence("it ended the connection")
            case .failed(let code): .silence(String(cString: strerror(code)))
            }
        }
        switch step {
        case .more: break
        case .answered(200..<300): completion(nil)
        case .answered(let status): completion(request.proxy.refusal(of: request.authority, status: status))
        case .silence(let text): fail(text)
        }
    }

    /// Takes the next bytes of the answer.
    /// - Parameter seen: the bytes that wait in the socket, or their beginning.
    private func take(_ seen: UnsafeMutableRawBufferPointer) -> Step {
        let earlier = part.count
        part.append(contentsOf: seen)
        let progress = part.withUnsafeBytes { bytes -> Result<ParseProgress, WireError> in
            do throws(WireError) { return .success(try parser.parse(bytes, requestMethod: .connect)) } catch {
                return .failure(error)
            }
        }
        switch progress {
        case .success(.complete(let length)):
            // Not a byte more is read: the rest belongs to the user of the tunnel.
            _ = Socket.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: seen[..<(length - earlier)]))
            let status = parser.status
            guard status < 200 else { return .answered(status) }
            interimCount += 1
            guard interimCount <= InterimBound.maximumHeads else { return .silence("it does not come to an answer") }
            parser.reset()
            part = []
            return .more
        case .success(.needMore):
            _ = Socket.read(descriptor, into: seen)
            return .more
        case .failure(let error): return .silence("it sent an answer that is refused: \(error.detail)")
        }
    }

    private func fail(_ text: String) { completion(request.proxy.silence(about: request.authority, text)) }
}

@available(*, unavailable) extension TunnelOpening: Sendable {}
