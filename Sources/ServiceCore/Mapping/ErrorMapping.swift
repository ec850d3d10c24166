// Gives failed answers one declared shape when they are sent; stored responses stay as the origin sent them.

import CacheStore
import Content
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
package import Mapping

/// The mapping of the failed answers of a route.
///
/// Sendable: a value.
package struct ErrorMapping: Sendable, Equatable {
    package let plan: MappingPlan
    /// The most bytes of an origin's content that are read, after decoding and as JSON; a longer one gives no `body`. A
    /// document with a `body` has at most twice as many bytes, or 8 KiB.
    package let buffer: Int
    let service: String
    /// The name of the endpoint; nil for requests without a named endpoint.
    let endpoint: String?

    package init(_ plan: MappingPlan, buffer: Int = 1 << 20, service: String, endpoint: String?) {
        self.plan = plan
        self.buffer = buffer
        self.service = service
        self.endpoint = endpoint
    }

    /// The answer as its client gets it.
    /// - Parameters:
    ///   - isSuccess: returns whether a status is a success, which is not mapped.
    ///   - isHead: true if the content is not wanted.
    /// - Returns: the answer, and a document if it has a failure in place of a head.
    func apply(
        to answer: Answer,
        isSuccess: (Int) -> Bool,
        isHead: Bool,
        on loop: isolated EventLoop
    ) async -> (answer: Answer, document: [UInt8]?) {
        if let failure = answer.failure { return (answer, document(of: failure)) }
        let status = answer.head.status
        guard !isSuccess(status), !answer.isStandIn, !answer.isUnsatisfiable, status != 204, status != 205 else {
            return (answer, nil)
        }
        var result = answer
        // The Content-Range of a 416 is the length of the representation, which the client needs to go on.
        let length = status == 416 ? result.head.fields.first(.contentRange) : nil
        ResponseMapping.removeRepresentation(from: &result.head.fields)
        if let length { result.head.fields.set(.contentRange, length) }
        result.head.fields.set(.contentType, "application/json")
        result.reader = nil
        result.length = nil
        // Without reading the content, the length of the document would be unknown.
        guard !isHead, let reader = answer.reader else {
            return isHead ? (result, nil) : (filled(result, with: nil, on: loop), nil)
        }
        let content = await read(reader, answer.head.fields, on: loop)
        let body = content.flatMap { ErrorDocument.body($0, mediaType: answer.head.fields.first(.contentType)) }
        // A text may be six times as long once it is written as JSON.
        return (filled(result, with: body.flatMap { $0.count > buffer ? nil : $0 }, on: loop), nil)
    }

    private func filled(_ answer: Answer, with body: [UInt8]?, on loop: isolated EventLoop) -> Answer {
        var answer = answer
        let status = answer.head.status
        let known = ReasonPhrase.reason(status)
        var document = ErrorDocument(
            status: status,
            code: "http_\(status)",
            message: answer.head.reason.isEmpty ? known : answer.head.reason,
            service: service,
            endpoint: endpoint,
            source: .origin,
            body: body
        )
        var bytes = document.mapped(by: plan)
        // The document may be too long, since the plan may use the content several times: it is made without the
        // content then.
        if body != nil, bytes.count > 2 * max(buffer, 4096) {
            document.body = nil
            bytes = document.mapped(by: plan)
        }
        let made = Body.complete(bytes)
        answer.reader = made.makeReader(on: loop)
        answer.length = made.knownLength
        return answer
    }

    /// The document of a failure; nil for a failure of the request or of its client, which stays a problem document.
    private func document(of failure: FetchError) -> [UInt8]? {
        guard failure.isOriginFailure || failure.isStop else { return nil }
        return ErrorDocument(
            status: failure.status,
            code: failure.proxyStatus ?? "proxy_internal_error",
            message: failure.told,
            service: service,
            endpoint: endpoint,
            source: .drydock
        ).mapped(by: plan)
    }

    /// The content of an answer without its codings; nil if it is longer than the buffer, does not decode, or is
    /// incomplete.
    private func read(_ reader: BodyReader, _ fields: Fields, on loop: isolated EventLoop) async -> [UInt8]? {
        defer { reader.close() }
        guard let codings = ContentCoding.codings(fields) else { return nil }
        let decoder = ContentDecoder(codings)
        var content: [UInt8] = []
        var isShort = true
        do {
            while let piece = try await reader.next(maxBytes: 64 * 1024, on: loop) {
                let part = try await piece.load(on: loop)
                try part.chunk.withBytes { bytes in
                    try decoder.push(UnsafeRawBufferPointer(rebasing: bytes[part.range])) { decoded in
                        isShort = content.count + decoded.count <= buffer
                        if isShort { content += decoded }
                        return isShort
                    }
                }
                guard isShort else { return nil }
            }
        } catch {
            return nil
        }
        return decoder.isAtEnd ? content : nil
    }
}

extension FetchError {
    /// True if an operator has ended the fetch.
    fileprivate var isStop: Bool { if case .stopped = self { true } else { false } }
}
