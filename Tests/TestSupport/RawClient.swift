// A blocking client that sends exactly the bytes it is given and reads responses strictly, with a parser of its own.

import Foundation

/// One connection to a server under test; used by one thread at a time.
///
/// Reading is pulled: a client that does not call a read method is a stalled reader, and `receiveBuffer` makes it
/// stall the sender soon.
package final class RawClient {
    var descriptor: Int32
    // Owned by this object, freed in deinit, and never handed out beyond a call.
    let buffer: UnsafeMutableRawBufferPointer
    var start = 0
    var filled = 0
    var progress = BodyProgress.idle

    enum BodyProgress {
        case idle
        case length(Int)
        case chunkHead
        case chunk(Int)
        case chunkEnd
        case untilClose
        case ended(RawBodyEnd)
    }

    /// The trailer fields of the last chunked body that was read to its end.
    package internal(set) var trailers: [(name: String, value: String)] = []
    /// The interim responses before the last final head.
    package private(set) var interim: [RawHead] = []
    /// Heads that were read before the response as a whole was asked for.
    var early: [RawHead] = []

    /// Connects to 127.0.0.1; every send and receive is bounded by `seconds` (default 120).
    package init(port: Int, seconds: Double = 120, receiveBuffer: Int? = nil) throws {
        buffer = .allocate(byteCount: 128 * 1024, alignment: 16)
        descriptor = -1
        descriptor = try Sockets.connect(port: port, seconds: seconds, receiveBuffer: receiveBuffer)
    }

    /// Connects to a unix stream socket.
    package init(unix path: String, seconds: Double = 120) throws {
        buffer = .allocate(byteCount: 128 * 1024, alignment: 16)
        descriptor = -1
        descriptor = try Sockets.connect(unix: path, seconds: seconds)
    }

    /// Takes one end of a connection, and closes it.
    package init(taking descriptor: Int32, seconds: Double = 120) {
        buffer = .allocate(byteCount: 128 * 1024, alignment: 16)
        self.descriptor = descriptor
        Sockets.setDeadlines(descriptor, seconds: seconds)
    }

    deinit {
        close()
        buffer.deallocate()
    }

    /// Segments with data that have come from the server (`tcpi_data_segs_in`): each of its writes makes at least one.
    package var segmentsReceived: Int {
        // The kernel's struct goes on behind the C library's: the count is the 32 bits at byte 152.
        var facts = [UInt8](repeating: 0, count: 160)
        var length = socklen_t(facts.count)
        guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &facts, &length) == 0, length >= 156 else {
            return -1
        }
        return facts.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 152, as: UInt32.self)) }
    }

    // MARK: sending

    package func send(_ text: String) throws {
        var text = text
        try text.withUTF8 { try Sockets.writeAll(descriptor, UnsafeRawBufferPointer($0)) }
    }

    package func send(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try Sockets.writeAll(descriptor, $0) }
    }

    /// Sends the bytes in pieces that end at the given offsets, with a pause so that each arrives alone.
    package func send(_ bytes: [UInt8], splitAt offsets: [Int], pause milliseconds: UInt32 = 5) throws {
        var from = 0
        for offset in offsets.sorted() + [bytes.count] where offset > from && offset <= bytes.count {
            try send(Array(bytes[from..<offset]))
            from = offset
            if from < bytes.count { usleep(milliseconds * 1000) }
        }
    }

    /// Sends `count` bytes of `Pattern`, beginning at `offset`.
    package func sendPattern(_ count: Int, from offset: Int = 0) throws {
        var sent = 0
        while sent < count {
            sent += try Pattern.withPiece(at: offset + sent, count: count - sent) { piece in
                try Sockets.writeAll(descriptor, piece)
                return piece.count
            }
        }
    }

    /// Sends a request with a Host field and without a body unless one is given.
    package func request(
        _ method: String,
        _ target: String,
        host: String = "localhost",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Length: \(body.count)\r\n" }
        try send(text + "\r\n")
        if let body { try send(body) }
    }

    /// Sends a GET and reads its whole response.
    package func exchange(_ target: String, fields: [(String, String)] = []) throws -> RawResponse {
        try exchange("GET", target, fields: fields)
    }

    /// Sends a request and reads its whole response.
    package func exchange(
        _ method: String,
        _ target: String,
        host: String = "localhost",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> RawResponse {
        try request(method, target, host: host, fields: fields, body: body)
        return try readResponse(method: method)
    }

    // MARK: reading

    /// Reads one response to its end.
    package func readResponse(method: String = "GET") throws -> RawResponse {
        let head = try readHead(method: method)
        let framing = try head.framing(method: method)
        var body = [UInt8]()
        let end = try readBody { body += $0 }
        return RawResponse(head: head, interim: interim, framing: framing, body: body, end: end, trailers: trailers)
    }

    /// Reads up to and including the final head; the body is then read by `readBody`.
    package func readHead(method: String = "GET") throws -> RawHead {
        interim = []
        trailers = []
        while true {
            let head = try early.isEmpty ? readOneHead() : early.removeFirst()
            if head.status >= 200 || head.status == 101 {
                try expectBody(head.framing(method: method))
                return head
            }
            interim.append(head)
        }
    }

    /// Reads one head that has to be interim; its status.
    package func readOneInterim() throws -> Int {
        let head = try readOneHead()
        guard (100..<200).contains(head.status) else { throw RawClientError.malformed("\(head.status) is not interim") }
        return head.status
    }

    /// Reads body bytes into `sink` until the end, or until `count` bytes have come.
    ///
    /// - Returns: how the body ended; nil when it goes on after `count` bytes.
    package func readBody(upTo count: Int = .max, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws
        -> RawBodyEnd?
    {
        var missing = count
        while missing > 0 {
            guard let piece = try nextPiece(limit: missing) else { break }
            try sink(piece)
            missing -= piece.count
            start += piece.count
        }
        if case .ended(let end) = progress { return end }
        return nil
    }

    /// Reads the body to its end; for callers that asked for all of it.
    package func readBody(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> RawBodyEnd {
        try readBody(upTo: .max, sink) ?? .cut
    }

    /// Reads exactly `count` raw bytes, for what follows a 101 or a CONNECT.
    package func readRaw(_ count: Int) throws -> [UInt8] {
        while filled - start < count {
            guard try fill() else {
                throw RawClientError.malformed("\(filled - start) of \(count) bytes, then the end")
            }
        }
        defer { start += count }
        return Array(buffer[start..<(start + count)])
    }

    /// Whether the server ends the connection, cleanly or by reset, and sends nothing more before.
    package func isClosedByServer() throws -> Bool {
        guard filled == start else { return false }
        do {
            return try !fill()
        } catch TestSupportError.system(_, let code) where code == ECONNRESET {
            return true
        } catch TestSupportError.timedOut {
            return false
        }
    }

    /// Everything up to the end of the connection, unparsed.
    package func readToEnd() throws -> [UInt8] {
        var bytes = [UInt8]()
        repeat {
            bytes += buffer[start..<filled]
            start = filled
        } while try fill()
        return bytes
    }

    // MARK: ending

    /// Ends the sending side; reading goes on.
    package func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes with a reset, as a client that dies does.
    package func reset() {
        Sockets.resetOnClose(descriptor)
        close()
    }

    package func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }
}
