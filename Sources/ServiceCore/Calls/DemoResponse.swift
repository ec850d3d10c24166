// The answer of one draw: a file as it is, a template filled in, or what a collection says.

package import CacheStore
package import DemoMode
import EventLoop
import HTTPWire
import Matching

/// Sendable: a value.
struct DemoResponse: Sendable {
    private(set) var status: Int
    var fields: Fields
    private let made: [UInt8]
    /// The answer file whose bytes the body has.
    private let file: DemoFile?
    /// A 200 obeys conditions and ranges: the same request would get the same bytes.
    private(set) var isRepresentation = true
    /// The draw, with the status that came of it.
    let draw: DemoDraw

    private init(_ draw: DemoDraw, fields: Fields, body: [UInt8], file: DemoFile? = nil) {
        status = draw.status
        self.draw = draw
        self.fields = fields
        self.file = file
        made = body
    }

    /// The body: of a large file its own bytes, and else a copy, which the budget counts.
    func body(_ budget: BodyBudget) -> Body {
        file?.body(budget) ?? .complete(Chunk(made, budget: budget))
    }

    /// - Parameters:
    ///   - parts: the request, with its body where that is needed.
    ///   - now: seconds since 1970.
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
            // Once more from the beginning, which gives the same text, where it keeps no other request waiting.
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
    /// The file as a body. A large one costs nothing: whoever sends it sends the bytes of the file itself.
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
    /// Nil where it is longer than what is read.
    fileprivate var wholeBody: [UInt8]? {
        switch body {
        case .unread: []
        case .tooLong: nil
        case .whole(let whole): whole.bytes
        }
    }
}
