// What a request does with its content: whether it may have one, whether its answer is stored by it, how it is passed on.

import CacheStore
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPTypes
import HTTPWire
import ServiceCore
import Upstream

extension DownloadRequest {
    /// - Throws: `DownloadError.invalidRequest` for what cannot be sent to anybody.
    static func check(_ request: HTTPRequest, _ body: RequestBody?) throws(DownloadError) {
        let text = request.text
        switch request.method {
        case .connect: throw refuse(text, "CONNECT asks for a tunnel, and a manager has none")
        case .head where body != nil: throw refuse(text, "a HEAD has no content: leave the body out")
        case .trace where body != nil: throw refuse(text, "a TRACE has no content: leave the body out")
        default: break
        }
        guard let body, case .multipart(let form) = body.source else { return }
        if let fault = form.fault { throw refuse(text, fault) }
        if let own = request.headerFields[.contentType], !form.isNamed(by: own) {
            throw refuse(text, "its Content-Type does not name the boundary of its form: leave the field out")
        }
    }

    /// The request's own fields, with the media type of its content.
    static func fields(of request: HTTPRequest, _ body: RequestBody?) -> HTTPFields {
        var fields = request.headerFields
        if let type = body?.contentType, fields[.contentType] == nil { fields[.contentType] = type }
        return fields
    }

    /// The content of a POST that is a question like a GET: one in memory, whose answer is kept for requests with the
    /// same content. Nil: the request is another one. Preconditions are for the origin to judge.
    static func storedContent(
        of request: HTTPRequest,
        _ body: RequestBody?,
        _ configuration: DownloadConfiguration,
        _ options: DownloadOptions
    ) -> [UInt8]? {
        guard request.method == .post, !options.bypassesStore,
            configuration.storedMethods(for: options).contains(.post)
        else { return nil }
        let conditions: [HTTPField.Name] = [
            .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        ]
        guard conditions.allSatisfy({ request.headerFields[$0] == nil }) else { return nil }
        guard let body else { return [] }
        return body.data.map { Array($0) }
    }

    /// The request as it is passed on, and what its success makes invalid.
    /// - Parameters:
    ///   - ask: the question that a GET of the target would be, but for its method.
    ///   - upload: its content; nil where it has none.
    func passed(_ ask: CacheRequest, _ upload: Upload?, on loop: isolated EventLoop) -> UncachedRequest {
        var fetch = FetchRequest(method: method, path: path, fields: sent, framing: framing(upload))
        if let upload { (fetch.body, fetch.bindBody) = upload.open(on: loop) }
        let url = origin.root + path
        let trail = FetchTrail()
        fetch.trail = trail
        return UncachedRequest(fetch, ask, url: url) { answer in
            (trail.urls(named: answer, url) + trail.changed).map { CacheKey(service: "", url: $0) }
        }
    }

    private func framing(_ upload: Upload?) -> BodyFraming {
        if let upload { return upload.framing }
        // RFC 9110 section 8.6: these say that they have no content.
        switch method {
        case .post, .put, .patch: return .length(0)
        default: return .none
        }
    }
}

extension DownloadRequest {
    /// The content as it is sent; nil where the request has none, or is not passed on.
    /// - Throws: `DownloadError.requestBody`.
    func upload(_ files: IOPool, _ meter: UploadMeter?) async throws(DownloadError) -> Upload? {
        guard let body else {
            meter?.expect(content.map { Int64($0.count) })
            return nil
        }
        let upload = try await Upload(body, files: files)
        meter?.expect(upload.length)
        return upload
    }

    /// Why its content kept the request from being answered; nil where it did not.
    func failure(
        of head: DownloadSession.Head,
        _ upload: Upload?,
        _ configuration: DownloadConfiguration
    ) -> DownloadError? {
        guard let upload else { return nil }
        if case .upstream(let error)? = head.failure, error.kind == .requestBody, let failure = upload.failure {
            return failure
        }
        // A redirect that would have been followed with the content, had that been there once more.
        guard options.maximumRedirects ?? configuration.maximumRedirects > 0, !upload.body.isRepeatable,
            head.failure == nil,
            let location = head.response.headerFields[.location]
        else { return nil }
        let answer = ResponseHead(status: head.response.status.code, fields: Fields([("Location", location)]))
        let place = RedirectTarget(origin, path: path)
        guard
            case .follow(let target, _, keepsContent: true) =
                RedirectDecision.decide(answer, to: method, at: place, canRepeat: true)
        else { return nil }
        return .requestBody(
            "\(url) redirects to \(target.url), which needs the content again, and that can be sent once: ask there, "
                + "or make the stream anew for each attempt"
        )
    }
}
