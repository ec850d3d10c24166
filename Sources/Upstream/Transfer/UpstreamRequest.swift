// A request to an origin, with its deadlines, TLS settings and allowed addresses.

package import EventLoop
package import HTTPWire
package import TLS

/// The settings that all requests of one plan of a service to one origin share. It is an object, so that a request
/// copies one reference.
///
/// Sendable: it is immutable.
package final class UpstreamTerms: Sendable {
    /// The absolute URL, `http` or `https`; the part after the authority goes into the request line byte for byte. A
    /// target of `OPTIONS *` is written as a URL without a path that ends in `*`.
    package let url: String
    /// The Host for requests without one, in visible ASCII; nil makes it from ``url``.
    package let host: String?
    package let timeouts: Timeouts
    package let tls: TLSOptions
    /// What ``tls`` comes to for an upgrade to an `https` origin (``OriginSessions``); nil for all other requests.
    package let session: TLSContext?
    /// The rules for the addresses that the requests may go to.
    package let target: TargetRules
    /// The only addresses to connect to, if the host (or that of the proxy) was looked up and checked before; nil to
    /// ask the resolver.
    package let addresses: [SocketAddress]?
    /// The proxy that the requests go through, nil for none. It looks the origin's host up, so that ``target`` applies
    /// only if the host is an address.
    package let proxy: UpstreamProxy?
    /// The limits of a response head. libcurl also has limits: 100 KiB for a line and, from 8.3 on or
    /// with its fix, 300 KiB in all.
    package let limits: HeadLimits
    /// Whether to accept responses that break a rule of HTTP/1.1, but can be read in one way only.
    package let isLenient: Bool

    package init(
        url: String,
        host: String? = nil,
        timeouts: Timeouts = Timeouts(),
        tls: TLSOptions = TLSOptions(),
        session: TLSContext? = nil,
        target: TargetRules = .any,
        addresses: [SocketAddress]? = nil,
        proxy: UpstreamProxy? = nil,
        limits: HeadLimits = .response,
        isLenient: Bool = true
    ) {
        self.url = url
        self.host = host
        self.timeouts = timeouts
        self.tls = tls
        self.session = session
        self.target = target
        self.addresses = addresses
        self.proxy = proxy
        self.limits = limits
        self.isLenient = isLenient
    }
}

/// One request to an origin.
package struct UpstreamRequest: Sendable {
    package var method: Method
    /// The path and query that follow the URL of ``terms`` if that has only a scheme and an authority, so that the
    /// origin is found without making a URL.
    package var path: String
    /// The field lines to send, in this order and unchanged; Host is included, and sent first.
    package var fields: Fields
    /// How the request's body is framed: `.none`, `.length` or `.chunked`. `fields` must say the same.
    package var bodyFraming: BodyFraming
    package var terms: UpstreamTerms
    /// Whether the request asks for another protocol (RFC 9110 section 7.8), without a body: it goes over a new
    /// connection, which belongs to the delegate after a 101.
    package var isUpgrade: Bool

    package init(
        method: Method = .get,
        path: String = "",
        fields: Fields = Fields(),
        bodyFraming: BodyFraming = .none,
        terms: UpstreamTerms,
        isUpgrade: Bool = false
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.bodyFraming = bodyFraming
        self.terms = terms
        self.isUpgrade = isUpgrade
    }
}

extension UpstreamRequest {
    /// Whether the request has a body that must be read from the source.
    var hasBody: Bool {
        switch bodyFraming {
        case .none, .length(0), .untilClose: false
        default: true
        }
    }

    /// Checks that the fields agree with the framing of the body.
    /// - Parameter name: host and port, as errors name them.
    /// - Throws: `.request` if they do not agree, or the method is not supported.
    func checkFraming(_ name: @autoclosure () -> String) throws(UpstreamError) {
        let isPlain = !fields.contains(.contentLength) && !fields.contains(.transferEncoding)
        if case .none = bodyFraming, isPlain, method == .get { return }
        let declared = fields.all(.contentLength)
        let hasCoding = fields.contains(.transferEncoding)
        let fits: Bool
        switch bodyFraming {
        case .none, .length(0): fits = !hasCoding && declared.allSatisfy { $0 == "0" } && declared.count <= 1
        case .length(let length): fits = !hasCoding && (declared.isEmpty || declared == [String(length)])
        case .chunked: fits = declared.isEmpty && (!hasCoding || fields.all(.transferEncoding) == ["chunked"])
        case .untilClose: fits = false
        }
        guard fits else {
            let detail = "the fields of the request to \(name()) say another body length than its framing"
            throw UpstreamError(.request, detail: detail)
        }
        guard method != .connect else {
            throw UpstreamError(
                .request,
                detail: "CONNECT to \(name()) is a tunnel's business, not a transfer's"
            )
        }
        if method == .head, hasBody {
            throw UpstreamError(
                .request,
                detail: "a HEAD request with a body cannot go to \(name()): send none"
            )
        }
    }
}

/// Deadlines in nanoseconds; nil for none. They are suspended while the consumer pauses the transfer, and while the
/// request's body waits for the client.
package struct Timeouts: Sendable, Equatable {
    /// The time for name resolution, TCP and TLS, including a wait for one of the limited connections.
    package var connect: UInt64?
    /// The time from the end of the request (from the connection, if it has no body) to the end of the final response
    /// head.
    package var firstByte: UInt64?
    /// The time without a byte of a body in either direction.
    package var idle: UInt64?
    /// The time from the start to the end.
    package var total: UInt64?
    /// The time without a byte in either direction of a tunnel, such as after an upgrade.
    package var tunnel: UInt64?

    package init(
        connect: UInt64? = 5_000_000_000,
        firstByte: UInt64? = 30_000_000_000,
        idle: UInt64? = 120_000_000_000,
        total: UInt64? = nil,
        tunnel: UInt64? = 3_600_000_000_000
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
        self.tunnel = tunnel
    }

    /// Timeouts without any deadline.
    package static let none = Timeouts(connect: nil, firstByte: nil, idle: nil, total: nil, tunnel: nil)
}

/// The verification of an `https` origin, and the client certificate for it. TLS 1.2 is the least version.
package struct TLSOptions: Sendable, Hashable {
    /// Whether the certificate and its name are verified; default true.
    package var verify: Bool
    /// A PEM file whose authorities replace the system's; nil uses the system's.
    package var ca: String?
    /// A PEM file with the client certificate and its chain.
    package var clientCertificate: String?
    /// A PEM file with the certificate's key; nil if it is in ``clientCertificate``.
    package var clientKey: String?
    /// Public keys of which the origin must show one, each as `sha256//` and the Base64 of the digest of its
    /// SubjectPublicKeyInfo; checked with ``verify`` and without. Empty to allow any.
    package var pins: [String]
    /// The key under which ``ca`` is configured, for errors.
    package var caKey: String
    /// Whether a program decides about certificates that do not verify, and about those that an origin asks for. If so,
    /// the error of a handshake has what the origin showed (``UpstreamError/challenge``), and a handshake in which it
    /// asks for a certificate fails if there is no ``clientCertificate``.
    package var tellsChallenges = false
    /// Whether an origin that asks for a certificate gets none, and the handshake goes on.
    package var declinesCertificate = false

    package init(
        verify: Bool = true,
        ca: String? = nil,
        clientCertificate: String? = nil,
        clientKey: String? = nil,
        pins: [String] = [],
        caKey: String = "'tls.ca'"
    ) {
        self.verify = verify
        self.ca = ca
        self.clientCertificate = clientCertificate
        self.clientKey = clientKey
        self.pins = pins
        self.caKey = caKey
    }
}

/// Which addresses a request may go to, decided after name resolution.
package enum TargetRules: Sendable, Equatable {
    /// Any address is allowed: for hosts that the configuration names.
    case any
    /// Forward mode: loopback, private, link-local or otherwise internal addresses are refused
    /// (`SocketAddress.isInternal`). A host that a rule names is resolved with ``any``.
    case noPrivate
}

// MARK: - Deadlines

/// The deadlines of a transfer and the phase that they depend on. Times are `Monotonic` nanoseconds, passed in.
///
/// Transitions of the phase: connecting → sending | waiting; sending → waiting | receiving; waiting → receiving.
package struct Deadlines {
    package enum Phase: Equatable, Sendable { case resolving, connecting, sending, waiting, receiving }

    private var timeouts: Timeouts
    package private(set) var phase = Phase.resolving
    /// The start of the transfer and of its phase; both move on by the length of each suspension, so that suspended
    /// time does not count.
    private var startedAt: UInt64
    private var phaseSince: UInt64
    private var suspendedAt: UInt64?
    /// The nanoseconds until there was a connection, with look-up and handshakes; nil if one was waiting.
    package private(set) var connectTime: UInt64?
    /// The nanoseconds until the head of the response.
    package private(set) var firstByteTime: UInt64?

    package init(_ timeouts: Timeouts, now: UInt64) {
        self.timeouts = timeouts
        startedAt = now
        phaseSince = now
    }

    /// Begins a new phase; resolving and connecting count as one.
    package mutating func enter(_ next: Phase, now: UInt64) {
        let isConnecting = phase == .resolving && next == .connecting
        if !isConnecting, phase != next {
            if phase == .connecting { connectTime = now &- startedAt }
            if next == .receiving { firstByteTime = now &- startedAt }
            phaseSince = now
        }
        phase = next
    }

    /// Ends the idle deadline.
    mutating func liftIdle() { timeouts.idle = nil }

    /// Counts a byte of a body in either direction as progress.
    package mutating func progress(now: UInt64) { phaseSince = now }

    /// Suspends the deadlines, or lets them run on.
    package mutating func setSuspended(_ isWanted: Bool, now: UInt64) {
        if isWanted {
            if suspendedAt == nil { suspendedAt = now }
        } else if let began = suspendedAt {
            suspendedAt = nil
            let pause = now > began ? now - began : 0
            startedAt += pause
            phaseSince = min(phaseSince + pause, now)
        }
    }

    /// The earliest deadline; nil while suspended or if none applies.
    package var next: (at: UInt64, what: TimeoutPhase)? {
        guard suspendedAt == nil else { return nil }
        let (limit, what): (UInt64?, TimeoutPhase) =
            switch phase {
            case .resolving: (timeouts.connect, .resolve)
            case .connecting: (timeouts.connect, .connect)
            case .waiting: (timeouts.firstByte, .firstByte)
            case .sending, .receiving: (timeouts.idle, .idle)
            }
        let ofPhase = limit.map { (at: saturating(phaseSince, $0), what: what) }
        guard let total = timeouts.total else { return ofPhase }
        let ofTotal = (at: saturating(startedAt, total), what: TimeoutPhase.total)
        guard let ofPhase, ofPhase.at <= ofTotal.at else { return ofTotal }
        return ofPhase
    }

    /// The deadline that has passed; nil if none has.
    package func expired(now: UInt64) -> TimeoutPhase? {
        guard let next, next.at <= now else { return nil }
        return next.what
    }

    private func saturating(_ time: UInt64, _ wait: UInt64) -> UInt64 {
        let (sum, overflow) = time.addingReportingOverflow(wait)
        return overflow ? .max : sum
    }
}
