// Makes a recording of a stored response, without secrets and without content codings.

package import CacheStore
import Content
import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
import Policies

/// The reason why no recording was made.
package enum KeepRefusal: Error, Sendable, Equatable {
    /// The stored response or the route does not allow it; the text tells what to do.
    case refused(String)
    /// The folder with this path cannot be written; the log has the reason.
    case notWritten(String)
}

/// Makes recordings of stored responses. Loop-bound, made for one command.
package struct RecordingMaker {
    private let services: ServiceClient

    package init(_ services: ServiceClient) { self.services = services }

    /// Makes a recording of the stored response that a call selects, in place of an earlier one of its request.
    /// - Parameter call: a GET.
    /// - Throws: `KeepRefusal`.
    package func keep(_ call: ServiceCall, on loop: isolated EventLoop) async throws(KeepRefusal) -> Recording {
        let name = call.match.route.label
        guard let plan = call.match.endpoint.request.recordings else {
            throw .refused("\(name) has no folder for recordings; add recordings: { dir: ./recordings }")
        }
        guard plan.source == .live else {
            throw .refused("\(name) has 'source: \(plan.source.rawValue)', and stores nothing; it records by itself")
        }
        if call.match.endpoint.request.mapping != nil {
            throw .refused("what \(name) stores has been mapped, and a recording is what its origin has answered")
        }
        guard let step = try? services.liveStep(call), case .store(let ask, _) = step,
            let (key, _) = RecordedCall.key(of: call, plan.rules)
        else {
            throw .refused("\(name) stores no answer to such a request; 'drydock explain' says why")
        }
        guard let response = await services.core.store.response(to: ask, on: loop) else {
            throw .refused(
                "nothing is stored for '\(key.request)'; ask for it first, or name it as 'drydock list' does"
            )
        }
        let recording = try await Self.recording(of: response, key, call.originFields, plan, on: loop)
        guard await plan.folder.save(recording) else { throw .notWritten(plan.folder.path) }
        return recording
    }

    private static func recording(
        of response: StoredResponse,
        _ key: RecordingKey,
        _ request: Fields,
        _ plan: RecordingPlan,
        on loop: isolated EventLoop
    ) async throws(KeepRefusal) -> Recording {
        var fields = HopByHop.forwardable(response.head.fields, isRequest: false)
        guard let codings = ContentCoding.codings(fields) else {
            throw .refused("the stored response to '\(key.request)' has a content coding that cannot be taken off")
        }
        let decoder = ContentDecoder(codings)
        let content = try await whole(response.body, decoder, atMost: plan.rules.maximumSize, key, on: loop)
        let isPlain = codings.isEmpty
        fields.remove(.contentEncoding)
        let result = await plan.folder.away { [fields] in
            Result { () throws(RedactionRefusal) in
                try Redaction.apply(to: content, of: fields, plan.rules, plan.secrets, isSent: isPlain)
            }
        }
        let kept: (fields: Fields, content: [UInt8])
        switch result {
        case .success(let redacted): kept = redacted
        case .failure(let error): throw .refused("the stored response to '\(key.request)' \(error)")
        case nil: throw .refused("the daemon ends")
        }
        return Recording(
            key: key,
            vary: plan.rules.matchesVary ? RecordingVary.pairs(kept.fields, request) : [],
            recordedAt: response.head.validatedAt,
            status: response.head.status,
            reason: response.head.reason,
            fields: kept.fields,
            content: kept.content
        )
    }

    /// Reads the whole body and decodes it.
    private static func whole(
        _ body: Body,
        _ decoder: ContentDecoder,
        atMost limit: Int,
        _ key: RecordingKey,
        on loop: isolated EventLoop
    ) async throws(KeepRefusal) -> [UInt8] {
        var content: [UInt8] = []
        do {
            let reader = body.makeReader(on: loop)
            defer { reader?.close() }
            while let piece = try await reader?.next(maxBytes: 65536, on: loop) {
                let part = try await piece.load(on: loop)
                try part.chunk.withBytes { bytes in
                    try decoder.push(UnsafeRawBufferPointer(rebasing: bytes[part.range])) { decoded in
                        content.append(contentsOf: decoded)
                        return content.count <= limit
                    }
                }
                if content.count > limit { break }
            }
        } catch {
            throw .refused("the stored response to '\(key.request)' cannot be read: \(error)")
        }
        guard content.count <= limit else {
            throw .refused(
                "the stored response to '\(key.request)' has more than \(limit) bytes; raise 'recordings.max_size'"
            )
        }
        guard content.isEmpty || decoder.isAtEnd else {
            throw .refused("the content coding of the stored response to '\(key.request)' does not come to its end")
        }
        return content
    }
}

@available(*, unavailable) extension RecordingMaker: Sendable {}

extension Recording {
    /// The recording as a response for a seed folder.
    /// - Parameters:
    ///   - service: the name of the recording's service.
    ///   - root: scheme and authority of its origin.
    /// - Returns: nil if the key has parts by which a seed cannot be found.
    package func seed(service: String, root: String) -> StoredResponse? {
        guard let path = key.pathOfGET, key.body == nil, !key.tellsSecretsApart else { return nil }
        // Credentials and absent fields are left out: there is no value by which a seed could be found.
        let varying =
            key.fieldLines.filter { $0.value != Redaction.mark }
            + (vary ?? []).compactMap { $0.count == 2 && $0[1] != Redaction.mark ? ($0[0], $0[1]) : nil }
        let head = StoredHead(
            status: status,
            reason: reason,
            fields: fields,
            requestTime: recordedAt,
            responseTime: recordedAt,
            validatedAt: recordedAt,
            initialAge: 0,
            varyFields: Fields(varying.map { ($0.0, $0.1) }),
            varyNames: varying.map(\.0),
            bodyLength: Int64(content.count),
            requestMethod: .get,
            hadAuthorization: false
        )
        return StoredResponse(
            key: CacheKey(service: service, url: root + path),
            head: head,
            body: .complete(content),
            tier: .seed,
            via: nil,
            policy: CachePolicy()
        )
    }
}
