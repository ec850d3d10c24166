// An answer that is passed on as it comes: its head as it is, its body from where it lies or from socket to socket.

import EventLoop
import HTTPWire

extension Exchange {
    /// Sends the head of an answer to GET as it is, but for the lines of its origin's connection.
    /// - Parameters:
    ///   - head: with one Content-Length, which says `length`, and with Date.
    ///   - lines: made for its status, reason and way; the version of the head is 1.1.
    ///   - hasContent: content comes at once, and takes the head with it.
    /// - Returns: false where this is no request for such an answer: nothing was sent then.
    func passHead(_ head: ResponseHead, length: UInt64, _ lines: PassedLines, hasContent: Bool) -> Bool {
        guard state == .open, request.method == .get, let connection, let length = Int64(exactly: length) else {
            return false
        }
        status = head.status
        state = .body
        coding = .length(left: length)
        if knownBody?.forbidsReuse == true || context.isDraining { connection.keepAlive = false }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(lines.statusLine.count + head.fields.wireLength + lines.bytes.count + 64)
        bytes.append(contentsOf: lines.statusLine)
        head.fields.forEachRun(without: Self.ofConnection) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: lines.bytes)
        bytes.append(contentsOf: connection.headEnd(for: request.version))
        connection.output.append(bytes)
        if !hasContent { connection.outputGrew() }
        return true
    }

    private static let ofConnection = FieldSet(.connection, .keepAlive)

    /// Writes bytes from where they lie, and queues what the socket does not take. False where so much is queued that the next ones should wait.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    func pass(_ bytes: UnsafeRawBufferPointer) throws(ClientGone) -> Bool {
        guard let connection, state == .body else { throw ClientGone() }
        var isLast = false
        if case .length(let left) = coding { isLast = left <= Int64(bytes.count) }
        enclose(bytes.count) { connection.pass(bytes.part(0..<$0), isLast: isLast) }
        guard let connection = self.connection else { throw ClientGone() }
        return connection.output.count <= OutputQueue.highWatermark
    }

    /// Moves bytes of the body out of another socket into the client's, at most `count`, without a copy through this process.
    /// - Returns: how the other socket gave them; nil where they are to be read there, since they cannot go to the client alone.
    func move(_ count: Int, from socket: Int32) -> IOResult? {
        guard state == .body, case .length(let left) = coding, left >= Int64(count), let connection,
            let pipe = connection.freePipe,
            let result = pipe.fill(from: socket, count: min(count, OutputQueue.highWatermark))
        else { return nil }
        if case .bytes(let moved) = result {
            coding = .length(left: left - Int64(moved))
            bodyBytes += moved
            connection.pass(moved, outOf: pipe)
        }
        return result
    }

    /// No more is queued than may be; true where the client has left, too.
    var hasRoom: Bool { queuedBytes <= OutputQueue.highWatermark }
}
