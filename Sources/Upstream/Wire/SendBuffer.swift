// The bytes to send to origins, and the system calls on their sockets, whose peer may be gone.

// CLibcurl is imported for the flags: an optimised build takes it for the owner of the socket types that curl.h
// includes.
import CLibcurl
import EventLoop
import Glibc
import HTTPWire

/// Memory that is written at its end and sent from its start; loop-bound, used by one request after another.
final class SendBuffer {
    /// The space for one read of a body, in bytes.
    private static let bodyRoom = 65_536
    /// The longest size line of a chunk that fits the room: four digits and CRLF.
    private static let sizeLine = 6
    private static let lastChunk: StaticString = "0\r\n\r\n"

    // This object owns the memory; only `makeRoom` replaces it.
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
    private var start = 0
    private var end = 0

    deinit { memory.deallocate() }

    var isEmpty: Bool { start == end }
    /// The unsent bytes; valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }
    var capacity: Int { memory.count }

    func removeAll() {
        start = 0
        end = 0
    }

    /// Removes bytes that were sent.
    func consume(_ count: Int) {
        start += count
        if start == end { removeAll() }
    }

    // MARK: - A head

    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        makeRoom(bytes.count)
        memory.baseAddress.map { ($0 + end).copyMemory(from: source, byteCount: bytes.count) }
        end += bytes.count
    }

    func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    // MARK: - A body

    /// The room into which the next bytes of a body may be read; nil while too many bytes wait to be sent.
    func bodyRoom(isChunked: Bool) -> UnsafeMutableRawBufferPointer? {
        let framing = isChunked ? Self.sizeLine + 2 + Self.lastChunk.utf8CodeUnitCount : 0
        if memory.count < Self.bodyRoom { makeRoom(Self.bodyRoom) }
        let first = end + (isChunked ? Self.sizeLine : 0)
        let count = min(memory.count - end - framing, 0xFFFF)
        guard count >= Self.bodyRoom / 8 else { return nil }
        return UnsafeMutableRawBufferPointer(rebasing: memory[first..<first + count])
    }

    /// Appends bytes that were read into `bodyRoom`.
    func append(body count: Int, isChunked: Bool) {
        guard isChunked else {
            end += count
            return
        }
        var line: [UInt8] = []
        Serializer.chunkHeader(count, into: &line)
        // The size line ends at the start of the data; a shorter one leaves a gap before it, which is closed.
        let data = end + Self.sizeLine
        if let base = memory.baseAddress, line.count < Self.sizeLine {
            (base + end + line.count).copyMemory(from: base + data, byteCount: count)
        }
        line.withUnsafeBytes { append($0) }
        end += count
        append("\r\n")
    }

    func appendLastChunk() { append(Self.lastChunk) }

    private func makeRoom(_ count: Int) {
        guard count > memory.count - end else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(2 * memory.count, end + count), alignment: 8)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<end]))
        memory.deallocate()
        memory = larger
    }
}

@available(*, unavailable) extension SendBuffer: Sendable {}

extension SendBuffer {
    /// Appends the request line and the fields. Host is first; it is that of the request, or made from the URL. A proxy
    /// gets the URL as a whole, and its credentials.
    func append(head request: UpstreamRequest, _ target: String, _ origin: Origin) {
        let present = request.fields.present
        if request.method == .get {
            append("GET ")
        } else {
            append(text: request.method.name)
            append(" ")
        }
        let proxy = request.isUpgrade ? nil : origin.proxy
        if proxy == nil {
            append(text: target)
        } else {
            // A proxy gets the absolute form (RFC 9112 section 3.2.2); OPTIONS for the server as a whole has no path
            // then (section 3.2.4).
            append("http://")
            append(text: origin.hostField)
            if target != "*" { append(text: target) }
        }
        append(" HTTP/1.1\r\n")
        if present.contains(.host) {
            request.fields.forEachLine { name, value, known in
                guard known == .host else { return }
                append(name)
                append(": ")
                append(value)
                append("\r\n")
            }
        } else {
            append("Host: ")
            append(text: request.terms.host ?? origin.hostField)
            append("\r\n")
        }
        if let authorization = proxy?.authorization {
            append("Proxy-Authorization: ")
            append(text: authorization)
            append("\r\n")
        }
        request.fields.forEachRun(without: .host) { append($0) }
        switch request.bodyFraming {
        case .length(let length) where length > 0 && !present.contains(.contentLength):
            append("Content-Length: ")
            append(text: String(length))
            append("\r\n")
        case .chunked where !present.contains(.transferEncoding): append("Transfer-Encoding: chunked\r\n")
        default: break
        }
        append("\r\n")
    }
}

// MARK: - System calls

/// The system calls on the sockets of origins: if the peer is gone, they report an error and no signal.
enum WireSocket {
    /// Sends as many bytes as the socket accepts.
    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> IOResult {
        while true {
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .wouldBlock }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(errno)
            }
        }
    }

    /// Copies received bytes into the room, from its start; they stay in the socket.
    static func peek(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> IOResult {
        while true {
            let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(errno)
            }
        }
    }

    enum Look { case nothing, bytes, end }

    /// Whether the socket has bytes, its end or nothing to read; all stays there.
    static func peek(_ descriptor: Int32) -> Look {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count > 0 { return .bytes }
        return count < 0 && errno == EAGAIN ? .nothing : .end
    }

    /// Ends both directions, so that the loop notices the end if it has not yet.
    static func end(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
}
