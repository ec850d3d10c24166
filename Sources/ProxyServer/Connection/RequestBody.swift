// The body of a request, as handlers and transfers pull it, whatever carries it: it is never buffered whole.

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

/// Loop-bound. What was not pulled waits with the carrier, which bounds it.
package final class RequestBody {
    /// What an unread body may cost before the connection is closed instead, in bytes.
    static let unreadLimit = 64 << 10

    /// What the body is read from; nil if the head announces none, and once the exchange is over.
    private var content: (any RequestContent)?
    /// The announced length in bytes; nil if the head does not say it.
    private let length: UInt64?
    /// There is nothing more to hand out, as far as that was known when the exchange ended.
    private var wasComplete: Bool
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

    init(_ content: (any RequestContent)?, _ framing: BodyFraming, expectsContinue: Bool) {
        self.content = content
        length = if case .length(let length) = framing { length } else { nil }
        wasComplete = content == nil
        awaitsContinue = expectsContinue && framing != .none && framing != .length(0)
    }

    /// The whole body has been handed out.
    package var isComplete: Bool { content?.isComplete ?? wasComplete }

    /// Somebody waits for more of it.
    var isAwaited: Bool { isWanted }

    /// The trailers, once complete.
    package var trailers: Fields { content?.trailers ?? Fields() }

    /// Copies the next content into `target`.
    package func pull(into target: UnsafeMutableRawBufferPointer) -> RequestBodyRead {
        wasPulled = true
        isWanted = false
        if let failure { return .failed(failure) }
        guard let content else { return .end }
        let count: Int
        do throws(WireError) { count = try content.read(into: target) } catch {
            fail(.wire(error))
            return .failed(.wire(error))
        }
        guard count > 0 else { return content.isComplete ? .end : wait(for: content) }
        // A client that sends without waiting needs no 100 any more.
        awaitsContinue = false
        delivered += UInt64(count)
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
    func inputArrived() { if isWanted, content?.hasArrived == true { notify() } }

    /// Ends the body with an error; a waiting reader gets the error.
    func fail(_ error: RequestBodyError) {
        if failure == nil { failure = error }
        notify()
    }

    /// The exchange is over.
    func detach(_ error: RequestBodyError) {
        wasComplete = isComplete
        content = nil
        fail(error)
        onAvailable = nil
    }

    /// Whether reading the rest away is allowed and promises to be short.
    func mayBeDrained(limit: Int) -> Bool {
        if awaitsContinue { return false }
        if let length { return length - min(delivered, length) <= UInt64(limit) }
        return failure == nil || failure == .clientGone
    }

    /// Whoever has read a part of it wants no more: an answer given now counts as one that nobody has read anything for.
    func readerLeft() { wasPulled = false }

    /// Whether an answer given now must say that the connection ends.
    var forbidsReuse: Bool {
        !isComplete && !wasPulled && !mayBeDrained(limit: Self.unreadLimit)
    }

    /// Counts the time that the client is waited for, and compares the rate.
    func isLate(elapsed: UInt64, _ settings: ServerSettings) -> Bool {
        guard isWanted, failure == nil else { return false }
        waited += elapsed
        guard waited > settings.bodyGrace else { return false }
        return Double(delivered) < Double(settings.bodyRate) * Double(waited) / 1e9
    }

    private func wait(for content: any RequestContent) -> RequestBodyRead {
        if content.sawEnd {
            failure = .clientGone
            content.endsWithoutRest()
            return .failed(.clientGone)
        }
        isWanted = true
        if claimContinue() { content.sendContinue() }
        content.readMore()
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
