// The placeholder of a route while a response is fetched, its fallback when the fetch fails, and the content that it
// expects.

package import CacheStore
package import Content
package import HTTPCaching
import HTTPWire

/// A file that answers in place of a missing response.
package final class SubstituteResponse: Sendable, Equatable {
    /// The path of the file, for messages.
    package let path: String
    package let status: Int
    let body: Body
    private let fields: Fields
    private let bytes: [UInt8]

    /// Makes a substitute.
    /// - Parameters:
    ///   - bytes: the file's content, held in memory.
    ///   - contentType: the value of Content-Type.
    package init(path: String, status: Int, bytes: [UInt8], contentType: String) {
        self.path = path
        self.status = status
        self.bytes = bytes
        body = .complete(bytes)
        // Other caches on the way to the client must not store the substitute either (RFC 9111 section 5.2.2.5).
        fields = Fields([("Content-Type", contentType), ("Cache-Control", "no-store")])
    }

    var head: ResponseHead { ResponseHead(status: status, fields: fields) }

    package static func == (left: SubstituteResponse, right: SubstituteResponse) -> Bool {
        left === right || left.status == right.status && left.bytes == right.bytes && left.fields == right.fields
    }
}

/// The substitutes of a route, and the content that it expects. A route without a plan has neither.
package struct PhasePlan: Sendable, Equatable {
    /// The answer if nothing is stored and the origin takes longer than ``placeholderDelay``; nil for none.
    package var placeholder: SubstituteResponse?
    /// The nanoseconds until the placeholder answers.
    package var placeholderDelay: UInt64
    /// The answer if the fetch fails and no stored response may serve; nil for none.
    package var fallback: SubstituteResponse?
    /// The content that the route expects: a response with other content is forwarded and not stored.
    package var expect: ContentExpectation
    /// The media types that the route expects: a response with another one is a failure; nil: any.
    package var types: ExpectedTypes?

    /// Makes a plan.
    /// - Parameter placeholderDelay: nanoseconds; 300 ms by default.
    package init(
        placeholder: SubstituteResponse? = nil,
        placeholderDelay: UInt64 = 300_000_000,
        fallback: SubstituteResponse? = nil,
        expect: ContentExpectation = .anything,
        types: ExpectedTypes? = nil
    ) {
        self.placeholder = placeholder
        self.placeholderDelay = placeholderDelay
        self.fallback = fallback
        self.expect = expect
        self.types = types
    }

    /// Whether the plan changes nothing.
    package var isEmpty: Bool { placeholder == nil && fallback == nil && expectation == nil }

    /// The name of the expectation that responses are stored under (`CachePolicy.expectation`); nil if nothing is
    /// expected.
    package var expectation: String? {
        expect == .anything && types == nil ? nil : "\(expect.rawValue) \(types?.description ?? "*/*")"
    }

    /// The expectation for seeds, which have not come through a fetch; nil if nothing is expected.
    package static func seedExpectation(_ plan: PhasePlan?, _ policy: CachePolicy) -> SeedExpectation? {
        let expectation = plan?.expectation
        if expectation == nil, policy.success == nil { return nil }
        let (expect, types) = (plan?.expect ?? .anything, plan?.types)
        let name = "\(expectation ?? "") of \(policy.success?.text ?? "any success")"
        return SeedExpectation(name: name) { head, next in
            if policy.success != nil, !policy.isSuccess(head.status) { return "has the status \(head.status)" }
            if 200..<300 ~= head.status, let found = types?.mismatch(head.fields) {
                return "has \(found)"
            }
            guard expect != .anything, head.status == 200 || head.status == 203 else { return nil }
            let inspection = ContentInspection(expect, head.fields)
            while inspection.mismatch == nil, expect.needsAll || !inspection.isBeginningKnown {
                let bytes = try next()
                if bytes.isEmpty { break }
                bytes.withUnsafeBytes { _ = inspection.push($0) }
            }
            return inspection.finish()
        }
    }
}
