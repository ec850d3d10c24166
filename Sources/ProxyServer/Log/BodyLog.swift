// The bodies of a request and of its answer for the daemon's log, if the route asks for them.

import CacheStore
import Content
import EventLoop
import HTTPWire
import Upstream

/// Collects the excerpts of both bodies of one request. Loop-bound.
final class BodyLog {
    private var request: BodyExcerpt
    private var response: BodyExcerpt

    /// - Parameter limit: the most bytes that are shown of each body.
    init(limit: Int) {
        request = BodyExcerpt(limit: limit)
        response = BodyExcerpt(limit: limit)
    }

    /// Wraps the request's body, so that its bytes are seen as the origin gets them.
    func watching(_ body: any RequestBodySource) -> any RequestBodySource {
        SeenBody(body) { [weak self] in self?.request.append($0) }
    }

    /// Adds a piece of the answer's body; a part of a file is read on the I/O pool.
    func see(_ piece: BodyPiece, on loop: isolated EventLoop) async {
        var shown: [UInt8] = []
        if response.room > 0, let part = try? await piece.prefix(response.room).load(on: loop) {
            shown = part.chunk.array(part.range)
        }
        response.append(shown, of: piece.count)
    }

    /// The names and values of the log line.
    /// - Parameters:
    ///   - head: the head of the answer; nil if a problem document was the answer.
    ///   - secrets: the parts of contents that are hidden.
    func facts(_ asked: RequestHead, _ head: ResponseHead?, _ secrets: SecretContent = SecretContent()) -> [(
        String, String
    )] {
        [
            ("method", asked.method.name),
            (
                "request",
                request.text(
                    secrets,
                    contentType: asked.fields.first(.contentType),
                    coding: asked.fields.combined(.contentEncoding)
                )
            ),
            (
                "response",
                response.text(
                    secrets,
                    contentType: head?.fields.first(.contentType),
                    coding: head?.fields.combined(.contentEncoding)
                )
            ),
        ]
    }
}

@available(*, unavailable) extension BodyLog: Sendable {}

extension BodyPiece {
    /// The first bytes of the piece, at most `most`.
    fileprivate func prefix(_ most: Int) -> BodyPiece {
        switch self {
        case .bytes(let chunk, let range): .bytes(chunk, range.prefix(most))
        case .file(let file, let offset, let count): .file(file, offset: offset, count: min(count, most))
        }
    }
}

/// Passes a request body on, and shows each part to a closure as it is read. Loop-bound.
final class SeenBody: RequestBodySource {
    private let body: any RequestBodySource
    private let see: (UnsafeRawBufferPointer) -> Void
    private let ended: () -> Void

    /// - Parameter ended: called when the body has ended.
    init(
        _ body: any RequestBodySource,
        _ see: @escaping (UnsafeRawBufferPointer) -> Void,
        ended: @escaping () -> Void = {}
    ) {
        self.body = body
        self.see = see
        self.ended = ended
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        switch result {
        case .bytes(let count): see(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        case .end: ended()
        case .wait, .failed: break
        }
        return result
    }
}

@available(*, unavailable) extension SeenBody: Sendable {}
