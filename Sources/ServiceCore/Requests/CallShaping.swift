// A call with the changes of its endpoint: its content is read and made anew before anything of it is sent.

import DownloadCore
import EventLoop
import HTTPWire
import Policies
import Trees
import Upstream

/// The reason why a call is not sent.
enum ShapingFailure: Error {
    case refused(RouteRefusal)
    /// The client did not send all of its content.
    case failed(FetchError)
}

extension ServiceCall {
    /// Whether the endpoint makes another content, or may look into this one.
    package var isShapedFirst: Bool {
        guard match.endpoint.isShaped, let shape = match.endpoint.request.shape else { return false }
        return shape.changesContent || !isPlain && shape.looksIntoContent(for: match.rest)
    }

    /// The call with its target filled, and with the content that is sent.
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
            // The content has no parameters, and is sent unchanged.
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

    /// The most bytes of content that a loop examines itself, so that other requests do not wait.
    private static let quick = 64 * 1024

    /// Does work whose time depends on the length of the content, off the loop if that is long.
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

    /// Reads the whole content.
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

    /// Sets the type of the content.
    /// - Parameter type: the type; nil to keep the client's.
    private mutating func retype(_ type: String?) {
        if let type {
            head.fields.set(.contentType, type)
            originFields.set(.contentType, type)
        }
        // The digests are those of the client's content.
        for name in ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"] {
            head.fields.remove(name)
            originFields.remove(name)
        }
        originFields.remove(.contentEncoding)
        originFields.remove(.expect)
    }

    /// Sends the client's content unchanged as one part.
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

/// The content that is sent, with its type.
struct ShapedContent: Equatable {
    let bytes: [UInt8]
    /// The type; nil for the client's own.
    let type: String?
}

/// The format of a client's content, as far as it can be read as a tree.
enum ContentFormat {
    case json, form
    /// There is no content.
    case none

    /// The format of a content.
    /// - Throws: a fault if content of the type is not read.
    static func of(_ fields: Fields, isEmpty: Bool) throws(RequestFault) -> ContentFormat {
        if isEmpty { return .none }
        let coding = fields.combined(.contentEncoding) ?? ""
        guard coding.isEmpty || coding.lowercased() == "identity" else {
            throw .kind("this endpoint reads the content, which has Content-Encoding: \(coding); send it without")
        }
        switch MediaType.of(fields) {
        case nil: return .json
        case let type? where MediaType.isJSON(type): return .json
        case MediaType.form?: return .form
        case let type?:
            throw .kind(
                "this endpoint reads the content, which is \(type); send application/json or \(MediaType.form)"
            )
        }
    }

    func tree(_ bytes: [UInt8]) throws(RequestFault) -> ContentTree {
        do throws(TreeError) {
            switch self {
            case .json: return try JSONReader.read(bytes)
            case .form: return try FormItems.read(bytes)
            case .none: return .empty
            }
        } catch {
            throw .malformed(error.description)
        }
    }
}

extension RequestShape {
    /// Makes the content that is sent.
    /// - Parameters:
    ///   - fields: the fields of the request.
    ///   - members: the parameters that are added to the content.
    /// - Returns: nil if there is no content.
    func content(
        of tree: ContentTree,
        _ format: ContentFormat,
        _ fields: Fields,
        members: [ContentTree.Member]
    ) throws(RequestFault) -> ShapedContent? {
        let body = body ?? BodyShape()
        let added = ContentTree.object(members).filled(from: body.defaults)
        if case .none = format, added == .empty, body.files.isEmpty { return nil }
        if tree.members == nil, added != .empty {
            throw .encoding("it is no object, and parameters are to be added to it")
        }
        do throws(TreeError) {
            let changed = try changed(tree.filled(from: added), body)
            return try encoded(changed, format, MediaType.of(fields), body)
        } catch {
            throw .encoding(error.description)
        }
    }

    private func changed(_ tree: ContentTree, _ body: BodyShape) throws(TreeError) -> ContentTree {
        var tree = body.stripsNulls ? tree.strippingNulls() : tree
        for path in body.dates?.members ?? [] {
            guard let form = body.dates?.form else { break }
            tree = try tree.changing(path[...]) { value throws(TreeError) in try form.sent(value, path) }
        }
        for path in body.data {
            tree = try tree.changing(path[...]) { value throws(TreeError) in
                if case .null = value { return value }
                guard case .string(let text) = value, let bytes = Base64.decode(text) else {
                    throw TreeError("'\(path.joined(separator: "."))' is not base64")
                }
                return .data(bytes)
            }
        }
        if let names = body.names { tree = try names.renamed(tree) }
        return style.isSorted ? tree.sorted() : tree
    }

    /// Encodes the content.
    /// - Parameter type: the type of the client's content, which is kept for the same format.
    private func encoded(
        _ tree: ContentTree,
        _ format: ContentFormat,
        _ type: String?,
        _ body: BodyShape
    ) throws(TreeError) -> ShapedContent {
        let came: ContentEncodingFormat = if case .form = format { .form } else { .json }
        let encoding = body.encoding ?? came
        if encoding != .json, encoding != .plist, tree.members == nil {
            throw TreeError("it is no object, and \(encoding.rawValue) has names for all values")
        }
        switch encoding {
        case .json:
            let isOwn = type.map { MediaType.isJSON($0) } ?? false
            return ShapedContent(bytes: JSONWriter.bytes(tree), type: isOwn ? nil : MediaType.json)
        case .form:
            let isOwn = type == MediaType.form
            return ShapedContent(bytes: Array(FormItems.text(tree, style).utf8), type: isOwn ? nil : MediaType.form)
        case .plist: return ShapedContent(bytes: try PropertyListWriter.bytes(tree), type: MediaType.plist)
        case .multipart:
            let content = MultipartContent(tree, body.files, style)
            return ShapedContent(bytes: content.whole, type: content.type)
        }
    }
}

extension DateForm {
    /// A time in the form in which it is sent; null is kept.
    /// - Parameter path: the path of the member.
    fileprivate func sent(_ value: ContentTree, _ path: [String]) throws(TreeError) -> ContentTree {
        let time: CalendarTime?
        switch value {
        case .null: return value
        case .number(let text):
            // A number is in whole seconds since 1970.
            time = Int64(text).flatMap { CalendarTime.range.contains($0) ? CalendarTime($0) : nil }
        case .string(let text): time = CalendarTime(iso8601: text)
        default: time = nil
        }
        guard let time else {
            throw TreeError(
                "'\(path.joined(separator: "."))' is no time; write 2024-05-06T07:08:09Z, or whole seconds since 1970"
            )
        }
        switch self {
        case .seconds: return .number(String(time.seconds))
        case .milliseconds: return .number(String(time.seconds * 1000))
        case .iso8601: return .date(time.seconds)
        case .pattern(let pattern): return .string(time.formatted(pattern))
        }
    }
}
