// A client in a tunnel that is read: CONNECT, a TLS session over it, and requests inside.

import EventLoop
import Glibc
import HTTPWire
import Synchronization
import TLS
import TestSupport

@testable import ProxyServer

/// Makes sessions with leaves of an authority of its own, and notes how they end.
final class ScriptedInterception: Interception {
    let authority: LocalAuthority
    private let context: TLSContext
    private let rooms = Mutex<[ObjectIdentifier: LoopBox<TLSRoom>]>([:])
    let decision = Monitor(InterceptionDecision.read)
    /// The target of each tunnel, and what its client called itself.
    let begun = Monitor<[String]>([])
    /// What each session was at its end.
    let ended = Monitor<[String]>([])

    init() throws {
        let authority = try LocalAuthority(name: "Of a test", now: Int64(time(nil)))
        let leaves = try LeafCache(authority) { Int64(time(nil)) }
        self.authority = authority
        context = try TLSContext(tickets: nil) { host in host.flatMap { leaves.leaf(for: $0) } }
    }

    func decide(on target: Authority, for client: SocketAddress) -> InterceptionDecision { decision.read { $0 } }

    func session(
        in tunnel: ReadTunnel,
        hello: ClientHello?,
        received: [UInt8],
        over transport: any ByteTransport,
        on loop: isolated EventLoop
    ) -> InnerSession? {
        begun.update { $0.append("\(tunnel.target) \(tunnel.userAgent)") }
        let key = ObjectIdentifier(loop)
        let room = rooms.withLock { $0[key] }?.value(on: loop) ?? TLSRoom()
        let box = LoopBox(room, on: loop)
        rooms.withLock { $0[key] = box }
        guard
            let session = try? TLSTransport(
                serving: context,
                over: transport,
                in: room,
                at: HostName(tunnel.target.host),
                received: received
            )
        else { return nil }
        return InnerSession(session) { [ended] in
            let isDistrust = session.failure?.kind == .distrusted
            ended.update { $0.append(session.failure.map { "\($0.kind)" } ?? "fine") }
            return isDistrust ? [("client", "of a test")] : nil
        }
    }
}

/// Blocking; used by one thread.
final class InnerClient: TLSWire {
    let raw: RawClient
    let session: TLSSession

    /// Sends CONNECT, and prepares a session in the tunnel.
    /// - Parameters:
    ///   - name: what TLS asks for; nil for the host of the tunnel.
    ///   - trusted: whose certificates it accepts.
    init(
        _ raw: RawClient,
        to target: String,
        asking name: String? = nil,
        trusting trusted: TLSContext.Trust,
        offering protocols: [String] = ["http/1.1"],
        early: String = ""
    ) throws {
        self.raw = raw
        try raw.send("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\nUser-Agent: inner/1\r\n\r\n\(early)")
        let head = try raw.readHead(method: "CONNECT")
        guard head.status == 200 else { throw TestSupportError.failed("CONNECT: \(head.status)") }
        let host = try name ?? Self.host(target)
        guard let asked = HostName(host) else { throw TestSupportError.failed("\(host) is no host") }
        let context = try TLSContext(asking: protocols, trust: trusted)
        session = try TLSSession(asking: context, for: asked, output: TLSOutput())
        session.wire = self
    }

    private static func host(_ target: String) throws -> String {
        guard let authority = Authority.parse(target) else { throw TestSupportError.failed("no authority") }
        return authority.host
    }

    /// Waits, and before that says what the session has to say.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        guard (try? flush()) != nil, let byte = try? raw.readRaw(1) else { return .end }
        buffer.copyBytes(from: byte)
        return .bytes(1)
    }

    /// What the session has to say, taken.
    func taken() -> [UInt8] { session.output.takeAll() }

    private func flush() throws {
        let bytes = taken()
        if !bytes.isEmpty { try raw.send(bytes) }
    }

    /// The first message, which is not sent.
    func hello() -> [UInt8] {
        session.wire = nil
        _ = session.handshake()
        session.wire = self
        return taken()
    }

    /// Shakes hands.
    /// - Returns: nil, or why there is no session.
    func handshake() throws -> TLSFailure? {
        let step = session.handshake()
        try flush()
        guard case .failed(let failure) = step else { return nil }
        return failure
    }

    func send(_ text: String) throws {
        if let failure = Array(text.utf8).withUnsafeBytes({ session.write($0) }) { throw failure }
        try flush()
    }

    /// One answer: its head and as much content as that says.
    func answer(hasContent: Bool = true) throws -> (head: String, body: String) {
        var head = ""
        while !head.hasSuffix("\r\n\r\n") { head += try read(1) }
        let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
        let count = line?.split(separator: ":").last.flatMap { Int($0.drop { $0 == " " }) } ?? 0
        return (head, hasContent ? try read(count) : "")
    }

    func exchange(_ lines: String...) throws -> (head: String, body: String) {
        try send(lines.joined(separator: "\r\n") + "\r\n\r\n")
        return try answer(hasContent: !lines[0].hasPrefix("HEAD"))
    }

    func read(_ count: Int) throws -> String {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            switch buffer.withUnsafeMutableBytes({ session.read(into: $0) }) {
            case .bytes(let read): bytes += buffer[..<read]
            case .wouldBlock: break
            case .end, .truncated: throw TestSupportError.failed("the end after \(bytes.count) bytes of \(count)")
            case .failed(let failure): throw failure
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What follows is the end, said by close_notify.
    func isEnded() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1)
        while true {
            switch buffer.withUnsafeMutableBytes({ session.read(into: $0) }) {
            case .wouldBlock: continue
            case .end: return true
            case .bytes, .truncated, .failed: return false
            }
        }
    }
}

@available(*, unavailable) extension InnerClient: Sendable {}
