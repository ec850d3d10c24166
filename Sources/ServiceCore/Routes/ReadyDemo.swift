// The bytes of a demo answer without latency, made with the plan and ready to be written.

package import CacheStore
package import DemoMode
import HTTPWire

/// The ready answers of one demo rule. Immutable, shared by all loops.
package final class ReadyDemo: Sendable {
    /// One outcome of the rule.
    package struct Outcome: Sendable {
        package let status: Int
        /// The head up to the name of the draw, which ends its last line.
        package let head: [UInt8]
        package let hasDate: Bool
        package let body: Chunk
    }

    private let rule: DemoRule
    private let digest: RuleDigest
    private let success: ByReach<Outcome>
    /// The outcome of a failure; that of a success if the rule never fails.
    private let failure: ByReach<Outcome>

    /// The most bytes of a body, because larger ones are not held twice.
    private static let bodyLimit = 256 << 10

    /// Makes the answers; nil if they wait, are long, or have no body.
    /// - Parameter addsVary: whether the right of web pages to read the answer depends on their origin.
    init?(_ rule: DemoRule, _ rewritings: ByReach<Rewriting>, addsVary: Bool) {
        guard rule.latency.isNone, rule.isPlain,
            let success = Self.outcomes(rule, isFailure: false, rewritings, addsVary: addsVary)
        else { return nil }
        self.rule = rule
        digest = RuleDigest(rule.name)
        self.success = success
        guard rule.failure != nil else {
            failure = success
            return
        }
        guard let failure = Self.outcomes(rule, isFailure: true, rewritings, addsVary: addsVary) else { return nil }
        self.failure = failure
    }

    /// Draws exactly as the waiting path does.
    /// - Parameter request: the bytes that identify requests: method, a space, the target without the prefix.
    /// - Returns: the answer, and the name of the draw.
    package func draw(
        _ request: UnsafeRawBufferPointer,
        _ ordinals: DrawOrdinals,
        to reach: Reach
    ) -> (answer: Outcome, name: DrawName) {
        let key = DrawKey(digest, request: request)
        let name = DrawName(key, ordinal: ordinals.next(key))
        let isFailure = DemoDraw.isFailure(rule, key: key, ordinal: name.ordinal)
        return (isFailure ? failure[reach] : success[reach], name)
    }

    /// An outcome with the bytes that the waiting path would send, except for the draw and the date; nil if it is long, or
    /// has no body.
    private static func outcomes(
        _ rule: DemoRule,
        isFailure: Bool,
        _ rewritings: ByReach<Rewriting>,
        addsVary: Bool
    ) -> ByReach<Outcome>? {
        let draw = DemoDraw.make(rule, latency: 0, isFailure: isFailure, name: .blank)
        guard draw.status >= 200, draw.status != 204, draw.status != 304, draw.bodyLength <= bodyLimit else {
            return nil
        }
        let body = Chunk(draw.body)
        return rewritings.map { outcome(draw, body, $0, addsVary: addsVary) }
    }

    private static func outcome(_ draw: DemoDraw, _ body: Chunk, _ rewriting: Rewriting, addsVary: Bool) -> Outcome {
        var fields = draw.representationFields
        rewriting.apply(to: &fields)
        if addsVary { CrossOrigin.apply(Fields([("Vary", "Origin")]), to: &fields) }
        for field in [KnownField.transferEncoding, .connection, .keepAlive] { fields.remove(field) }
        fields.set(.contentLength, String(draw.bodyLength))
        fields.remove("Drydock-Demo")
        fields.append("Drydock-Demo", draw.fieldValue)
        var head: [UInt8] = []
        Serializer.writeStatusLine(
            ResponseHead(status: draw.status, reason: ReasonPhrase.reason(draw.status)),
            into: &head
        )
        Serializer.write(fields, into: &head)
        // The name of the draw ends the last line, before CRLF.
        head.removeLast(DrawName.blank.description.utf8.count + 2)
        return Outcome(
            status: draw.status,
            head: head,
            hasDate: fields.contains(.date),
            body: body
        )
    }
}
