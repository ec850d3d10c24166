// The client side of the admin API: one HTTP request over a unix or TCP socket, blocking; a streamed answer is read
// piece by piece.

import DrydockDaemon
import Glibc
import HTTPWire
import ProxyServer

/// A client of one admin address.
struct AdminClient {
    let address: String
    /// The longest time in seconds without a byte of the answer.
    var timeout = 10

    struct Answer {
        let status: Int
        let body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }

        /// The answer if its status is 2xx.
        /// - Throws: `Failure` with the daemon's message, for any other status.
        func successful() throws -> Answer {
            guard 200..<300 ~= status else { throw failure }
            return self
        }

        var failure: Failure {
            let problem = try? AdminJSON.decode(AdminProblem.self, from: body)
            return Failure(message: problem.map { "\($0.title): \($0.detail)" } ?? "the daemon answered \(status)")
        }

        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            do {
                return try AdminJSON.decode(type, from: body)
            } catch {
                throw Failure(
                    message: "the daemon's answer cannot be read; is the daemon of another version? (\(error))"
                )
            }
        }
    }

    /// Sends one request and reads the whole answer.
    /// - Parameters:
    ///   - id: the id in the path, if the path has a segment for one.
    ///   - body: a JSON document; nil to send none.
    /// - Throws: `Failure`, with code 3 if no daemon listens.
    func request(
        _ method: String,
        _ path: AdminPath,
        id: String = "",
        query: [AdminQuery.Item] = [],
        body: [UInt8]? = nil
    ) throws -> Answer {
        let descriptor = try ask(method, path, id: id, query: query, body: body)
        defer { close(descriptor) }
        return try parse(try receive(descriptor))
    }

    /// Sends one request.
    /// - Returns: the socket with the answer; the caller closes it.
    func ask(
        _ method: String,
        _ path: AdminPath,
        id: String = "",
        query: [AdminQuery.Item] = [],
        body: [UInt8]? = nil
    ) throws -> Int32 {
        let descriptor = try connect()
        var lines = ["\(method) \(path.target(id: id, query)) HTTP/1.1", "Host: localhost", "Connection: close"]
        if body != nil { lines.append("Content-Type: application/json") }
        if method != "GET" || body != nil { lines.append("Content-Length: \(body?.count ?? 0)") }
        do {
            try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body ?? []), to: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    // MARK: - The socket

    /// What a user without the rights for a socket can do; nil for another reason than missing rights.
    static func remedy(_ code: Int32) -> String? {
        guard code == EACCES || code == EPERM else { return nil }
        return
            "its user and its group alone may use it: write sudo before the command, or join the group that 'admin.group' names"
    }

    /// Why no daemon was asked: there is none, or the user has no rights for its socket.
    func refusal(_ code: Int32) -> String {
        let reason = String(cString: strerror(code))
        return Self.remedy(code) == nil ? "no daemon at \(address): \(reason)" : "\(address) cannot be asked: \(reason)"
    }

    /// Whether a daemon listens at the address; if none does, `errno` is the reason.
    var isThere: Bool {
        guard let descriptor = open() else { return false }
        close(descriptor)
        return true
    }

    private func open() -> Int32? {
        address.hasPrefix("unix:") || address.hasPrefix("/") ? connectUnix() : connectTCP()
    }

    private func connect() throws -> Int32 {
        guard let descriptor = open() else {
            let code = errno
            let remedy = Self.remedy(code) ?? "start the daemon, or name its address with --admin or -c"
            throw Failure.noDaemon("\(refusal(code)); \(remedy)")
        }
        var time = timeval(tv_sec: timeout, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }

    private func connectUnix() -> Int32? {
        let path = Array((address.hasPrefix("unix:") ? String(address.dropFirst(5)) : address).utf8)
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: target.sun_path) else {
            errno = ENAMETOOLONG
            return nil
        }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: path) }
        return withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(AF_UNIX, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    private func connectTCP() -> Int32? {
        guard let colon = address.lastIndex(of: ":") else {
            errno = EINVAL
            return nil
        }
        let host = address[..<colon].trimmed { $0 == "[" || $0 == "]" }
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(address[colon...].dropFirst()), &hints, &found) == 0 else {
            errno = EADDRNOTAVAIL
            return nil
        }
        defer { freeaddrinfo(found) }
        var next = found
        while let entry = next {
            if let descriptor = connect(entry.pointee.ai_family, entry.pointee.ai_addr, entry.pointee.ai_addrlen) {
                return descriptor
            }
            next = entry.pointee.ai_next
        }
        return nil
    }

    private func connect(_ family: Int32, _ target: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32? {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        guard Glibc.connect(descriptor, target, length) == 0 else {
            let code = errno
            close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }

    // MARK: - HTTP

    private func send(_ bytes: [UInt8], to descriptor: Int32) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure.noDaemon("the daemon at \(address) closed the connection") }
            sent += count
        }
    }

    func receive(_ descriptor: Int32) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 { return bytes }
            guard count > 0 else {
                throw Failure(message: "the daemon at \(address) did not answer within \(timeout) s")
            }
            bytes += buffer[..<count]
        }
    }

    /// Parses an answer: the daemon sends Content-Length and closes, so the rest after the head is the body.
    func parse(_ bytes: [UInt8]) throws -> Answer {
        let mark = Array("\r\n\r\n".utf8)
        guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }),
            let line = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n").first,
            let status = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { throw Failure(message: "the program that answers at \(address) is not a Drydock daemon") }
        return Answer(status: status, body: Array(bytes[(end + 4)...]))
    }
}

extension Substring {
    /// The text without the characters at both ends for which `isMeant` is true.
    func trimmed(_ isMeant: (Character) -> Bool) -> String {
        String(drop(while: isMeant).reversed().drop(while: isMeant).reversed())
    }
}

// MARK: - Answers that come over time

// A streamed answer of the admin API, read piece by piece.
extension AdminClient {
    /// Sends one GET, and passes the content of its answer to `take` as it comes, until the daemon ends it.
    /// - Throws: `Failure`, with code 3 if no daemon listens or it ended before the end of the answer; with the
    ///   daemon's message for any status but 2xx.
    func stream(_ path: AdminPath, query: [AdminQuery.Item], _ take: (ArraySlice<UInt8>) -> Void) throws {
        let descriptor = try ask("GET", path, query: query)
        defer { close(descriptor) }
        var bytes = try head(descriptor)
        let status = try parse(bytes).status
        guard 200..<300 ~= status else {
            _ = try parse(bytes + (try receive(descriptor))).successful()
            return
        }
        // From here on the stream may be silent for any time.
        var forever = timeval()
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &forever, socklen_t(MemoryLayout<timeval>.size))
        bytes = try parse(bytes).body
        var decoder = ChunkedDecoder(side: .response)
        while try !decode(bytes, &decoder, take) { bytes = try piece(descriptor) }
    }

    /// Reads the head.
    /// - Returns: the bytes up to the end of the head, and maybe more.
    private func head(_ descriptor: Int32) throws -> [UInt8] {
        var bytes: [UInt8] = []
        let mark = Array("\r\n\r\n".utf8)
        while !bytes.indices.contains(where: { bytes[$0...].starts(with: mark) }) {
            bytes += try piece(descriptor)
            guard bytes.count < 1 << 20 else { return bytes }
        }
        return bytes
    }

    private func piece(_ descriptor: Int32) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 { return Array(buffer[..<count]) }
            if count < 0, errno == EINTR { continue }
            guard count < 0, errno == EAGAIN else {
                throw Failure.noDaemon("the daemon at \(address) went away")
            }
            throw Failure(message: "the daemon at \(address) did not answer within \(timeout) s")
        }
    }

    /// Decodes a part of the answer.
    /// - Returns: whether that was the end.
    private func decode(
        _ bytes: [UInt8],
        _ decoder: inout ChunkedDecoder,
        _ take: (ArraySlice<UInt8>) -> Void
    ) throws -> Bool {
        var position = 0
        while true {
            let step: BodyStep
            do {
                step = try bytes.withUnsafeBytes { buffer throws(WireError) in
                    try decoder.next(buffer, from: position)
                }
            } catch {
                throw Failure(message: "the program that answers at \(address) is not a Drydock daemon")
            }
            switch step {
            case .data(let range):
                take(bytes[range])
                position = range.upperBound
            case .needMore: return false
            case .finished: return true
            }
        }
    }
}
