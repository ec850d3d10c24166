// The hot path for requests with deciding fields: they select a variant, and whether the answer is a
// 304, one part, or all of it.

import CacheStore
import HTTPCaching
import HTTPWire
import ServiceCore

extension HotPathWindow {
    /// With one of these fields a request may get less than the whole.
    static let selecting = FieldSet(.ifNoneMatch, .ifModifiedSince, .ifRange, .range)
}

/// A fresh response, found for a request. For the length of one call; not copyable, since a
/// copy would count references.
struct HotHit: ~Copyable {
    let response: ResidentResponse
    let ready: ResidentResponse.Ready
    /// What its body is in; nil where that is memory.
    let file: ReadyFile?
    /// Unix seconds.
    let now: Int64
    /// For the access log.
    let route: HotRoute

    /// Of the body, in bytes.
    var length: Int { file?.length ?? ready.body.count }

    /// The whole body; nil if sending it needs a wait.
    var body: HotBody? { file == nil ? inMemory(ready.body) : body(0..<length) }

    /// A part of the body; nil if sending it needs a wait.
    func body(_ range: Range<Int>) -> HotBody? {
        guard let file else { return inMemory(ready.body.part(range)) }
        return file.piece(range).map { .file($0.file, offset: $0.offset, count: range.count) }
    }

    /// Few bytes are copied, wherever they lie.
    private func inMemory(_ bytes: UnsafeRawBufferPointer) -> HotBody {
        .memory(bytes, in: bytes.count >= Chunk.memfdThreshold ? response.file : nil)
    }
}

extension HotState {
    /// Answers as the waiting path would; `.notMine` where that has to decide.
    func answerSelected(
        _ hit: borrowing HotHit,
        _ request: borrowing HotRequest,
        through sender: any HotSender
    ) -> HotAnswer {
        let fields = request.fields
        guard fields.areEndToEnd, mayCopy(hit.ready.head) else { return .notMine }
        let validators = hit.response.validators
        if Caching.isNotModified(fields, .get, stored: validators) { return sendNotModified(hit, through: sender) }
        if !request.present.contains(.range) { return send(hit, through: sender) }
        return switch Caching.onePart(fields, stored: validators, length: Int64(hit.length)) {
        case nil: .notMine
        case .whole: send(hit, through: sender)
        case .part(let range): sendPart(hit, range, through: sender)
        }
    }

    /// A 304 repeats some lines of the ready head (RFC 9110 section 15.4.5).
    private func sendNotModified(_ hit: borrowing HotHit, through sender: any HotSender) -> HotAnswer {
        let hasTag = hit.response.hasTag
        var lines = longLines
        lines.append("HTTP/1.1 304 Not Modified\r\n")
        lines.append(hit.ready.head) { Caching.isInNotModified($0, $1, hasTag: hasTag) }
        // Not repeated, but for this proxy's own member.
        via.withUnsafeBytes { lines.append($0) }
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: UnsafeRawBufferPointer(start: nil, count: 0),
            dynamic: lines.bytes,
            body: .none,
            owner: hit.ready.owner,
            record: HotRecord(status: 304, route: hit.route, cacheStatus: cacheStatus, cache: .hit)
        )
    }

    /// A 206 with one part repeats nearly all of them (RFC 9110 section 15.3.7.1).
    private func sendPart(
        _ hit: borrowing HotHit,
        _ range: Range<Int64>,
        through sender: any HotSender
    ) -> HotAnswer {
        guard let body = hit.body(Int(range.lowerBound)..<Int(range.upperBound)) else { return .notMine }
        var lines = longLines
        lines.append("HTTP/1.1 206 Partial Content\r\n")
        lines.append(hit.ready.head) { $1 != .contentLength && Caching.isInPart($0, $1) }
        if !hit.response.acceptsRanges { lines.append("Accept-Ranges: bytes\r\n") }
        lines.append("Content-Length: ")
        lines.append(range.upperBound - range.lowerBound)
        lines.append("\r\nContent-Range: bytes ")
        lines.append(range.lowerBound)
        lines.append("-")
        lines.append(range.upperBound - 1)
        lines.append("/")
        lines.append(Int64(hit.length))
        lines.append("\r\n")
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: UnsafeRawBufferPointer(start: nil, count: 0),
            dynamic: lines.bytes,
            body: body,
            owner: hit.ready.owner,
            record: HotRecord(status: 206, route: hit.route, cacheStatus: cacheStatus, cache: .hit)
        )
    }
}

extension HotRequest {
    /// Whether the request selects a stored response beyond doubt.
    func selects(_ response: ResidentResponse) -> Bool {
        let fields = self.fields
        return fields.areEndToEnd
            && Caching.selectsPlainly(names: response.varyNames, stored: response.varyLines, fields)
    }

    /// Whether a loop is possible: the pseudonym occurs in Via, be it as another word.
    func mayHavePassed(_ pseudonym: String) -> Bool {
        var mayHave = false
        fields.forEachValue(.via) { if $0.contains(pseudonym) { mayHave = true } }
        return mayHave
    }

    /// Whether Sec-Fetch-Site says that a page of another web origin may be asking.
    var mayBeForeignFetch: Bool {
        var mayBe = false
        fields.forEachValue(.secFetchSite) { if CrossOrigin.isForeign(site: $0) { mayBe = true } }
        return mayBe
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes contain a word, regardless of case.
    fileprivate func contains(_ word: String) -> Bool {
        word.utf8.withContiguousStorageIfAvailable { word in
            let word = UnsafeRawBufferPointer(word)
            guard count >= word.count else { return false }
            return (0...count - word.count).contains {
                part($0..<$0 + word.count).equalsIgnoringCase(word)
            }
        } ?? true
    }
}
