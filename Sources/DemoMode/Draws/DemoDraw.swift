// One draw of a demo rule: the latency of the answer, whether and how it fails, and its misbehaviours.

package import HTTPWire
package import Policies

/// The drawn answer to one demo request: a pure function of the rule, the request key and the ordinal.
///
/// A draw does not depend on connections, loops, threads or restarts. The outcome is one uniform number compared with
/// the chance, so raising the chance turns answers into failures and never a failure into an answer; the latency has
/// its own number, so changing its range moves no outcome.
package struct DemoDraw: Sendable {
    /// The endpoint or the service of the rule.
    package let endpoint: String
    /// The rule's name among several; nil for the endpoint's own answer.
    package let rule: String?
    /// The nanoseconds to wait before the answer.
    package private(set) var latency: UInt64
    /// Whether the answer is a failure by the rule's `failure`.
    package private(set) var isFailure: Bool
    /// The status of the answer; that of a collection is known after it has answered.
    package var status: Int
    /// The source of the body's bytes.
    package private(set) var content: DemoContent
    /// The answer's fields; Content-Type is among them if there is a body.
    package private(set) var fields: Fields
    /// The name of this draw in fields and logs.
    package let name: DrawName
    /// The start of the random streams for made-up data and new ids.
    package private(set) var start: UInt64 = 0
    /// The misbehaviours that the answer may show.
    package private(set) var misbehaviours: [Misbehaviour] = []
    /// The misbehaviours that the answer has shown.
    package var misbehaved: [Misbehaviour.Kind] = []

    /// Whether the request has chosen a part of the answer by its override.
    package private(set) var isOverridden = false

    /// The name of the rule in the draw's key.
    package var ruleName: String { DemoRule.name(endpoint, rule) }

    /// The body's bytes.
    package var body: [UInt8] { content.file?.bytes ?? [] }

    /// The body's length in bytes.
    package var bodyLength: Int { content.file?.count ?? 0 }

    /// The rule's fields in the answer to GET or HEAD: a 200 with a body has an entity tag, unless the rule gives one,
    /// and supports ranges.
    package var representationFields: Fields {
        guard status == 200, let file = content.file else { return fields }
        return fields.ofRepresentation(file.entityTag, modifiedAt: file.modifiedAt)
    }

    /// The latency in the answer's field: whole milliseconds, rounded down, so that no answer takes less than it
    /// states.
    package var statedMilliseconds: UInt64 { latency / 1_000_000 }

    /// The number of the request among those with its key, from 0.
    package var ordinal: UInt64 { name.ordinal }

    /// Whether request number `ordinal` of `key` is answered with the rule's failure. Allocates nothing.
    package static func isFailure(_ rule: DemoRule, key: DrawKey, ordinal: UInt64) -> Bool {
        guard let failure = rule.failure else { return false }
        return DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal).unit(.outcome) < failure.chance
    }

    /// Draws the answer to request number `ordinal` (from 0) of `key` under `rule`.
    /// - Parameters:
    ///   - position: the number of answers of a sequence that came before; nil to take the ordinal.
    ///   - override: the parts of the answer that the request chooses.
    package static func draw(
        _ rule: DemoRule,
        key: DrawKey,
        ordinal: UInt64,
        position: UInt64? = nil,
        override: DemoOverride? = nil
    ) -> DemoDraw {
        let numbers = DrawNumbers(seed: rule.seed, key: key, ordinal: ordinal)
        let isFailure = override?.isFailure ?? isFailure(rule, key: key, ordinal: ordinal)
        let latency = rule.latency.drawn(numbers)
        let answer = rule.choice.answer(position: position ?? ordinal, unit: numbers.unit(.choice))
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
        return draw(turn.rule, key: name.key, ordinal: name.ordinal, position: turn.position, override: override)
    }

    /// Applies the request's choices, and marks the answer so that it is not stored and no other request gets it.
    private mutating func apply(_ override: DemoOverride) {
        isOverridden = true
        if let latency = override.latency { self.latency = latency }
        if let status = override.status {
            self.status = status
            // A collection would decide the status itself.
            if case .collection = content { content = .none }
        }
        fields.set(.cacheControl, "no-store")
        // For one kind of cache these fields take precedence over Cache-Control (RFC 9213).
        fields.removeAll { name, _ in String(decoding: name, as: UTF8.self).lowercased().hasSuffix("-cache-control") }
    }

    /// The draw with this outcome.
    /// - Parameters:
    ///   - answer: the chosen answer; nil if the rule has only one.
    ///   - name: the name of the draw.
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
    /// draw=9f3a01c2b4d5e6f7.12`. After the endpoint it has `rule=admin` if a rule of a list answers, and before the
    /// draw `misbehave=no_304` if the answer misbehaves, with several words as a quoted string.
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
    /// The fields with validators and Accept-Ranges, unless they have their own.
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

/// A parameter value of RFC 9110 section 5.6.6; control characters cannot be in it and become `_`.
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

// The misbehaviours of a rule that an answer shows.
extension Misbehaviour {
    /// Whether an answer shows the misbehaviour. Each kind has its own numbers, so that adding another kind moves
    /// nothing.
    func acts(_ numbers: DrawNumbers, ordinal: UInt64) -> Bool {
        if let every, (ordinal &+ 1) % UInt64(Swift.max(1, every)) != 0 { return false }
        return numbers.unit(.misbehaviour, Self.position(of: kind)) < chance
    }

    private static func position(of kind: Kind) -> UInt64 { UInt64(Kind.allCases.firstIndex(of: kind) ?? 0) }
}

extension DemoDraw {
    /// The misbehaviour of a kind, if the answer has it.
    package func misbehaviour(_ kind: Misbehaviour.Kind) -> Misbehaviour? { misbehaviours.first { $0.kind == kind } }

    /// The entity tag of an answer whose tag is wrong: no other request gets it.
    package func wrongTag(for tag: String) -> String {
        let end = tag.hasSuffix("\"") ? "\"" : ""
        return "\(tag.dropLast(end.count)).\(String(start, radix: 16))\(end)"
    }
}
