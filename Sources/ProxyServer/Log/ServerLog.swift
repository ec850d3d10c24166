// The server's lines in the daemon's log: a bounded number about errors that clients cause, and at debug level one for
// each decision, with the bodies if a route asks for them.

import CacheStore
import Content
import EventLoop
import HTTPWire
package import Logging
package import Policies
import Synchronization
import Upstream

/// An error that a client causes, and that an operator may want to know of.
enum ClientTrouble: Int, Sendable, CaseIterable {
    /// The bytes are not a request, or break a rule of HTTP/1.1.
    case malformed
    case tls, http2
    /// The client may not connect, or too many connections are open.
    case refusedClient
    /// The rules allow no tunnel to the target.
    case refusedTunnel
    /// The target of a tunnel could not be reached.
    case failedTunnel
    case failedUpgrade
    /// The client does not trust the certificate that it is shown inside of its tunnel.
    case distrust
    /// The request does not match the OpenAPI document of its service.
    case undescribed
    /// Connections cannot be accepted, mostly because descriptors have run out.
    case accept

    /// The level of the line: clients cannot cause warnings, except by leaving the daemon unable to accept.
    var level: Logger.Level { self == .accept ? .warning : .notice }

    var text: Logger.Message {
        switch self {
        case .malformed: "refused what a client sent, which is not acceptable HTTP/1.1"
        case .tls: "a client speaks TLS to this port, which takes plain HTTP: use http:// in its URL, not https://"
        case .http2:
            "a client speaks HTTP/2 to this port, which takes HTTP/1.1: switch HTTP/2 off in the client, such as by curl --http1.1"
        case .refusedClient: "refused a client's connection"
        case .refusedTunnel: "refused a CONNECT"
        case .failedTunnel: "a CONNECT failed"
        case .failedUpgrade: "an upgrade failed"
        case .distrust: "a client does not trust the local authority, and what it asks in its tunnel is not answered"
        case .undescribed: "a request is not as the document of its service says"
        case .accept: "cannot accept connections, trying again in 100 ms"
        }
    }

    /// Classifies the problem of a CONNECT that failed.
    init(connect problem: Problem) {
        let refusals = ["http_request_denied", "destination_ip_prohibited", "proxy_loop_detected"]
        self = problem.proxyError.map(refusals.contains) == true ? .refusedTunnel : .failedTunnel
    }

    /// Recognises the first bytes of a refused connection; nil for a protocol that is not known here.
    init?(firstBytes bytes: UnsafeRawBufferPointer) {
        // A TLS record begins with a handshake, and with a version that is written 3.x.
        if bytes.first == 0x16, bytes.count < 2 || bytes[1] == 0x03 {
            self = .tls
        } else if bytes.starts(with: "PRI * HTTP/2.0\r\n".utf8) {
            self = .http2
        } else {
            return nil
        }
    }
}

/// The daemon's own log as the server uses it.
///
/// Sendable: the counts are under a mutex.
package final class ServerLog: Sendable {
    /// The most lines about one kind of trouble within ``period``; the others are counted only, so that no client can
    /// fill a disk.
    static let most = 10
    /// The length of a period in nanoseconds.
    static let period: UInt64 = 120_000_000_000

    /// The lines about one kind of trouble in the current period.
    private struct Told {
        var began: UInt64 = 0
        var lines = 0
        var leftOut = 0
    }

    private let clients: Logger
    private let requests: Logger
    private let downloads: Logger
    private let told = Mutex([Told](repeating: Told(), count: ClientTrouble.allCases.count))

    /// - Parameter logger: the daemon's log, of which the server uses three modules.
    package init(_ logger: Logger) {
        clients = logger.of(.client)
        requests = logger.of(.request)
        downloads = logger.of(.download)
    }

    /// A log that writes nothing.
    package static var nowhere: ServerLog { ServerLog(Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }) }

    /// True if the decisions about each request are logged. Not for the hot path.
    var tellsDecisions: Bool { LogModule.ofRequests.contains { logger(of: $0).logLevel <= .debug } }

    private func logger(of module: LogModule) -> Logger { module == .download ? downloads : requests }

    /// Logs a trouble, or counts it if there were too many lines in this period. Any thread.
    /// - Parameters:
    ///   - facts: names and values that follow the text.
    ///   - now: monotonic nanoseconds.
    func tell(_ trouble: ClientTrouble, _ facts: [(String, String)], now: UInt64 = Monotonic.now()) {
        tellLeftOut(now: now)
        let isTold = told.withLock { told in
            if told[trouble.rawValue].lines == 0 { told[trouble.rawValue].began = now }
            guard told[trouble.rawValue].lines < Self.most else {
                told[trouble.rawValue].leftOut += 1
                return false
            }
            told[trouble.rawValue].lines += 1
            return true
        }
        if isTold { clients.log(level: trouble.level, trouble.text, metadata: Self.metadata(facts)) }
    }

    /// Logs how many lines were left out in periods that are over; called from time to time.
    /// - Parameter now: monotonic nanoseconds.
    func tellLeftOut(now: UInt64) {
        let leftOut = told.withLock { told in
            var leftOut: [(ClientTrouble, Int)] = []
            for trouble in ClientTrouble.allCases {
                let last = told[trouble.rawValue]
                guard last.lines > 0, now > last.began, now - last.began >= Self.period else { continue }
                if last.leftOut > 0 { leftOut.append((trouble, last.leftOut)) }
                told[trouble.rawValue] = Told()
            }
            return leftOut
        }
        for (trouble, count) in leftOut {
            clients.log(
                level: trouble.level,
                trouble.text,
                metadata: ["left_out": "\(count) more such lines in two minutes"]
            )
        }
    }

    /// Logs the bodies of a request and of its answer, for a route that asks for it.
    func tellBodies(_ id: String, _ facts: [(String, String)]) {
        requests.info("bodies", metadata: Self.metadata([("id", id)] + facts))
    }

    /// Logs one decision about a request.
    /// - Parameter module: ``LogModule/request`` or ``LogModule/download``.
    func debug(_ module: LogModule, _ text: String, _ id: String, _ facts: [(String, String)]) {
        logger(of: module).debug("\(text)", metadata: Self.metadata([("id", id)] + facts))
    }

    private static func metadata(_ facts: [(String, String)]) -> Logger.Metadata {
        var metadata = Logger.Metadata()
        for (name, value) in facts where !value.isEmpty { metadata[name] = .string(value) }
        return metadata
    }
}

extension Logger {
    /// The logger of a module: its handler finds the module's name in the metadata, and has a level for it.
    package func of(_ module: LogModule) -> Logger {
        var logger = self
        logger[metadataKey: LogModule.field] = .string(module.rawValue)
        return logger
    }
}

// MARK: - The bodies of a request and of its answer for the daemon's log

/// Collects the excerpts of both bodies of one request. Loop-bound.
final class BodyLog {
    private var request: BodyExcerpt
    private var response: BodyExcerpt

    /// - Parameter limit: the most bytes that are shown of each body.
    init(limit: Int) {
        request = BodyExcerpt(limit: limit)
        response = BodyExcerpt(limit: limit)
    }

    /// Wraps the request's body, so that its bytes are seen as the origin gets them.
    func watching(_ body: any RequestBodySource) -> any RequestBodySource {
        SeenBody(body) { [weak self] in self?.request.append($0) }
    }

    /// Adds a piece of the answer's body; a part of a file is read on the I/O pool.
    func see(_ piece: BodyPiece, on loop: isolated EventLoop) async {
        var shown: [UInt8] = []
        if response.room > 0, let part = try? await piece.prefix(response.room).load(on: loop) {
            shown = part.chunk.array(part.range)
        }
        response.append(shown, of: piece.count)
    }

    /// The names and values of the log line.
    /// - Parameters:
    ///   - head: the head of the answer; nil if a problem document was the answer.
    ///   - secrets: the parts of contents that are hidden.
    func facts(_ asked: RequestHead, _ head: ResponseHead?, _ secrets: SecretContent = SecretContent()) -> [(
        String, String
    )] {
        [
            ("method", asked.method.name),
            (
                "request",
                request.text(
                    secrets,
                    contentType: asked.fields.first(.contentType),
                    coding: asked.fields.combined(.contentEncoding)
                )
            ),
            (
                "response",
                response.text(
                    secrets,
                    contentType: head?.fields.first(.contentType),
                    coding: head?.fields.combined(.contentEncoding)
                )
            ),
        ]
    }
}

@available(*, unavailable) extension BodyLog: Sendable {}

extension BodyPiece {
    /// The first bytes of the piece, at most `most`.
    fileprivate func prefix(_ most: Int) -> BodyPiece {
        switch self {
        case .bytes(let chunk, let range): .bytes(chunk, range.prefix(most))
        case .file(let file, let offset, let count): .file(file, offset: offset, count: min(count, most))
        }
    }
}

/// Passes a request body on, and shows each part to a closure as it is read. Loop-bound.
final class SeenBody: RequestBodySource {
    private let body: any RequestBodySource
    private let see: (UnsafeRawBufferPointer) -> Void
    private let ended: () -> Void

    /// - Parameter ended: called when the body has ended.
    init(
        _ body: any RequestBodySource,
        _ see: @escaping (UnsafeRawBufferPointer) -> Void,
        ended: @escaping () -> Void = {}
    ) {
        self.body = body
        self.see = see
        self.ended = ended
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        switch result {
        case .bytes(let count): see(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        case .end: ended()
        case .wait, .failed: break
        }
        return result
    }
}

@available(*, unavailable) extension SeenBody: Sendable {}
