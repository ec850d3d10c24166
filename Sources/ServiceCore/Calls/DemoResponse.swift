// The answer of one demo draw: a document or a stream of events, with its deliberate mistakes.

package import CacheStore
package import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Matching
import Policies

/// The answer of one demo draw. Sendable: a value.
struct DemoResponse: Sendable {
    private(set) var status: Int
    var fields: Fields
    private let made: [UInt8]
    /// The demo file whose bytes are the body; nil for another body.
    private let file: DemoFile?
    /// Whether a 200 obeys conditions and ranges, because the same request gets the same bytes.
    private(set) var isRepresentation = true
    /// The draw, with the status that resulted from it.
    let draw: DemoDraw

    private init(_ draw: DemoDraw, fields: Fields, body: [UInt8], file: DemoFile? = nil) {
        status = draw.status
        self.draw = draw
        self.fields = fields
        self.file = file
        made = body
    }

    /// The body: the bytes of a large file itself, or else a copy that the budget counts.
    func body(_ budget: BodyBudget) -> Body {
        file?.body(budget) ?? .complete(Chunk(made, budget: budget))
    }

    /// Makes the answer to a request.
    /// - Parameters:
    ///   - parts: the request, with its body if that is needed.
    ///   - now: the time in seconds since 1970.
    static func make(
        _ draw: DemoDraw,
        _ parts: RequestParts,
        _ call: ServiceCall,
        now: Int64,
        on loop: isolated EventLoop
    ) async -> DemoResponse {
        let isAnswerToGet = call.head.method == .get || call.head.method == .head
        switch draw.content {
        case .none, .file, .events:
            let fields = isAnswerToGet ? draw.representationFields : draw.fields
            return DemoResponse(draw, fields: fields, body: [], file: draw.content.file)
        case .template(let template, contentType: _):
            let values = values(draw, parts, call, template, now: now)
            return await filled(draw, template, values, hasTag: isAnswerToGet && draw.status == 200)
        case .collection(let collection): return await answered(draw, collection, parts, call)
        }
    }

    // MARK: - Templates

    private static func values(
        _ draw: DemoDraw,
        _ parts: RequestParts,
        _ call: ServiceCall,
        _ template: DemoTemplate,
        now: Int64
    ) -> TemplateValues {
        TemplateValues(
            method: parts.method,
            target: String(decoding: call.match.route.prefix, as: UTF8.self) + parts.target,
            parameters: parts.parameters.map { ($0.key, String(decoding: $0.value, as: UTF8.self)) },
            fields: parts.fields,
            body: parts.wholeBody ?? [],
            now: now,
            requestCount: draw.ordinal + 1,
            ruleCount: template.countsRule ? call.match.route.demoState.countAnswer(of: draw.ruleName) : 1,
            start: draw.start
        )
    }

    private static func filled(
        _ draw: DemoDraw,
        _ template: DemoTemplate,
        _ values: TemplateValues,
        hasTag: Bool
    ) async -> DemoResponse {
        let made: Result<[UInt8], RenderError>
        let quick =
            values.body.count <= DemoTemplate.quickLimit ? template.rendered(values, DemoTemplate.quickLimit) : nil
        if case .success? = quick, let quick {
            made = quick
        } else {
            // The template is rendered again from the beginning, with the same result, on a thread that no other
            // request waits for.
            made = await Task.detached { template.rendered(values, DemoTemplate.limit) }.value
        }
        switch made {
        case .success(let bytes):
            var response = DemoResponse(draw, fields: draw.fields, body: bytes)
            response.isRepresentation = template.isRepeatable
            if hasTag, template.isRepeatable {
                response.fields = response.fields.ofRepresentation(DemoFile.entityTag(of: bytes))
            }
            return response
        case .failure(let error):
            var draw = draw
            draw.status = 500
            return problem(draw, "Too long", "the template of this answer \(error); repeat less in it")
        }
    }

    private static func problem(_ draw: DemoDraw, _ title: String, _ detail: String) -> DemoResponse {
        let problem = DemoProblem(draw.status, title, detail)
        return DemoResponse(draw, fields: problem.fields, body: problem.body)
    }

    // MARK: - Collections

    private static func answered(
        _ draw: DemoDraw,
        _ collection: DemoCollection,
        _ parts: RequestParts,
        _ call: ServiceCall
    ) async -> DemoResponse {
        var draw = draw
        guard let body = parts.wholeBody else {
            draw.status = 413
            return problem(draw, "Content too large", "the item is longer than 'demo.body_limit'; send a shorter one")
        }
        let request = CollectionRequest(
            method: parts.method,
            target: parts.target,
            prefix: String(decoding: call.match.route.prefix, as: UTF8.self),
            ifMatch: parts.fields.combined(.ifMatch),
            body: body,
            bits: draw.start
        )
        let isLong = body.count > DemoTemplate.quickLimit || collection.size > DemoTemplate.quickLimit
        let answer =
            isLong ? await Task.detached { collection.answer(request) }.value : collection.answer(request)
        draw.status = answer.status
        var fields = draw.fields
        answer.fields.forEachLine { name, value, _ in
            let name = String(decoding: name, as: UTF8.self)
            if !fields.contains(name) { fields.append(name, String(decoding: value, as: UTF8.self)) }
        }
        return DemoResponse(draw, fields: fields, body: answer.body)
    }
}

extension DemoFile {
    /// The file as a body. A large file takes no memory, because its own bytes are sent.
    package func body(_ budget: BodyBudget) -> Body {
        guard let large else { return .complete(Chunk(bytes, budget: budget)) }
        return .complete(Chunk(of: large, in: self, file: memory))
    }
}

extension DemoTemplate {
    fileprivate func rendered(_ values: TemplateValues, _ limit: Int) -> Result<[UInt8], RenderError> {
        Result { () throws(RenderError) in try render(values, limit: limit) }
    }
}

extension RequestParts {
    /// All bytes of the body; nil if it is longer than the limit.
    fileprivate var wholeBody: [UInt8]? {
        switch body {
        case .unread: []
        case .tooLong: nil
        case .whole(let whole): whole.bytes
        }
    }
}

/// The bytes of an event stream, which a timer makes. Between two events the stream consists of the timer and a few
/// words.
///
/// Loop-bound.
final class DemoEventStream: PartSource {
    private let events: DemoEvents
    private let first: UInt64
    private var position: UInt64
    private let began = Monotonic.now()
    private var isEnding = false
    private var waiter: UnsafeContinuation<Void, Never>?

    /// - Parameter position: of the first event that is sent.
    init(_ events: DemoEvents, from position: UInt64) {
        self.events = events
        self.position = position
        first = position
    }

    /// The whole stream as a body.
    func reader(on loop: isolated EventLoop) -> BodyReader { BodyReader(BodySequence([rest]), on: loop) }

    /// Ends the body after the event that was sent last.
    func end() {
        isEnding = true
        wake()
    }

    private var rest: BodySequence.Part { .hole(0..<Int64.max, self) }

    /// Makes the next event when its time has come.
    func readers(
        for range: Range<Int64>,
        on loop: isolated EventLoop
    ) async throws(BodyError) -> [BodySequence.Part] {
        if isEnding || events.isEnd(position) { return [] }
        // Counted from the beginning, so that no delay adds to another.
        let (due, now) = (began &+ events.interval &* (position - first), Monotonic.now())
        if due > now { await wait(due - now, on: loop) }
        if Task.isCancelled { throw .cancelled }
        if isEnding { return [] }
        let bytes = events.bytes(at: position)
        position += 1
        guard let event = Body.complete(Chunk(bytes)).makeReader(on: loop) else { return [] }
        return [.reader(event), rest]
    }

    private func wait(_ nanoseconds: UInt64, on loop: isolated EventLoop) async {
        let timer = LoopTimer(on: loop) { [weak self] in self?.wake() }
        timer.start(after: nanoseconds)
        let box = LoopBox(self, on: loop)
        await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter = $0 }
        } onCancel: {
            box.submit { stream, _ in stream.wake() }
        }
        timer.cancel()
    }

    private func wake() {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume()
    }
}

@available(*, unavailable) extension DemoEventStream: Sendable {}

extension DemoEventStream {
    /// The answer to a call whose draw has events.
    /// - Parameters:
    ///   - lastID: the event that the client says it has seen last.
    ///   - now: the time in seconds since 1970.
    static func answer(
        _ events: DemoEvents,
        _ draw: DemoDraw,
        behind lastID: String?,
        to call: ServiceCall,
        now: Int64,
        on loop: isolated EventLoop
    ) -> ServiceAnswer {
        var (draw, fields) = (draw, draw.fields)
        let position = events.position(behind: lastID)
        // A browser that gets 204 does not connect again.
        if events.isEnd(position) {
            draw.status = 204
            fields.remove(.contentType)
        } else if !fields.contains(.cacheControl) {
            fields.append(.cacheControl, "no-store")
        }
        var answer = Answer(
            head: ResponseHead(status: draw.status, reason: ReasonPhrase.reason(draw.status), fields: fields),
            cacheStatus: nil
        )
        if draw.status != 204, call.head.method != .head {
            let stream = DemoEventStream(events, from: position)
            answer.reader = stream.reader(on: loop)
            // Nothing may be written for a long time, so that the end of the client's side is the only sign that it has
            // left.
            call.endWithClient?()
            call.whenEnding? { [weak stream] in stream?.end() }
        }
        var misconduct = DemoMisconduct(draw)
        misconduct.spoil(&answer, call.head.method, now: now)
        return ServiceAnswer(answer: answer, demo: misconduct.said)
    }
}

/// The deliberate mistakes of one answer, as drawn; it records those that had an effect.
struct DemoMisconduct {
    private var draw: DemoDraw

    init(_ draw: DemoDraw) { self.draw = draw }

    /// The value of Drydock-Demo, with the recorded mistakes.
    var said: String { draw.fieldValue }

    /// Whether the answer makes this mistake; if so, it is recorded.
    mutating func commits(_ kind: Misbehaviour.Kind) -> Bool {
        guard draw.misbehaviour(kind) != nil else { return false }
        draw.misbehaved.append(kind)
        return true
    }

    /// Changes the entity tag that the conditions of the request are compared with.
    mutating func retag(_ fields: inout Fields, _ method: Method) {
        guard let tag = fields.first(.etag) else { return }
        if commits(.etagFlips) || method == .head && commits(.headETag) { fields.set(.etag, draw.wrongTag(for: tag)) }
    }

    /// Makes the mistakes in an answer.
    /// - Parameter now: the time in seconds since 1970.
    mutating func spoil(_ answer: inout Answer, _ method: Method, now: Int64) {
        let isSuccess = 200..<300 ~= answer.head.status
        if method == .head, let length = answer.length, commits(.headLength) { answer.length = length + 1 }
        if method == .head, isSuccess, commits(.headStatus) {
            answer.head.status = 404
            answer.head.reason = ReasonPhrase.reason(404)
        }
        if answer.head.status == 304, answer.head.fields.hasValidator, commits(.bare304) {
            answer.head.fields.remove(.etag)
            answer.head.fields.remove(.lastModified)
        }
        if commits(.varyStar) { answer.head.fields.set(.vary, "*") }
        if let shift = draw.misbehaviour(.date), commits(.date) {
            answer.head.fields.set(.date, HTTPDate.format(now + shift.seconds))
        }
        if let age = draw.misbehaviour(.age), commits(.age) { answer.head.fields.set(.age, String(age.seconds)) }
    }
}

extension Fields {
    fileprivate var hasValidator: Bool { contains(.etag) || contains(.lastModified) }
}

extension RequestHead {
    /// The request without the conditions that may result in a 304.
    var unconditional: RequestHead {
        var head = self
        head.fields.remove(.ifNoneMatch)
        head.fields.remove(.ifModifiedSince)
        return head
    }
}
