// One connection of a scripted origin: reads requests, runs the steps of the replies.

import Foundation

/// Used by its own thread only.
final class OriginConnection {
    private let descriptor: Int32
    private let number: Int
    private var buffer = [UInt8](repeating: 0, count: 256 * 1024)
    private var start = 0
    private var filled = 0

    private struct Ended: Error {}

    init(descriptor: Int32, number: Int) {
        self.descriptor = descriptor
        self.number = number
        Sockets.setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    }

    /// Serves requests until either side ends the connection.
    func serve(
        handler: ScriptedOrigin.Handler,
        bodyHook: ScriptedOrigin.BodyHook?,
        record: (OriginRequest) -> Void
    ) {
        var ordinal = 0
        do {
            while var request = try readHead() {
                ordinal += 1
                request.ordinal = ordinal
                do {
                    try readBody(&request, bodyHook)
                } catch {
                    request.isComplete = false
                    record(request)
                    throw error
                }
                record(request)
                for step in handler(request).steps { try run(step) }
                if request.field("Connection")?.lowercased() == "close" { return }
            }
        } catch {
            // The peer went away or a step ended the connection: either way this connection is over.
        }
    }

    private func run(_ step: OriginReply.Step) throws {
        switch step {
        case .bytes(let bytes): try bytes.withUnsafeBytes { try Sockets.writeAll(descriptor, $0) }
        case .pattern(let count, let offset): try sendPattern(count, offset)
        case .urgent(let byte): try Sockets.writeUrgent(descriptor, byte)
        case .wait(let gate): gate.wait()
        case .pause(let milliseconds): usleep(milliseconds * 1000)
        case .cut: throw Ended()
        case .reset:
            Sockets.resetOnClose(descriptor)
            throw Ended()
        case .converse(let answer):
            while try start < filled || fill() {
                let bytes = answer(Array(buffer[start..<filled]))
                start = filled
                try bytes.withUnsafeBytes { try Sockets.writeAll(descriptor, $0) }
            }
            throw Ended()
        case .more: _ = try fill()
        case .tunnel(let port):
            try tunnel(to: port)
            throw Ended()
        case .hang:
            while try fill() { start = filled }
            throw Ended()
        }
    }

    private func tunnel(to port: Int) throws {
        let far = try Sockets.connect(port: port, seconds: 120)
        defer { close(far) }
        let near = descriptor
        let isOver = Monitor(false)
        Threads.start("tunnel") {
            var buffer = [UInt8](repeating: 0, count: 64 * 1024)
            while let count = try? buffer.withUnsafeMutableBytes({ try Sockets.read(far, into: $0) }), count > 0 {
                let sent: Void? = try? buffer.withUnsafeBytes {
                    try Sockets.writeAll(near, UnsafeRawBufferPointer(rebasing: $0[..<count]))
                }
                if sent == nil { break }
            }
            shutdown(near, Int32(SHUT_WR))
            isOver.update { $0 = true }
        }
        defer {
            // Wakes the thread, which must not use a descriptor that is closed.
            shutdown(far, Int32(SHUT_WR))
            if !isOver.wait(120, until: { $0 }) { shutdown(far, Int32(SHUT_RDWR)) }
        }
        while try start < filled || fill() {
            try buffer[start..<filled].withUnsafeBytes { try Sockets.writeAll(far, $0) }
            start = filled
        }
    }

    private func sendPattern(_ count: Int, _ offset: Int) throws {
        var sent = 0
        while sent < count {
            sent += try Pattern.withPiece(at: offset + sent, count: count - sent) { piece in
                try Sockets.writeAll(descriptor, piece)
                return piece.count
            }
        }
    }

    private func readHead() throws -> OriginRequest? {
        guard let text = try readUpTo("\r\n\r\n", orEnd: true) else { return nil }
        var lines = text.components(separatedBy: "\r\n")
        let parts = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else { throw Ended() }
        let fields = try RawHead.fields(lines)
        return OriginRequest(
            method: String(parts[0]),
            target: String(parts[1]),
            fields: fields,
            connection: number,
            ordinal: 0
        )
    }

    private func readBody(_ request: inout OriginRequest, _ hook: ScriptedOrigin.BodyHook?) throws {
        let hasBody = request.field("Transfer-Encoding") != nil || (request.field("Content-Length") ?? "0") != "0"
        if hasBody, request.field("Expect")?.lowercased() == "100-continue" {
            try run(OriginReply.text("HTTP/1.1 100 Continue\r\n\r\n"))
        }
        if request.field("Transfer-Encoding") != nil {
            while let line = try readUpTo("\r\n"), let size = Int(line.prefix { $0 != ";" }, radix: 16), size > 0 {
                try take(size, into: &request, hook)
                _ = try readUpTo("\r\n")
            }
            while try readUpTo("\r\n") != "" {}
        } else if let length = request.field("Content-Length").flatMap({ Int($0) }) {
            try take(length, into: &request, hook)
        }
    }

    private func take(_ count: Int, into request: inout OriginRequest, _ hook: ScriptedOrigin.BodyHook?) throws {
        var left = count
        while left > 0 {
            if start == filled { guard try fill() else { throw Ended() } }
            let piece = buffer[start..<min(filled, start + left)]
            piece.withUnsafeBytes { bytes in
                request.bodyIsPattern = request.bodyIsPattern && Pattern.matches(bytes, at: request.bodyLength)
            }
            if request.body.count < 1_048_576 { request.body += piece.prefix(1_048_576 - request.body.count) }
            request.bodyLength += piece.count
            left -= piece.count
            start += piece.count
            hook?(request)
        }
    }

    private func readUpTo(_ mark: StaticString, orEnd: Bool = false) throws -> String? {
        while true {
            let found = buffer.withUnsafeBytes { bytes in
                Sockets.find(mark, in: UnsafeRawBufferPointer(rebasing: bytes[start..<filled])).map { start + $0 }
            }
            if let found {
                defer { start = found + mark.utf8CodeUnitCount }
                return String(decoding: buffer[start..<found], as: UTF8.self)
            }
            guard try fill() else {
                if orEnd, start == filled { return nil }
                throw Ended()
            }
        }
    }

    private func fill() throws -> Bool {
        if start == filled {
            start = 0
            filled = 0
        } else if filled == buffer.count {
            guard start > 0 else { throw Ended() }
            buffer.replaceSubrange(0..<(filled - start), with: Array(buffer[start..<filled]))
            filled -= start
            start = 0
        }
        let count = try buffer.withUnsafeMutableBytes { bytes in
            try Sockets.read(descriptor, into: .init(rebasing: bytes[filled...]))
        }
        filled += count
        return count > 0
    }
}
