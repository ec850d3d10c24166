// The far side of a tunnel: one accepted connection, read and written raw.

import EventLoop
import Foundation
import Glibc
import TestSupport

@testable import ProxyServer

/// Used by one thread.
final class ScriptedPeer {
    struct Listening: Sendable {
        let descriptor: Int32
        let port: Int
    }

    private let descriptor: Int32
    private var received: [UInt8] = []

    static func listen() throws -> Listening {
        guard let address = SocketAddress(numericHost: "127.0.0.1", port: 0) else {
            throw TestSupportError.failed("127.0.0.1 is no address")
        }
        let socket = try ListeningSocket.bind(address)
        return Listening(descriptor: socket.descriptor, port: Int(socket.address.port))
    }

    /// Accepts one connection, bounded by two minutes, and stops listening.
    init(acceptingOn listening: Listening) throws {
        var wait = pollfd(fd: listening.descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&wait, 1, 120_000)
        descriptor = accept(listening.descriptor, nil, nil)
        Glibc.close(listening.descriptor)
        guard descriptor >= 0 else { throw TestSupportError.timedOut("accept") }
        var limit = timeval(tv_sec: 120, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// The next bytes; nil at the end.
    func read() throws -> [UInt8]? {
        guard received.isEmpty else {
            defer { received = [] }
            return received
        }
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count >= 0 else { throw TestSupportError.system(call: "recv", code: errno) }
        return count == 0 ? nil : Array(buffer[..<count])
    }

    /// Up to and including the empty line.
    func readHead() throws -> String {
        var bytes: [UInt8] = []
        while true {
            guard let piece = try read() else { throw TestSupportError.failed("the head ended early") }
            bytes += piece
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                let length = text[..<end.upperBound].utf8.count
                received = Array(bytes[length...])
                return String(text[..<end.upperBound])
            }
        }
    }

    /// Whether nothing more has come so far.
    var isSilent: Bool {
        var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return received.isEmpty && poll(&wait, 1, 0) == 0
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                Glibc.send(descriptor, raw.baseAddress.map { $0 + sent }, raw.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw TestSupportError.system(call: "send", code: errno) }
            sent += count
        }
    }

    func close() { Glibc.close(descriptor) }

    /// Has `close` reset the connection.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
