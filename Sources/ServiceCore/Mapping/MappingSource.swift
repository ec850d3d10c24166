// The source that maps the documents of an origin, below the shared fetch: only mapped ones are stored or sent.

import Content
package import DownloadCore
package import EventLoop
import HTTPCaching
import HTTPWire
package import Mapping
import Upstream

/// Maps the answers of a source. Loop-bound; it keeps no state of a request. Conditions that validate a stored response
/// go to the origin unchanged.
package final class MappingSource: FetchSource {
    private let source: any FetchSource
    private let mapping: ResponseMapping
    private let isStored: Bool
    private let isSuccess: (Int) -> Bool

    /// - Parameters:
    ///   - isStored: true if answers may be stored; they carry the origin's validators for later validation then.
    ///   - isSuccess: returns whether a status is a success; other answers are not mapped.
    package init(
        _ source: any FetchSource,
        _ mapping: ResponseMapping,
        isStored: Bool,
        isSuccess: @escaping (Int) -> Bool = { $0 < 400 }
    ) {
        self.source = source
        self.mapping = mapping
        self.isStored = isStored
        self.isSuccess = isSuccess
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
        let fetch = MappedFetch(request, mapping, isStored: isStored, isSuccess, sink: sink)
        var request = request
        request.fields.set(.acceptEncoding, "identity")
        for field in [KnownField.range, .ifRange] { request.fields.remove(field) }
        // The client's conditions are about the mapped document, which the origin does not know.
        if !request.isCheck, request.method == .get || request.method == .head { request.fields.removeConditions() }
        fetch.handle = try await source.start(request, sink: fetch, on: loop)
        return fetch
    }
}

@available(*, unavailable) extension MappingSource: Sendable {}

/// One fetch whose document is mapped. Loop-bound.
///
/// States: waiting for the head → passing (the answer stays as it is) | collecting → streaming | held (all is mapped,
/// and the sink is paused) → ended. While the sink is paused, the decoder keeps the coded bytes that it has not
/// decoded.
private final class MappedFetch: PassingFetch {
    /// The most times that a document may be longer than its coded form; one that expands further is meant to waste
    /// time.
    private static let expansion: Int64 = 256

    private enum State { case waiting, passing, collecting, streaming, held, ended }

    var handle: (any FetchHandle)?
    private(set) var isEndProven = true
    private var state = State.waiting
    private(set) var sink: (any FetchSink)?
    private let mapping: ResponseMapping
    private let method: Method
    private let isCheck: Bool
    private let isStored: Bool
    private let isSuccess: (Int) -> Bool
    /// The entity tags of If-Match; nil without that field.
    private let wanted: String?
    private var head: ResponseHead?
    private var decoder: ContentDecoder?
    private var document: [UInt8] = []
    /// The number of content bytes as they were received.
    private var received: Int64 = 0
    /// The number of content bytes after decoding.
    private var decoded: Int64 = 0
    private var stream: MappingStream?
    /// True while the sink is paused.
    private var isPaused = false
    /// True while a call of the decoder is under way, which must not begin another.
    private var isDecoding = false
    /// True if the origin has sent everything, and not all of it is decoded.
    private var isReceived = false

    init(
        _ request: FetchRequest,
        _ mapping: ResponseMapping,
        isStored: Bool,
        _ isSuccess: @escaping (Int) -> Bool,
        sink: any FetchSink
    ) {
        self.mapping = mapping
        self.sink = sink
        self.isStored = isStored
        self.isSuccess = isSuccess
        method = request.method
        isCheck = request.isCheck
        wanted = request.method == .get && !request.isCheck ? request.fields.combined(.ifMatch) : nil
    }

    // MARK: - FetchHandle

    func resume() {
        isPaused = false
        if state == .held { return end { $0.finished(trailers: Fields()) } }
        guard !isDecoding else { return }
        if decoder?.isStopped == true, decode(UnsafeRawBufferPointer(start: nil, count: 0)) == .pause { return }
        guard state != .ended else { return }
        if isReceived { complete() } else { handle?.resume() }
    }

    func pause() {
        isPaused = true
        handle?.pause()
    }

    func cancel() {
        let handle = handle
        end { _ in }
        handle?.cancel()
    }

    /// False unless the answer passes unchanged: a mapped document comes later than its head.
    var hasContent: Bool { state == .passing && handle?.hasContent ?? false }

    // MARK: - FetchSink

    // The bytes are read and changed here, so they are neither spliced nor taken within another call.
    var acceptsReentrantBytes: Bool { false }
    var supportsSplice: Bool { false }
    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? { nil }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        let isHead = method == .head
        let isSuccess = 200..<300 ~= head.status && isSuccess(head.status)
        // The answer to a validation goes on unchanged: the core compares it with the origin's validators.
        if isCheck, isHead || head.status == 304 { return pass(head, framing) }
        if isHead, isSuccess {
            return pass(mapping.head(head, document: nil, originLength: nil, isStored: false).untagged, framing)
        }
        guard isSuccess, head.status != 204, head.status != 205, mayBeMapped(head, framing) else {
            return pass(isStored ? mapping.unmapped(head) : head, framing)
        }
        if head.status == 206 { return fail(MappingFailure("the origin sent a part of the document")) }
        guard let codings = ContentCoding.codings(head.fields) else {
            return fail(MappingFailure("it is in a content coding that is none of gzip, deflate and br"))
        }
        state = .collecting
        self.head = head
        if !codings.isEmpty { decoder = ContentDecoder(codings) }
    }

    /// True if the answer may be mapped: any answer to GET, and one to another method only if its media type is JSON or
    /// a property list.
    private func mayBeMapped(_ head: ResponseHead, _ framing: BodyFraming) -> Bool {
        if method == .get { return true }
        let type = (head.fields.first(.contentType) ?? "").prefix { $0 != ";" }.lowercased()
        return framing != .none && framing != .length(0) && (type.contains("json") || type.contains("plist"))
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        switch state {
        case .passing: return sink?.received(bytes) ?? .continue
        case .collecting, .streaming:
            received += Int64(bytes.count)
            guard let decoder else { return take(bytes) }
            guard decoder.isStopped else { return decode(bytes) }
            decoder.keep(bytes)
            return .pause
        case .waiting, .held, .ended: return .continue
        }
    }

    /// Decodes the received bytes until the sink pauses.
    private func decode(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard let decoder else { return .continue }
        isDecoding = true
        do throws(ContentDecoder.Malformed) {
            try decoder.push(bytes) { piece in
                decoded += Int64(piece.count)
                if decoded > Self.expansion * received + Int64(mapping.buffer) {
                    fail(MappingFailure("it expands to more than \(Self.expansion) times its length"))
                } else if take(piece) == .pause {
                    isPaused = true
                }
                return state != .ended && !isPaused
            }
        } catch {
            fail(MappingFailure("it does not decode as its Content-Encoding says"))
        }
        isDecoding = false
        return isPaused && state != .ended ? .pause : .continue
    }

    /// Takes decoded bytes: collects them, or maps them as they come.
    private func take(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        do throws(MappingFailure) {
            if state == .collecting {
                document += bytes
                guard document.count > mapping.buffer, let head else { return .continue }
                guard !document.withUnsafeBytes({ MappingPlan.isPropertyList($0) }) else {
                    throw MappingFailure("a property list has more than \(mapping.buffer) bytes")
                }
                let stream = MappingStream(mapping.plan, limit: mapping.buffer)
                self.stream = stream
                state = .streaming
                let length = head.fields.first(.contentLength).flatMap { Int64($0) }
                try push(document, to: stream)
                document = []
                guard tell(mapping.head(head, document: nil, originLength: length, isStored: isStored), .chunked)
                else { return .continue }
            } else if let stream {
                try stream.push(bytes)
            }
            return sendMapped()
        } catch {
            fail(error)
            return .continue
        }
    }

    private func push(_ bytes: [UInt8], to stream: MappingStream) throws(MappingFailure) {
        // The bytes are pushed in pieces: the limit on held bytes is checked from piece to piece.
        for start in stride(from: 0, to: bytes.count, by: 64 * 1024) {
            let piece = bytes[start..<min(start + 64 * 1024, bytes.count)]
            let failure: MappingFailure? = piece.withUnsafeBytes { piece in
                do throws(MappingFailure) { try stream.push(piece) } catch { return error }
                return nil
            }
            if let failure { throw failure }
        }
    }

    private func sendMapped() -> TransferFlow {
        guard let output = stream?.takeOutput(), !output.isEmpty else { return .continue }
        return output.withUnsafeBytes { sink?.received($0) } ?? .continue
    }

    func finished(trailers: Fields) {
        isEndProven = handle?.isEndProven ?? true
        if state == .passing { return end { $0.finished(trailers: trailers) } }
        if decoder?.isStopped == true { isReceived = true } else { complete() }
    }

    /// Ends the document, when all of it has come and is decoded.
    private func complete() {
        if decoder?.isAtEnd == false { return fail(MappingFailure("it ends in the middle of its content coding")) }
        switch state {
        case .streaming:
            do throws(MappingFailure) {
                try stream?.finish()
                end(sendMapped())
            } catch {
                fail(error)
            }
        case .collecting:
            guard let head else { return }
            let mapped: Result<[UInt8], MappingFailure> = document.withUnsafeBytes { bytes in
                do throws(MappingFailure) {
                    return .success(try mapping.plan.map(bytes, limit: mapping.buffer))
                } catch {
                    return .failure(error)
                }
            }
            document = []
            switch mapped {
            case .failure(let failure): fail(failure)
            case .success(let made):
                let length = head.fields.first(.contentLength).flatMap { Int64($0) } ?? received
                let head = mapping.head(head, document: made, originLength: length, isStored: isStored)
                guard tell(head, .length(UInt64(made.count))) else { return }
                end(made.withUnsafeBytes { sink?.received($0) } ?? .continue)
            }
        case .waiting, .passing, .held, .ended: break
        }
    }

    func failed(_ error: FetchError) { end { $0.failed(error) } }

    // MARK: - Sending

    private func pass(_ head: ResponseHead, _ framing: BodyFraming) {
        state = .passing
        sink?.received(head, framing: framing)
    }

    /// Sends the head of a mapped document.
    /// - Returns: false if no content may follow.
    private func tell(_ head: ResponseHead, _ framing: BodyFraming) -> Bool {
        if let wanted, !matches(wanted, head.fields.first(.etag)) {
            let handle = handle
            let refusal = ResponseHead(status: 412, fields: Fields([("Content-Length", "0")]))
            sink?.received(refusal, framing: .length(0))
            end { $0.finished(trailers: Fields()) }
            handle?.cancel()
            return false
        }
        sink?.received(head, framing: framing)
        return state != .ended
    }

    /// True if the entity tag of the mapped document meets If-Match (RFC 9110 section 13.1.1).
    private func matches(_ wanted: String, _ tag: String?) -> Bool {
        let members = wanted.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        return members.contains("*") || tag.map { !$0.hasPrefix("W/") && members.contains($0) } ?? false
    }

    /// Ends the fetch after the whole document; waits first if the sink has paused.
    private func end(_ flow: TransferFlow) {
        guard state != .ended else { return }
        if flow == .pause { state = .held } else { end { $0.finished(trailers: Fields()) } }
    }

    private func fail(_ failure: MappingFailure) {
        let handle = handle
        end { $0.failed(.mapping(mapping.message(failure))) }
        handle?.cancel()
    }

    private func end(_ tell: (any FetchSink) -> Void) {
        guard state != .ended else { return }
        state = .ended
        let sink = sink
        self.sink = nil
        handle = nil
        decoder = nil
        stream = nil
        document = []
        if let sink { tell(sink) }
    }
}

@available(*, unavailable) extension MappedFetch: Sendable {}

extension ResponseHead {
    /// The head without an entity tag: the document that the tag would name was not mapped.
    fileprivate var untagged: ResponseHead {
        var head = self
        head.fields.remove(.etag)
        return head
    }
}

/// The mapping of a route's documents, with the heads that they get.
///
/// Sendable: a value.
package struct ResponseMapping: Sendable, Equatable {
    package let plan: MappingPlan
    /// Bytes up to which a document is mapped before its head is sent; no element of a longer one may be longer than
    /// this.
    package let buffer: Int
    /// The route in error texts, such as `endpoint 'users' of service 'people'`.
    package let owner: String

    package init(_ plan: MappingPlan, buffer: Int = 1 << 20, owner: String) {
        self.plan = plan
        self.buffer = buffer
        self.owner = owner
    }

    /// The error text for a document that cannot be mapped.
    package func message(_ failure: MappingFailure) -> String {
        "the answer for \(owner) cannot be mapped: \(failure); compare 'response.map' with what the origin sends"
    }

    /// The head of a mapped document.
    /// - Parameters:
    ///   - origin: the head of the origin's answer.
    ///   - document: the mapped document; nil while it is not known as a whole.
    ///   - isStored: true if the origin's validators are added for later validation.
    func head(_ origin: ResponseHead, document: [UInt8]?, originLength: Int64?, isStored: Bool) -> ResponseHead {
        var head = origin
        var fields = origin.fields
        let said = MappedOrigin(digest: plan.digest, fields: Self.validators(origin.fields), length: originLength)
        Self.removeRepresentation(from: &fields)
        fields.set(.contentType, "application/json")
        if let tag = entityTag(said.fields, document) { fields.set(.etag, tag) }
        if let document { fields.set(.contentLength, String(document.count)) }
        if isStored { said.write(into: &fields) }
        head.fields = fields
        return head
    }

    /// The head of an answer that is not mapped, and may be stored under the same mapping.
    func unmapped(_ origin: ResponseHead) -> ResponseHead {
        var head = origin
        let length = origin.fields.first(.contentLength).flatMap { Int64($0) }
        MappedOrigin(digest: plan.digest, fields: Self.validators(origin.fields), length: length)
            .write(into: &head.fields)
        return head
    }

    private static func validators(_ fields: Fields) -> Fields {
        var said = Fields()
        for field in [KnownField.etag, .lastModified] {
            if let value = fields.first(field) { said.append(field, value) }
        }
        return said
    }

    /// Removes the fields that describe the origin's bytes, which are replaced by other ones.
    static func removeRepresentation(from fields: inout Fields) {
        for field in [
            KnownField.etag, .lastModified, .contentLength, .contentEncoding, .contentRange, .acceptRanges, .trailer,
        ] { fields.remove(field) }
        for name in MappedOrigin.digests { fields.remove(name) }
        withoutCoding(&fields)
    }

    /// Removes Accept-Encoding from Vary: the mapped document is the same whatever coding the client takes.
    private static func withoutCoding(_ fields: inout Fields) {
        guard let vary = fields.combined(.vary) else { return }
        let names = vary.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        let kept = names.filter { $0.lowercased() != "accept-encoding" && !$0.isEmpty }
        guard kept.count < names.count else { return }
        if kept.isEmpty { fields.remove(.vary) } else { fields.set(.vary, kept.joined(separator: ", ")) }
    }

    /// The entity tag of a mapped document: a digest of its bytes if they are known, else of the origin's validator,
    /// and weak unless that is a strong entity tag; nil if there is no validator.
    private func entityTag(_ said: Fields, _ document: [UInt8]?) -> String? {
        if let document {
            return ContentDigest.sha256.hex(document).map { "\"\($0.prefix(32))\"" }
        }
        let tag = said.first(.etag)
        guard let name = tag ?? said.first(.lastModified),
            let digest = ContentDigest.sha256.hex(Array("\(plan.digest) \(name)".utf8))
        else { return nil }
        let isStrong = tag.map { !$0.hasPrefix("W/") } ?? false
        return (isStrong ? "" : "W/") + "\"\(digest.prefix(32))\""
    }
}
