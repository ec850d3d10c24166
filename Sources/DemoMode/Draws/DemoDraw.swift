// One draw of a demo rule: how long this answer takes, and whether and how it fails.

package import HTTPWire

/// What one demo request is answered with: a pure function of the rule, the request key and the ordinal.
///
/// Neither connections, loops, threads nor restarts enter a draw. The outcome is one uniform number compared with
/// the chance, so raising the chance turns answers into failures and never a failure into an answer; the latency has
/// a number of its own, so changing its range moves no outcome.
package struct DemoDraw: Sendable {
    /// The endpoint or the service that plays the rule.
    package let endpoint: String
    /// The rule's name among several; nil for the endpoint's own answer.
    package let rule: String?
    /// Nanoseconds to wait before the answer.
    package let latency: UInt64
    /// Whether this answer is a failure of the rule's `failure`.
    package let isFailure: Bool
    /// The status to answer with; that of a collection is known when it has answered.
    package var status: Int
    /// Where the body's bytes come from.
    package let content: DemoContent
    /// The answer's fields, with Content-Type when there is a body and they do not bring their own.
    package let fields: Fields
    /// Four hexadecimal digits that name this draw in fields and logs.
    package let drawID: String
    /// Which request of its key it is for, from 0.
    package private(set) var ordinal: UInt64 = 0
    /// Where the streams of made-up data and of new ids begin.
    package private(set) var start: UInt64 = 0

    /// The part of the draw's key that is the rule's.
    package var ruleName: String { DemoRule.name(endpoint, rule) }

    /// The body's bytes.
    package var body: [UInt8] { content.file?.bytes ?? [] }

    /// The rule's fields in the answer to GET or HEAD: a 200 with a body has an entity tag, unless the rule brings one,
    /// and gives parts of itself.
    package var representationFields: Fields {
        guard status == 200, let file = content.file else { return fields }
        return fields.ofRepresentation(file.entityTag)
    }

    /// The latency an answer states: whole milliseconds, rounded down, so that no answer takes less than it states.
    package var statedMilliseconds: UInt64 { latency / 1_000_000 }

    /// Whether request number `ordinal` of `key` is answered with the rule's failure, and the bits that
    /// `drawID` spells. No allocation.
    package static func outcome(_ rule: DemoRule, key: DrawKey, ordinal: UInt64) -> (isFailure: Bool, id: UInt16) {
        let numbers = DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal)
        let isFailure = rule.failure.map { numbers.unit(.outcome) < $0.chance } ?? false
        return (isFailure, UInt16(truncatingIfNeeded: numbers.bits(.identity) >> 48))
    }

    /// Draws the answer to request number `ordinal` (from 0) of `key` under `rule`.
    /// - Parameter place: how many answers of a sequence came before; nil: as many as the ordinal says.
    package static func draw(_ rule: DemoRule, key: DrawKey, ordinal: UInt64, place: UInt64? = nil) -> DemoDraw {
        let numbers = DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal)
        let outcome = outcome(rule, key: key, ordinal: ordinal)
        let latency = numbers.uniform(in: rule.latency, .latency)
        let answer = rule.choice.answer(place: place ?? ordinal, unit: numbers.unit(.choice))
        var draw = make(rule, answer, latency: latency, isFailure: outcome.isFailure, id: outcome.id)
        draw.ordinal = ordinal
        draw.start = numbers.bits(.content)
        return draw
    }

    /// The draw that has come out so.
    /// - Parameters:
    ///   - answer: the one that was chosen; nil where the rule has one only.
    ///   - id: what `drawID` spells.
    package static func make(
        _ rule: DemoRule,
        _ answer: DemoAnswer? = nil,
        latency: UInt64,
        isFailure: Bool,
        id: UInt16
    ) -> DemoDraw {
        let failed = isFailure ? rule.failure : nil
        let answer = failed?.answer ?? answer ?? rule.answer
        var fields = answer.fields
        if let type = answer.content.contentType, !fields.contains(.contentType) { fields.append(.contentType, type) }
        let digits = String(id, radix: 16)
        return DemoDraw(
            endpoint: rule.endpoint,
            rule: rule.label,
            latency: latency,
            isFailure: failed != nil,
            status: answer.status,
            content: answer.content,
            fields: fields,
            drawID: String(repeating: "0", count: 4 - digits.count) + digits
        )
    }

    /// The same from the request key's bytes.
    package static func draw(_ rule: DemoRule, requestKey: [UInt8], ordinal: UInt64) -> DemoDraw {
        draw(rule, key: DrawKey(rule: rule.name, request: requestKey), ordinal: ordinal)
    }

    /// The value of `Drydock-Demo`, such as `endpoint=user; outcome=failure; status=503; latency=412ms; draw=7f3a`;
    /// behind the endpoint stands `rule=admin` where a rule of a list answers.
    ///
    /// A name that is not a token (RFC 9110 section 5.6.2) is written as a quoted string.
    package var fieldValue: String {
        let outcome = isFailure ? "failure" : "success"
        let rule = rule.map { "rule=\(tokenOrQuoted($0)); " } ?? ""
        return "endpoint=\(tokenOrQuoted(endpoint)); \(rule)outcome=\(outcome); status=\(status); "
            + "latency=\(statedMilliseconds)ms; draw=\(drawID)"
    }
}

extension Fields {
    /// With an entity tag and the word that parts are given, unless they bring their own.
    package func ofRepresentation(_ entityTag: String) -> Fields {
        var fields = self
        if !fields.contains(.etag) { fields.append(.etag, entityTag) }
        if !fields.contains(.acceptRanges) { fields.append(.acceptRanges, "bytes") }
        return fields
    }
}

/// A parameter value of RFC 9110 section 5.6.6; control characters cannot be written there and become `_`.
private func tokenOrQuoted(_ text: String) -> String {
    let isToken = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
    guard !isToken || text.isEmpty else { return text }
    var quoted = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": quoted += "\\\(scalar)"
        case _ where scalar.value < 0x20 || scalar.value == 0x7f: quoted += "_"
        default: quoted.unicodeScalars.append(scalar)
        }
    }
    return quoted + "\""
}
