// The bodies of one request and its answer, for the daemon's log: made only where a route says so.

import CacheStore
import Content
import EventLoop
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

    /// Sees a piece of the answer; what of a file is shown is read on the I/O pool.
    func see(_ piece: BodyPiece, on loop: isolated EventLoop) async {
        var shown: [UInt8] = []
        if response.room > 0, let part = try? await piece.prefix(response.room).load(on: loop) {
            shown = part.chunk.array(part.range)
        }
        response.append(shown, of: piece.count)
    }

    /// Names and values of the line.
    /// - Parameters:
    ///   - head: of the answer; nil where a problem document has answered.
    ///   - secrets: what is hidden.
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
    /// Its first bytes, at most so many.
    fileprivate func prefix(_ most: Int) -> BodyPiece {
        switch self {
        case .bytes(let chunk, let range): .bytes(chunk, range.prefix(most))
        case .file(let file, let offset, let count): .file(file, offset: offset, count: min(count, most))
        }
    }
}

/// Passes a body on and shows what was read of it. Loop-bound.
final class SeenBody: RequestBodySource {
    private let body: any RequestBodySource
    private let see: (UnsafeRawBufferPointer) -> Void
    private let ended: () -> Void

    /// - Parameter ended: called when there is no more of it.
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
