// The source that refuses answers whose media type is not the one that their route expects, below the shared fetch.

package import Content
package import DownloadCore
package import EventLoop
package import HTTPCaching
import HTTPWire
import Upstream

/// Checks the media types of a source's answers. Loop-bound; it keeps no state of a request.
package final class ExpectedTypeSource: FetchSource {
    private let source: any FetchSource
    private let types: ExpectedTypes
    private let policy: CachePolicy
    private let owner: String
    private let setting: String

    /// - Parameters:
    ///   - policy: decides which statuses are successes; only their types are checked.
    ///   - owner: the route in error texts, such as `endpoint 'users' of service 'people'`.
    ///   - setting: the configuration key of the types in error texts.
    package init(
        _ source: any FetchSource,
        _ types: ExpectedTypes,
        _ policy: CachePolicy,
        owner: String,
        setting: String = "'response.type'"
    ) {
        self.source = source
        self.types = types
        self.policy = policy
        self.owner = owner
        self.setting = setting
    }

    package var opensSockets: Bool { source.opensSockets }

    package func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        guard request.method.hasJudgedAnswers else {
            return try await source.start(request, sink: sink, on: loop)
        }
        let fetch = CheckedFetch(isHead: request.method == .head, sink: sink) { [types, policy, owner, setting] head in
            guard 200..<300 ~= head.status, policy.isSuccess(head.status), let found = types.mismatch(head.fields)
            else { return nil }
            return "the answer for \(owner) has \(found), and \(setting) expects \(types); "
                + "correct the origin, or what its route expects"
        }
        fetch.handle = try await source.start(request, sink: fetch, on: loop)
        return fetch
    }
}

@available(*, unavailable) extension ExpectedTypeSource: Sendable {}

/// One fetch whose answer is checked. Loop-bound.
private final class CheckedFetch: PassingFetch {
    var handle: (any FetchHandle)?
    private(set) var sink: (any FetchSink)?
    private let isHead: Bool
    private let mistake: (ResponseHead) -> String?

    /// - Parameter mistake: returns the mistake in a head; nil for none.
    init(isHead: Bool, sink: any FetchSink, _ mistake: @escaping (ResponseHead) -> String?) {
        self.isHead = isHead
        self.sink = sink
        self.mistake = mistake
    }

    func cancel() {
        sink = nil
        handle?.cancel()
    }

    // MARK: - FetchSink

    func received(_ head: ResponseHead, framing: BodyFraming) {
        guard hasType(head, framing), let mistake = mistake(head) else {
            return sink?.received(head, framing: framing) ?? ()
        }
        let (sink, handle) = (sink, handle)
        self.sink = nil
        sink?.failed(.type(mistake))
        handle?.cancel()
    }

    /// True if the head belongs to content: an answer without content needs no type.
    private func hasType(_ head: ResponseHead, _ framing: BodyFraming) -> Bool {
        let fields = head.fields
        if head.status == 204 || head.status == 205 { return false }
        // Each of several parts has a type of its own (RFC 9110 section 14.6).
        if head.status == 206, fields.first(.contentType)?.lowercased().hasPrefix("multipart/byteranges") ?? false {
            return false
        }
        if isHead { return fields.contains(.contentType) && fields.first(.contentLength) != "0" }
        return framing != .none && framing != .length(0)
    }

}

@available(*, unavailable) extension CheckedFetch: Sendable {}
