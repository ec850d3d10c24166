// Demo mode: a transport that plays endpoints from files, in front of one that asks origins.

import DemoMode
public import Drydock
import EventLoop
public import FoundationEssentials
import HTTPTypes
import HTTPWire
import ServiceCore
import Synchronization

/// Answers requests from files, with latencies and failures that are drawn, and hands all others on.
///
/// ```swift
/// let demo = try DemoTransport(
///     [.init("user", path: "/users/:id", latency: .milliseconds(200) ... .milliseconds(900)).failing(0.2)],
///     files: folder,
///     base: URL(string: "https://api.example.com"),
///     over: DownloadManager.shared
/// )
/// let services = ServiceManager(transport: demo, base: URL(string: "https://api.example.com"))
/// ```
///
/// Whoever asks through it gets demo answers as live ones: with the same status, fields and body, mapped by the same
/// code, and repeated by the same retries. They take no slot among `DownloadConfiguration.maximumFetches`, and
/// nothing of them is stored.
///
/// The *n*-th request for a target always has the same latency and the same outcome, on every machine; they are those
/// that the daemon draws for an endpoint with this name and this seed. Any thread may use it.
public final class DemoTransport: Transport {
    private struct Switches {
        var isEnabled = true
        /// By the names of endpoints; those that are not named follow the whole.
        var endpoints: [String: Bool] = [:]
        var ordinals = DrawOrdinals()
    }

    private let plays: [DemoPlay]
    private let base: DemoBase
    private let retry: RetryPolicy
    private let transport: (any Transport)?
    private let time: Timepiece
    private let wall = WallClock()
    /// Protects what it holds.
    private let switches = Mutex(Switches())

    /// Demo mode for these endpoints. It is enabled, reads all files, and blocks as that does.
    /// - Parameters:
    ///   - endpoints: what is played; they have different names.
    ///   - files: a file URL of the folder with their files; of a bundle, its resource URL. Nil, the default, is none:
    ///     every endpoint has a body of its own, or is empty.
    ///   - base: what their paths are below; other URLs are not played. Nil, the default, is every host.
    ///   - seed: of all draws of endpoints that have none of their own; 0 by default.
    ///   - retry: how a failure is drawn again before it is the answer, as a manager's
    ///     `DownloadConfiguration.retry` does for origins; never by default.
    ///   - transport: who gets all other requests, and all of them while it is not enabled; nil, the default, is nobody,
    ///     and they fail with `DownloadError.invalidRequest(_:)`.
    ///   - clock: what latencies are measured by.
    /// - Throws: `DemoError`: a file is missing or invalid, a setting makes no sense, or the base is no `http` URL.
    public init(
        _ endpoints: [Endpoint],
        files: URL? = nil,
        base: URL? = nil,
        seed: UInt64 = 0,
        retry: RetryPolicy = .never,
        over transport: (any Transport)? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) throws(DemoError) {
        var plays: [DemoPlay] = []
        for endpoint in endpoints {
            guard !plays.contains(where: { $0.name == endpoint.name }) else {
                throw .invalidSetting(endpoint: endpoint.name, "there are two with this name: rename one")
            }
            let play = try DemoPlay(endpoint, folder: files, seed: seed)
            // Behind those that are as specific.
            let index = plays.firstIndex { play.pattern.isMoreSpecific(than: $0.pattern) } ?? plays.endIndex
            plays.insert(play, at: index)
        }
        self.plays = plays
        self.base = try DemoBase(base)
        self.retry = retry
        self.transport = transport
        time = Timepiece(clock)
    }

    // MARK: - Switching

    /// Whether endpoints are played that ``setEnabled(_:endpoint:)`` says nothing of; true by default. It may be changed
    /// at any time; requests under way go on as they have begun.
    public var isEnabled: Bool {
        get { switches.withLock { $0.isEnabled } }
        set { switches.withLock { $0.isEnabled = newValue } }
    }

    /// Whether one endpoint is played, whatever ``isEnabled`` says; nil lets it follow that again.
    /// - Parameters:
    ///   - isEnabled: whether it is played.
    ///   - name: the endpoint's; another name changes nothing.
    public func setEnabled(_ isEnabled: Bool?, endpoint name: String) {
        guard plays.contains(where: { $0.name == name }) else { return }
        switches.withLock { $0.endpoints[name] = isEnabled }
    }

    /// Whether one endpoint is played at this moment; false for a name that none has.
    public func isEnabled(endpoint name: String) -> Bool {
        plays.contains { $0.name == name } && switches.withLock { $0.endpoints[name] ?? $0.isEnabled }
    }

    /// Begins all draws anew: the next request for a target is the first one again.
    public func restart() {
        let fresh = DrawOrdinals()
        let old = switches.withLock { switches in
            defer { switches.ordinals = fresh }
            return switches.ordinals
        }
        withExtendedLifetime(old) {}
    }

    // MARK: - Transport

    /// Plays the answer, or hands the request on. Of one that is played, the content is not read.
    /// - Throws: `DownloadError`: what the transport behind throws; `DownloadError.cancelled` where the task is
    ///   cancelled during a latency.
    public func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
        guard let (play, target) = play(for: request) else {
            guard let transport else {
                throw .invalidRequest(
                    "no demo endpoint answers \(request.head.method) \(request.head.shownText), and there is no "
                        + "transport behind: add an endpoint, or give the demo transport another one"
                )
            }
            return try await transport.send(request)
        }
        let method = HTTPWire.Method(request.head.method.rawValue)
        let key = DrawKey(rule: play.rule.name, request: Array("\(method.name) \(target)".utf8))
        var fields = Fields()
        for field in request.head.headerFields { fields.append(field.name.rawName, field.latin1Value) }
        let head = RequestHead(method: method, target: target, fields: fields)
        var attempt = 1
        while true {
            let draw = DemoDraw.draw(play.rule, key: key, ordinal: switches.withLock { $0.ordinals }.next(key))
            if draw.latency > 0 { try await sleep(.nanoseconds(Int64(clamping: draw.latency))) }
            let reply = DemoReply(draw, to: head, now: wall.now())
            let response = HTTPResponse(reply.head)
            if draw.isFailure, let delay = retryDelay(request, after: response, attempt) {
                attempt += 1
                try await sleep(delay)
                continue
            }
            return TransportResponse(response, body: ResponseBody(reply.body))
        }
    }

    /// What the transport behind has; nil for what is played.
    public func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse? {
        if play(for: request) != nil { return nil }
        return try await transport?.staleResponse(to: request)
    }

    /// The endpoint that is played, and the target below the base URL.
    private func play(for request: TransportRequest) -> (DemoPlay, target: String)? {
        guard let target = base.target(of: request.head) else { return nil }
        let method = HTTPWire.Method(request.head.method.rawValue)
        guard let play = plays.first(where: { $0.answers(method, target) }) else { return nil }
        let isEnabled = switches.withLock { $0.endpoints[play.name] ?? $0.isEnabled }
        return isEnabled ? (play, target) : nil
    }

    private func retryDelay(
        _ request: TransportRequest,
        after response: HTTPResponse,
        _ attempt: Int
    ) -> Duration? {
        let path = request.head.path ?? "/"
        return (request.options.retry ?? retry).delay(
            after: response,
            attempt: attempt,
            method: request.head.method,
            path: String(path.prefix { $0 != "?" })
        )
    }

    private func sleep(_ duration: Duration) async throws(DownloadError) {
        do { try await time.sleep(time.now() + duration) } catch { throw .cancelled }
    }
}

/// The part of a URL that all endpoints have in common.
private struct DemoBase: Sendable {
    /// The origin and the path that are meant; nil means every host.
    private let mount: (origin: OriginAddress, path: String)?

    /// - Throws: `DemoError.invalidBase`.
    init(_ base: URL?) throws(DemoError) {
        guard let base else {
            mount = nil
            return
        }
        // Whose credentials a request has is nothing that its URL says here.
        let text = base.absoluteString.withoutUser
        do throws(DownloadError) { mount = try DownloadRequest.target(text) } catch {
            throw .invalidBase(error.description)
        }
    }

    /// What follows the base in a request; nil for one that is not below it.
    func target(of request: HTTPRequest) -> String? {
        guard let (origin, path) = try? DownloadRequest.target(request.text) else { return nil }
        guard let mount else { return path }
        guard mount.origin.root.lowercased() == origin.root.lowercased() else { return nil }
        let prefix = mount.path.hasSuffix("/") ? String(mount.path.dropLast()) : mount.path
        guard path.hasPrefix(prefix) else { return nil }
        let rest = path.dropFirst(prefix.count)
        switch rest.first {
        case nil: return "/"
        case "?": return "/" + rest
        case "/": return String(rest)
        default: return nil
        }
    }
}

extension HTTPRequest {
    /// The text of the request without the query, which may hold secrets.
    fileprivate var shownText: String { String(text.prefix { $0 != "?" }) }
}
