// The body of a request, and the read buffer of the connection that it is decoded out of when somebody asks for it: it
// is never buffered whole.

import EventLoop
package import HTTPWire
package import Upstream

/// Why a request body ends before its last byte.
package enum RequestBodyError: Error, Sendable, Equatable {
    /// The client has left.
    case clientGone
    /// The bytes are no acceptable body.
    case wire(WireError)
    /// The client sends below the least rate.
    case tooSlow

    /// The answer to a client that has none yet; nil where the client has gone.
    package var problem: Problem? {
        switch self {
        case .clientGone: nil
        case .wire(let error): Problem(error)
        case .tooSlow:
            Problem(
                status: 408,
                title: "Request timeout",
                detail: "the body came too slowly; send it faster, or in smaller requests",
                proxyError: "http_request_error"
            )
        }
    }
}

/// What one pull came to.
package enum RequestBodyRead: Sendable, Equatable {
    /// The next bytes of the body; the count is at least one.
    case bytes(Int)
    /// Nothing now: ``RequestBody/onAvailable`` is called when it is worth asking again.
    case wait
    case end
    case failed(RequestBodyError)
}

/// Loop-bound. Nothing is read from the socket while 64 KiB wait here.
package final class RequestBody {
    /// What an unread body may cost before the connection is closed instead, in bytes.
    static let unreadLimit = 64 << 10

    /// The input that the body is read from; nil once the exchange is over.
    private var input: (any RequestBodyInput)?
    private var decoder: BodyDecoder
    /// Bytes at the front of the read buffer that are content, and not handed out yet.
    private var undelivered = 0
    /// Why the body ended early; nil if it has not.
    package private(set) var failure: RequestBodyError?
    /// The client waits for a 100 before it sends.
    private var awaitsContinue: Bool
    /// A reader found no bytes, and waits for more.
    private var isWanted = false
    /// Waiting for the client so far, in nanoseconds.
    private var waited: UInt64 = 0
    /// Content handed out so far, in bytes.
    package private(set) var delivered: UInt64 = 0
    private var wasPulled = false
    /// Called on the loop when a pull that had to wait should be made again. Cleared at the end of the exchange.
    package var onAvailable: (() -> Void)?

    init(input: (any RequestBodyInput)?, framing: BodyFraming, expectsContinue: Bool) {
        self.input = input
        decoder = BodyDecoder(framing, side: .request)
        awaitsContinue = expectsContinue && framing != .none && framing != .length(0)
    }

    /// The whole body has been handed out.
    package var isComplete: Bool { decoder.isComplete && undelivered == 0 }

    /// Somebody waits for more of it.
    var isAwaited: Bool { isWanted }

    /// The trailers, once complete.
    package var trailers: Fields { decoder.trailers }

    /// Copies the next content into `target`.
    package func pull(into target: UnsafeMutableRawBufferPointer) -> RequestBodyRead {
        wasPulled = true
        isWanted = false
        if let failure { return .failed(failure) }
        do throws(WireError) {
            guard try findContent() else {
                if decoder.isComplete { return .end }
                return wait()
            }
        } catch {
            input?.refused(error)
            fail(.wire(error))
            return .failed(.wire(error))
        }
        guard let input else { return .failed(.clientGone) }
        let count = min(undelivered, target.count)
        target.copyMemory(from: input.input.bytes.part(0..<count))
        input.input.consume(count)
        undelivered -= count
        delivered += UInt64(count)
        input.inputChanged()
        return .bytes(count)
    }

    /// The next content as an array of at most `limit` bytes; nil at the end. Waits for it.
    package func next(limit: Int = 16384) async throws(RequestBodyError) -> [UInt8]? {
        while true {
            var result = RequestBodyRead.wait
            let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                result = pull(into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let read) = result { count = read }
            }
            switch result {
            case .bytes: return bytes
            case .end: return nil
            case .failed(let error): throw error
            case .wait:
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                    onAvailable = { continuation.resume() }
                }
                onAvailable = nil
            }
        }
    }

    /// Whether the client still waits for a 100; from now on it does not.
    func claimContinue() -> Bool {
        defer { awaitsContinue = false }
        return awaitsContinue
    }

    // MARK: - For the connection

    /// New bytes were read.
    func inputArrived() {
        guard isWanted, let input, !input.input.isEmpty else { return }
        notify()
    }

    /// Ends the body with an error; a waiting reader gets the error.
    func fail(_ error: RequestBodyError) {
        if failure == nil { failure = error }
        notify()
    }

    /// The exchange is over.
    func detach(_ error: RequestBodyError) {
        input = nil
        fail(error)
        onAvailable = nil
    }

    func reattach(to input: any RequestBodyInput) {
        self.input = input
        if failure == .clientGone { failure = nil }
    }

    /// Whether reading the rest away is allowed and promises to be short.
    func mayBeDrained(limit: Int) -> Bool {
        if awaitsContinue { return false }
        if case .length(let length) = decoder.framing { return length - min(delivered, length) <= UInt64(limit) }
        return failure == nil || failure == .clientGone
    }

    /// Whoever has read a part of it wants no more: an answer given now counts as one that nobody has read anything for.
    func readerLeft() { wasPulled = false }

    /// Whether an answer given now must say that the connection ends.
    var forbidsReuse: Bool {
        !isComplete && !wasPulled && !mayBeDrained(limit: Self.unreadLimit)
    }

    /// Drops the content in the read buffer; returns its count of bytes.
    func discard(limit: Int) throws(WireError) -> Int {
        var dropped = 0
        while dropped <= limit, try findContent(), let input {
            dropped += undelivered
            input.input.consume(undelivered)
            delivered += UInt64(undelivered)
            undelivered = 0
        }
        return dropped
    }

    /// Counts the time that the client is waited for, and compares the rate.
    func isLate(elapsed: UInt64, _ settings: ServerSettings) -> Bool {
        guard isWanted, failure == nil else { return false }
        waited += elapsed
        guard waited > settings.bodyGrace else { return false }
        return Double(delivered) < Double(settings.bodyRate) * Double(waited) / 1e9
    }

    // MARK: - Decoding

    /// Moves content to the front of the read buffer; false if there is none now.
    private func findContent() throws(WireError) -> Bool {
        while undelivered == 0 {
            guard let input, !decoder.isComplete, !input.input.isEmpty else { return false }
            let step = try decoder.next(input.input.bytes, from: 0)
            switch step {
            case .data(let range):
                input.input.consume(range.lowerBound)
                undelivered = range.count
                // A client that sends without waiting needs no 100 any more.
                awaitsContinue = false
            case .needMore(let consumed), .finished(let consumed):
                input.input.consume(consumed)
            }
        }
        return true
    }

    private func wait() -> RequestBodyRead {
        guard let input else { return .failed(.clientGone) }
        if input.sawEnd {
            failure = .clientGone
            input.endsWithoutRest()
            return .failed(.clientGone)
        }
        isWanted = true
        if claimContinue() { input.sendContinue() }
        input.inputChanged()
        return .wait
    }

    private func notify() {
        guard isWanted else { return }
        isWanted = false
        onAvailable?()
    }
}

@available(*, unavailable) extension RequestBody: Sendable {}

extension RequestBody: RequestBodySource {
    /// As ``pull(into:)``, for transfers; why it failed stays in ``failure``.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        switch pull(into: buffer) {
        case .bytes(let count): .bytes(count)
        case .wait: .wait
        case .end: .end
        case .failed: .failed
        }
    }
}

// MARK: - The bytes that a connection has read and not used yet

/// A pool of read buffers of one size; loop-bound. Idle connections hold no block.
final class BlockPool {
    let blockSize: Int
    // The first free block; each holds the address of the next in its first word. Owned by the pool until taken; freed
    // in deinit.
    private var free: UnsafeMutableRawPointer?
    private var count = 0
    private static let limit = 64

    init(blockSize: Int) { self.blockSize = blockSize }

    deinit { while count > 0 { take().deallocate() } }

    // Owned by the caller until given back.
    func take() -> UnsafeMutableRawPointer {
        guard let block = free else { return .allocate(byteCount: blockSize, alignment: 16) }
        free = block.load(as: UnsafeMutableRawPointer?.self)
        count -= 1
        return block
    }

    // Ownership comes back to the pool.
    func give(_ block: UnsafeMutableRawPointer) {
        guard count < Self.limit else { return block.deallocate() }
        block.storeBytes(of: free, as: UnsafeMutableRawPointer?.self)
        free = block
        count += 1
    }
}

@available(*, unavailable) extension BlockPool: Sendable {}

/// A window over one block; loop-bound. The owner calls `release` before it goes.
///
/// A class, since a value in a connection would pay for a check of exclusive access with every use.
final class ReadBuffer {
    // A block of the pool, ours from the first `room` to `release`.
    private var block: UnsafeMutableRawPointer?
    private var start = 0
    private var end = 0
    private let pool: BlockPool

    init(pool: BlockPool) { self.pool = pool }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }
    var isFull: Bool { count == pool.blockSize }

    /// The bytes that were read and not consumed; valid until the next mutation.
    var bytes: UnsafeRawBufferPointer {
        // Valid until the next mutation, as said above.
        UnsafeRawBufferPointer(start: block.map { UnsafeRawPointer($0 + start) }, count: count)
    }

    /// Reads once, after the bytes that are there. The buffer must not be full.
    func read(from transport: any ByteTransport) -> IOResult {
        let result = transport.read(into: room())
        if case .bytes(let count) = result { end += count }
        return result
    }

    /// The free space for a read, after the bytes that are there; moves these to the front when little space is left.
    private func room() -> UnsafeMutableRawBufferPointer {
        let block = self.block ?? pool.take()
        self.block = block
        if start == end {
            start = 0
            end = 0
        } else if start > 0, pool.blockSize - end < 8192 {
            block.copyMemory(from: block + start, byteCount: count)
            end -= start
            start = 0
        }
        // The part of the block that holds nothing.
        return UnsafeMutableRawBufferPointer(start: block + end, count: pool.blockSize - end)
    }

    func consume(_ count: Int) {
        start += min(count, self.count)
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Gives the block back to the pool; bytes in it are dropped.
    func release() {
        if let block { pool.give(block) }
        block = nil
        start = 0
        end = 0
    }
}

@available(*, unavailable) extension ReadBuffer: Sendable {}
