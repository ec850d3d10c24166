// One draw of a demo rule: how long this answer takes, whether and how it fails, and which misbehaviours it has.

package import HTTPWire
package import Policies

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
    package private(set) var latency: UInt64
    /// Whether this answer is a failure of the rule's `failure`.
    package private(set) var isFailure: Bool
    /// The status to answer with; that of a collection is known when it has answered.
    package var status: Int
    /// Where the body's bytes come from.
    package private(set) var content: DemoContent
    /// The answer's fields, with Content-Type when there is a body and they do not bring their own.
    package private(set) var fields: Fields
    /// What names this draw in fields and logs.
    package let name: DrawName
    /// Where the streams of made-up data and of new ids begin.
    package private(set) var start: UInt64 = 0
    /// What the answer may get wrong.
    package private(set) var misbehaviours: [Misbehaviour] = []
    /// What it did get wrong.
    package var misbehaved: [Misbehaviour.Kind] = []

    /// The request has asked for some of it.
    package private(set) var isOverridden = false

    /// The part of the draw's key that is the rule's.
    package var ruleName: String { DemoRule.name(endpoint, rule) }

    /// The body's bytes.
    package var body: [UInt8] { content.file?.bytes ?? [] }

    /// The body's length in bytes.
    package var bodyLength: Int { content.file?.count ?? 0 }

    /// The rule's fields in the answer to GET or HEAD: a 200 with a body has an entity tag, unless the rule brings one,
    /// and gives parts of itself.
    package var representationFields: Fields {
        guard status == 200, let file = content.file else { return fields }
        return fields.ofRepresentation(file.entityTag, modifiedAt: file.modifiedAt)
    }

    /// The latency an answer states: whole milliseconds, rounded down, so that no answer takes less than it states.
    package var statedMilliseconds: UInt64 { latency / 1_000_000 }

    /// Which request of its key it is for, from 0.
    package var ordinal: UInt64 { name.ordinal }

    /// Whether request number `ordinal` of `key` is answered with the rule's failure. No allocation.
    package static func isFailure(_ rule: DemoRule, key: DrawKey, ordinal: UInt64) -> Bool {
        guard let failure = rule.failure else { return false }
        return DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal).unit(.outcome) < failure.chance
    }

    /// Draws the answer to request number `ordinal` (from 0) of `key` under `rule`.
    /// - Parameters:
    ///   - place: how many answers of a sequence came before; nil: as many as the ordinal says.
    ///   - override: what the request asks of its answer.
    package static func draw(
        _ rule: DemoRule,
        key: DrawKey,
        ordinal: UInt64,
        place: UInt64? = nil,
        override: DemoOverride? = nil
    ) -> DemoDraw {
        let numbers = DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal)
        let isFailure = override?.isFailure ?? isFailure(rule, key: key, ordinal: ordinal)
        let latency = rule.latency.drawn(numbers)
        let answer = rule.choice.answer(place: place ?? ordinal, unit: numbers.unit(.choice))
        let name = DrawName(key, ordinal: ordinal)
        var draw = make(rule, answer, latency: latency, isFailure: isFailure, name: name)
        draw.start = numbers.bits(.content)
        draw.misbehaviours = rule.misbehaviours.filter { $0.acts(numbers, ordinal: ordinal) }
        if let override { draw.apply(override) }
        return draw
    }

    /// Draws the answer to a request that is counted.
    package static func draw(_ counted: DemoState.Counted, override: DemoOverride? = nil) -> DemoDraw {
        let (turn, name) = (counted.turn, counted.name)
        return draw(turn.rule, key: name.key, ordinal: name.ordinal, place: turn.place, override: override)
    }

    /// No store keeps the answer, and no other request gets it.
    private mutating func apply(_ override: DemoOverride) {
        isOverridden = true
        if let latency = override.latency { self.latency = latency }
        if let status = override.status {
            self.status = status
            // It would have a status of its own.
            if case .collection = content { content = .none }
        }
        fields.set(.cacheControl, "no-store")
        // Fields for one kind of cache count more there than Cache-Control (RFC 9213).
        fields.removeAll { name, _ in String(decoding: name, as: UTF8.self).lowercased().hasSuffix("-cache-control") }
    }

    /// The draw that has come out so.
    /// - Parameters:
    ///   - answer: the one that was chosen; nil where the rule has one only.
    ///   - name: that of the draw.
    package static func make(
        _ rule: DemoRule,
        _ answer: DemoAnswer? = nil,
        latency: UInt64,
        isFailure: Bool,
        name: DrawName
    ) -> DemoDraw {
        let failed = isFailure ? rule.failure ?? DemoFailure(chance: 0) : nil
        let answer = failed?.answer ?? answer ?? rule.answer
        var fields = answer.fields
        if let type = answer.content.contentType, !fields.contains(.contentType) { fields.append(.contentType, type) }
        return DemoDraw(
            endpoint: rule.endpoint,
            rule: rule.label,
            latency: latency,
            isFailure: failed != nil,
            status: answer.status,
            content: answer.content,
            fields: fields,
            name: name
        )
    }

    /// Draws for a request key that is given by its bytes.
    package static func draw(_ rule: DemoRule, requestKey: [UInt8], ordinal: UInt64) -> DemoDraw {
        draw(rule, key: DrawKey(rule: rule.name, request: requestKey), ordinal: ordinal)
    }

    /// The value of `Drydock-Demo`, such as `endpoint=user; outcome=failure; status=503; latency=412ms;
    /// draw=9f3a01c2b4d5e6f7.12`;
    /// behind the endpoint stands `rule=admin` where a rule of a list answers, and before the draw stands
    /// `misbehave=no_304` where the answer is wrong, with several words as a quoted string.
    ///
    /// A name that is not a token (RFC 9110 section 5.6.2) is written as a quoted string.
    package var fieldValue: String {
        let outcome = isFailure ? "failure" : "success"
        let rule = rule.map { "rule=\(tokenOrQuoted($0)); " } ?? ""
        let words = misbehaved.map(\.rawValue).joined(separator: " ")
        let wrongs = words.isEmpty ? "" : "misbehave=\(tokenOrQuoted(words)); "
        return "endpoint=\(tokenOrQuoted(endpoint)); \(rule)outcome=\(outcome); status=\(status); "
            + "latency=\(statedMilliseconds)ms; \(wrongs)draw=\(name)" + (isOverridden ? "; override" : "")
    }
}

extension Fields {
    /// With its validators and the word that parts are given, unless they bring their own.
    /// - Parameter modifiedAt: seconds since 1970.
    package func ofRepresentation(_ entityTag: String, modifiedAt: Int64? = nil) -> Fields {
        var fields = self
        if !fields.contains(.etag) { fields.append(.etag, entityTag) }
        if let modifiedAt, !fields.contains(.lastModified) {
            fields.append(.lastModified, HTTPDate.format(modifiedAt))
        }
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

// MARK: - Misbehaviours

// Which of a rule's misbehaviours an answer has.
extension Misbehaviour {
    /// Whether an answer has it. Each kind has numbers of its own, so that another kind beside it moves nothing.
    func acts(_ numbers: DrawNumbers, ordinal: UInt64) -> Bool {
        if let every, (ordinal &+ 1) % UInt64(Swift.max(1, every)) != 0 { return false }
        return numbers.unit(.misbehaviour, Self.place(of: kind)) < chance
    }

    private static func place(of kind: Kind) -> UInt64 { UInt64(Kind.allCases.firstIndex(of: kind) ?? 0) }
}

extension DemoDraw {
    /// The misbehaviour of a kind, if the answer has it.
    package func misbehaviour(_ kind: Misbehaviour.Kind) -> Misbehaviour? { misbehaviours.first { $0.kind == kind } }

    /// The entity tag of an answer whose tag is wrong: no other request has it.
    package func wrongTag(for tag: String) -> String {
        let end = tag.hasSuffix("\"") ? "\"" : ""
        return "\(tag.dropLast(end.count)).\(String(start, radix: 16))\(end)"
    }
}
