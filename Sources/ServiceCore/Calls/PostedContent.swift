// A POST whose answer may be stored: its content is read first, since it is part of the key; one
// that is long is forwarded.

import CacheStore
package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
package import Upstream

/// The content of a request as far as it was read.
package struct PostedContent {
    /// Bytes of content that are read for a key; a request with more is forwarded as it comes.
    package static let longest = 64 * 1024

    package private(set) var bytes: [UInt8] = []
    /// There is no more of it.
    package private(set) var isWhole = false

    /// Whether a request is a POST whose answer the plan has stored. Preconditions are for the origin to judge, and
    /// what is known to be long is not read.
    static func mayBeStored(_ head: RequestHead, _ framing: BodyFraming, _ plan: RequestPlan) -> Bool {
        guard plan.storesPost, head.method == .post, plan.policy.mode == .library else { return false }
        if case .length(let length) = framing, length > UInt64(longest) { return false }
        let conditions = FieldSet(.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange)
        return head.fields.present.isDisjoint(with: conditions)
    }

    /// Reads the content of a request, at most a little more than a limit.
    /// - Parameters:
    ///   - bind: registers whom to call when there is more.
    ///   - limit: in bytes; ``longest`` for a key.
    /// - Throws: that the client did not send all of it.
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
        // Freed when all has been read, or no more is wanted.
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

    /// The same content for whoever reads it next.
    /// - Parameter rest: what it was read from.
    package func again(then rest: any RequestBodySource) -> any RequestBodySource {
        ContentSource(bytes, then: isWhole ? nil : rest)
    }

    /// The question that a POST with this content is: answered like a GET, under a key of its own.
    package static func question(_ ask: CacheRequest, _ content: [UInt8]) -> CacheRequest {
        var ask = ask
        ask.key = ask.key.adding(lines: KeyRules.lines(post: content, ask.request.fields))
        ask.request.method = .get
        ask.content = RequestContent(content)
        // Ranges are of GET alone (RFC 9110 section 14.2), and the content is here: nothing is to be expected.
        ask.request.fields.remove(.range)
        ask.originFields.remove(.range)
        ask.originFields.remove(.expect)
        return ask
    }
}

/// Resumes the task that waits for more of a request's content. Loop-bound.
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
