// An answer that is passed on as it comes: its head as it is, its body from where it lies.

import EventLoop
import HTTPWire

extension Exchange {
    /// Sends the head of an answer to GET unchanged, except for the lines of the origin's connection.
    /// - Parameters:
    ///   - head: with one Content-Length, which says `length`, and with Date.
    ///   - lines: made for its status, reason and way; the version of the head is 1.1.
    ///   - hasContent: content follows at once, so that head and content are written together.
    /// - Returns: false, with nothing sent, if the request cannot take such an answer.
    func forwardHead(_ head: ResponseHead, length: UInt64, _ lines: ForwardedLines, hasContent: Bool) -> Bool {
        guard state == .open, request.method == .get, let carrier, let length = Int64(exactly: length) else {
            return false
        }
        status = head.status
        state = .body
        carrier.forwardHead(
            head,
            length: length,
            lines,
            to: request.version,
            isReusable: knownBody?.forbidsReuse != true,
            hasContent: hasContent
        )
        return true
    }

    /// Writes bytes from where they lie, and queues what the client does not take. False where so much is queued that
    /// the next ones should wait.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    func pass(_ bytes: UnsafeRawBufferPointer) throws(ClientGone) -> Bool {
        guard let carrier, state == .body else { throw ClientGone() }
        carrier.pass(bytes)
        guard let carrier = self.carrier else { throw ClientGone() }
        return carrier.queuedBytes <= OutputQueue.highWatermark
    }

    /// Moves bytes of the body out of another socket to the client, at most `count`, without a
    /// copy through this process.
    /// - Returns: how the other socket gave them; nil where they are to be read there, since they
    ///   cannot go to the client alone.
    func splice(_ count: Int, from socket: Int32) -> IOResult? {
        guard state == .body, let carrier else { return nil }
        return carrier.splice(count, from: socket)
    }

    /// No more is queued than may be; true where the client has left, too.
    var hasRoom: Bool { queuedBytes <= OutputQueue.highWatermark }
}
