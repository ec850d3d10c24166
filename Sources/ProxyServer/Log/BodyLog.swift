// The bodies of one request and its answer, for the daemon's log: made only where a route says so.

import CacheStore
import Content
import HTTPWire
import Upstream

/// Loop-bound, made for one request.
final class BodyLog {
    private var request: BodyExcerpt
    private var response: BodyExcerpt

    /// - Parameter limit: bytes that are shown of each body at most.
    init(limit: Int) {
        request = BodyExcerpt(limit: limit)
        response = BodyExcerpt(limit: limit)
    }

    /// The body of the request, whose bytes are seen here as the origin gets them.
    func watching(_ body: any RequestBodySource) -> any RequestBodySource {
        SeenBody(body) { [weak self] in self?.request.append($0) }
    }

    /// Sees a piece of the answer.
    func see(_ piece: BodyPiece) {
        let bytes = response.room > 0 ? piece.beginning(response.room) : []
        response.append(bytes, of: piece.count)
    }

    /// Names and values of the line.
    /// - Parameter head: of the answer; nil where a problem document has answered.
    func facts(_ asked: RequestHead, _ head: ResponseHead?) -> [(String, String)] {
        [
            ("method", asked.method.name),
            (
                "request",
                request.text(
                    contentType: asked.fields.first(.contentType),
                    coding: asked.fields.combined(.contentEncoding)
                )
            ),
            (
                "response",
                response.text(
                    contentType: head?.fields.first(.contentType),
                    coding: head?.fields.combined(.contentEncoding)
                )
            ),
        ]
    }
}

@available(*, unavailable) extension BodyLog: Sendable {}

/// Passes a body on and shows what was read of it. Loop-bound.
private final class SeenBody: RequestBodySource {
    private let body: any RequestBodySource
    private let see: (UnsafeRawBufferPointer) -> Void

    init(_ body: any RequestBodySource, _ see: @escaping (UnsafeRawBufferPointer) -> Void) {
        self.body = body
        self.see = see
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        if case .bytes(let count) = result { see(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        return result
    }
}

@available(*, unavailable) extension SeenBody: Sendable {}
