// An answer of the admin API that comes over time, read piece by piece.

import DrydockDaemon
import Glibc
import HTTPWire
import ProxyServer

extension AdminClient {
    /// Sends one GET, and hands on the content of its answer as it comes, until the daemon ends it.
    /// - Throws: `Failure`, with code 3 if no daemon listens or it went away before the end; the daemon's own words for
    ///   any status but 2xx.
    func stream(_ path: AdminPath, query: [AdminQuery.Item], _ take: (ArraySlice<UInt8>) -> Void) throws {
        let descriptor = try ask("GET", path, query: query)
        defer { close(descriptor) }
        var bytes = try head(descriptor)
        let status = try parse(bytes).status
        guard 200..<300 ~= status else {
            _ = try parse(bytes + (try receive(descriptor))).successful()
            return
        }
        // From now on nothing may happen for as long as it likes.
        var forever = timeval()
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &forever, socklen_t(MemoryLayout<timeval>.size))
        bytes = try parse(bytes).body
        var decoder = ChunkedDecoder(side: .response)
        while try !decode(bytes, &decoder, take) { bytes = try piece(descriptor) }
    }

    /// - Returns: what has come up to the end of the head, and maybe more.
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
