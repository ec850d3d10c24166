// A POST whose answer may be stored: its content is read first, because it is part of the key; a long one is forwarded.

import CacheStore
package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
package import Upstream

/// The content of a request as far as it was read.
package struct PostedContent {
    /// The most bytes of content that are read for a key; a request with more is forwarded unchanged.
    package static let longest = 64 * 1024

    package private(set) var bytes: [UInt8] = []
    /// Whether the content is complete.
    package private(set) var isWhole = false

    /// Whether a request is a POST whose answer the plan stores. A request with preconditions is for the origin, and a
    /// content that is known to be long is not read.
    static func mayBeStored(_ head: RequestHead, _ framing: BodyFraming, _ plan: RequestPlan) -> Bool {
        guard plan.storesPost, head.method == .post, plan.policy.mode == .library else { return false }
        if case .length(let length) = framing, length > UInt64(longest) { return false }
        let conditions = FieldSet(.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange)
        return head.fields.present.isDisjoint(with: conditions)
    }

    /// Reads the content of a request, at most a little more than a limit.
    /// - Parameters:
    ///   - bind: registers a callback for more content.
    ///   - limit: the limit in bytes; ``longest`` for a key.
    /// - Throws: an error if the client did not send all of it.
    package static func read(
        _ source: (any RequestBodySource)?,
        bind: ((_ available: @escaping () -> Void) -> Void)?,
        atMost limit: Int = longest,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> PostedContent {
        var content = PostedContent()
        guard let source else {
            content.isWhole = true
            return content
        }
        let waiter = ContentWaiter()
        bind?({ waiter.wake() })
        // The buffer is freed when all has been read, or no more is needed.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        while content.bytes.count <= limit {
            switch source.read(into: buffer) {
            case .bytes(let count): content.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            case .wait: await waiter.wait(on: loop)
            case .end:
                content.isWhole = true
                return content
            case .failed:
                throw .upstream(UpstreamError(.requestBody, detail: "the request's body ended early"))
            }
        }
        return content
    }

    /// The same content for the next reader.
    /// - Parameter rest: the source of the part that was not read.
    package func again(then rest: any RequestBodySource) -> any RequestBodySource {
        ContentSource(bytes, then: isWhole ? nil : rest)
    }

    /// The question for a POST with this content: answered like a GET, under a key of its own.
    package static func question(_ ask: CacheRequest, _ content: [UInt8]) -> CacheRequest {
        var ask = ask
        ask.key = ask.key.adding(lines: KeyRules.lines(post: content, ask.request.fields))
        ask.request.method = .get
        ask.content = RequestContent(content)
        // Range is defined for GET only (RFC 9110 section 14.2), and with the content present there is no expectation.
        ask.request.fields.remove(.range)
        ask.originFields.remove(.range)
        ask.originFields.remove(.expect)
        return ask
    }
}

/// Resumes the task that waits for more content of a request. Loop-bound.
private final class ContentWaiter {
    private var continuation: UnsafeContinuation<Void, Never>?

    func wait(on loop: isolated EventLoop) async {
        await withUnsafeContinuation { continuation = $0 }
    }

    func wake() {
        let waiting = continuation
        continuation = nil
        waiting?.resume()
    }
}

@available(*, unavailable) extension ContentWaiter: Sendable {}
