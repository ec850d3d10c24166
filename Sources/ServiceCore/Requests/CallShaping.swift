// A call as its endpoint sends it: what of the content decides is read first, and nothing is sent before all is known.

import Content
import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Why a call goes no further.
enum ShapingFailure: Error {
    case refused(RouteRefusal)
    /// The client did not send all of its content.
    case failed(FetchError)
}

extension ServiceCall {
    /// The endpoint makes another content, or may look into this one.
    package var isShapedFirst: Bool {
        guard match.endpoint.isShaped, let shape = match.endpoint.request.shape else { return false }
        return shape.changesContent || !isPlain && shape.looksIntoContent(for: match.rest)
    }

    /// The call with its target filled, and the content that is sent.
    func shaped(on loop: isolated EventLoop) async throws(ShapingFailure) -> ServiceCall {
        guard let shape = match.endpoint.request.shape else { return self }
        var call = self
        if let upload = shape.body?.upload {
            let filled = try fill(nil)
            try call.send(upload, shape, filled)
            call.filledRest = filled.rest
            return call
        }
        guard isShapedFirst else {
            call.filledRest = try fill(nil).rest
            return call
        }
        let format: ContentFormat
        do throws(RequestFault) {
            format = try ContentFormat.of(head.fields, isEmpty: isPlain)
        } catch {
            guard !shape.changesContent else { throw refusal(error) }
            // It is no place of parameters, and goes on as it comes.
            call.filledRest = try fill(nil).rest
            return call
        }
        let bytes = try await read(atMost: shape.contentLimit, on: loop)
        let came = bytes.isEmpty ? ContentFormat.none : format
        let tree = try await work(on: bytes.count) { () throws(RequestFault) in try came.tree(bytes) }
        let filled = try fill(tree)
        call.filledRest = filled.rest
        call.body = isPlain ? nil : ContentSource(bytes)
        call.bindBody = nil
        if !isPlain { call.framing = .length(UInt64(bytes.count)) }
        call.originFields.remove(.expect)
        guard shape.changesContent else { return call }
        let fields = head.fields
        let content = try await work(on: bytes.count) { () throws(RequestFault) in
            try shape.content(of: tree, came, fields, members: filled.members)
        }
        if let content { call.replace(content) }
        return call
    }

    private func fill(_ content: ContentTree?) throws(ShapingFailure) -> FilledTarget {
        do throws(RouteRefusal) {
            return try match.route.fill(match.rest, match.endpoint, content: content)
        } catch {
            throw .refused(error)
        }
    }

    /// Bytes of content that a loop can look at without keeping its other requests waiting.
    private static let quick = 64 * 1024

    /// Does what takes time with the length of the content; not on a loop where that is long.
    private func work<Value: Sendable>(
        on length: Int,
        _ body: @escaping @Sendable () throws(RequestFault) -> Value
    ) async throws(ShapingFailure) -> Value {
        let result: Result<Value, RequestFault>
        if length <= Self.quick {
            result = Result(catching: body)
        } else {
            result = await Task.detached { Result(catching: body) }.value
        }
        switch result {
        case .success(let value): return value
        case .failure(let fault): throw refusal(fault)
        }
    }

    private func refusal(_ fault: RequestFault) -> ShapingFailure {
        .refused(.request(fault, service: match.route.plan.name, endpoint: match.endpoint.name))
    }

    /// The whole content.
    private func read(atMost limit: Int, on loop: isolated EventLoop) async throws(ShapingFailure) -> [UInt8] {
        if isPlain { return [] }
        if case .length(let length) = framing, length > UInt64(limit) {
            throw refusal(.tooLarge(limit: limit))
        }
        let content: PostedContent
        do throws(FetchError) {
            content = try await PostedContent.read(body, bind: bindBody, atMost: limit, on: loop)
        } catch {
            throw .failed(error)
        }
        guard content.isWhole, content.bytes.count <= limit else {
            throw refusal(.tooLarge(limit: limit))
        }
        return content.bytes
    }

    private mutating func replace(_ content: ShapedContent) {
        body = ContentSource(content.bytes)
        bindBody = nil
        framing = .length(UInt64(content.bytes.count))
        retype(content.type)
    }

    /// - Parameter type: nil where the client's stays.
    private mutating func retype(_ type: String?) {
        if let type {
            head.fields.set(.contentType, type)
            originFields.set(.contentType, type)
        }
        // They were those of the client's content.
        for name in ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"] {
            head.fields.remove(name)
            originFields.remove(name)
        }
        originFields.remove(.contentEncoding)
        originFields.remove(.expect)
    }

    /// The client's content goes on as one part, as it comes.
    private mutating func send(
        _ upload: UploadPart,
        _ shape: RequestShape,
        _ filled: FilledTarget
    ) throws(ShapingFailure) {
        let coding = head.fields.combined(.contentEncoding) ?? ""
        guard coding.isEmpty || coding.lowercased() == "identity" else {
            throw refusal(.kind("a part of a multipart content has no Content-Encoding: \(coding); send it without"))
        }
        guard let source = body, !isPlain else {
            throw refusal(.encoding("it is empty, and is to be the part '\(upload.name)'"))
        }
        let fields = ContentTree.object(filled.members).filled(from: shape.body?.defaults ?? .empty)
        let content = MultipartContent(
            fields,
            shape.body?.files ?? [],
            shape.style,
            upload,
            type: head.fields.combined(.contentType)
        )
        let (before, after) = content.around
        body = ContentSource(before, then: FollowedSource(source, then: ContentSource(after)))
        if case .length(let length) = framing {
            let (total, isTooLong) = length.addingReportingOverflow(UInt64(before.count + after.count))
            if isTooLong { throw refusal(.tooLarge(limit: .max)) }
            framing = .length(total)
        }
        retype(content.type)
    }
}
