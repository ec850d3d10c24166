// The content of a request of HTTP/1.1, which is decoded out of the connection's read buffer when somebody asks for it.

import EventLoop
import HTTPWire

/// The content of one request of HTTP/1.1; loop-bound. Nothing is read from the socket while the connection's buffer is full.
///
/// Its body holds it until the exchange is over, and the connection until it is read: the rest of it may have to be read
/// away after an early answer.
final class HTTP1Content: RequestContent {
    private let connection: Connection
    private var decoder: BodyDecoder
    /// Bytes at the front of the read buffer that are content, and not handed out yet.
    private var undelivered = 0

    init(_ framing: BodyFraming, of connection: Connection) {
        self.connection = connection
        decoder = BodyDecoder(framing, side: .request)
    }

    private var input: ReadBuffer { connection.input }

    var isComplete: Bool { decoder.isComplete && undelivered == 0 }
    var trailers: Fields { decoder.trailers }
    var hasArrived: Bool { !input.isEmpty }
    var sawEnd: Bool { connection.state.sawEnd }

    func read(into target: UnsafeMutableRawBufferPointer) throws(WireError) -> Int {
        do throws(WireError) {
            guard try find() else { return 0 }
        } catch {
            connection.refuseContent(error)
            throw error
        }
        let count = min(undelivered, target.count)
        target.copyMemory(from: input.bytes.part(0..<count))
        input.consume(count)
        undelivered -= count
        connection.updateInterest()
        return count
    }

    /// Drops the content in the read buffer.
    /// - Returns: its count of bytes.
    func discard(limit: Int) throws(WireError) -> Int {
        var dropped = 0
        while dropped <= limit, try find() {
            dropped += undelivered
            input.consume(undelivered)
            undelivered = 0
        }
        return dropped
    }

    func readMore() { connection.updateInterest() }

    func endsWithoutRest() { connection.context.runSoon(connection) }

    func sendContinue() { connection.sendContinue() }

    /// Moves content to the front of the read buffer; false if there is none now.
    private func find() throws(WireError) -> Bool {
        while undelivered == 0 {
            guard !decoder.isComplete, !input.isEmpty else { return false }
            let step = try decoder.next(input.bytes, from: 0)
            switch step {
            case .data(let range):
                input.consume(range.lowerBound)
                undelivered = range.count
            case .needMore(let consumed), .finished(let consumed):
                input.consume(consumed)
            }
        }
        return true
    }
}

@available(*, unavailable) extension HTTP1Content: Sendable {}
