// The parts of its own demo answer that one request chooses, if the configuration allows it.

package import HTTPWire

/// The request field `Drydock-Override`, such as `status=503; latency=2s`.
package struct DemoOverride: Sendable, Equatable {
    /// The field's name.
    package static let fieldName = "Drydock-Override"

    /// The status of the answer, which takes precedence over all other statuses.
    package private(set) var status: Int?
    /// The latency in nanoseconds.
    package private(set) var latency: UInt64?
    package private(set) var isFailure: Bool?
    /// The name of the rule that answers, whatever its conditions are; it counts nothing and does not change a
    /// scenario.
    package private(set) var rule: String?
    /// The draw of the answer, in place of the request's own, which is not counted then.
    package private(set) var draw: DrawName?

    /// Reads the field of a request.
    /// - Parameters:
    ///   - fields: the fields of the request.
    ///   - limit: the longest latency that a request may choose, in nanoseconds.
    /// - Returns: nil if the request has no override.
    /// - Throws: the mistake in the field and its remedy.
    package init?(_ fields: Fields, limit: UInt64) throws(DemoOverrideError) {
        guard let text = fields.combined(Self.fieldName) else { return nil }
        for part in text.split(whereSeparator: { $0 == ";" || $0 == "," }) {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                String($0.trimmed)
            }
            guard pair.count == 2 else { throw Self.unknown(String(part.trimmed)) }
            try set(pair[0], to: pair[1], limit)
        }
    }

    private mutating func set(_ name: String, to value: String, _ limit: UInt64) throws(DemoOverrideError) {
        switch name.lowercased() {
        case "status":
            guard let number = Int(value), 200...599 ~= number else {
                throw DemoOverrideError("'\(value)' is no status of an answer; write a number from 200 to 599")
            }
            status = number
        case "latency":
            guard let nanoseconds = Self.nanoseconds(value) else {
                throw DemoOverrideError("'\(value)' is no latency; write a whole number with ms or s, such as 250ms")
            }
            guard nanoseconds <= limit else {
                throw DemoOverrideError(
                    "'\(value)' is more than the \(limit / 1_000_000)ms that 'demo.overrides' allows"
                )
            }
            latency = nanoseconds
        case "outcome":
            guard ["failure", "success"].contains(value) else {
                throw DemoOverrideError("'\(value)' is no outcome; write failure or success")
            }
            isFailure = value == "failure"
        case "rule": rule = value
        case "draw":
            guard let name = DrawName(value) else {
                throw DemoOverrideError("'\(value)' is no draw; write it as Drydock-Demo has it, behind draw=")
            }
            draw = name
        default: throw Self.unknown(name)
        }
    }

    private static func unknown(_ text: String) -> DemoOverrideError {
        DemoOverrideError(
            "'\(text)' is not known; there are status, latency, outcome, rule and draw, each as NAME=VALUE"
        )
    }

    /// The nanoseconds of a duration.
    /// - Returns: nil if the text is not a duration, or too long for 64 bits.
    private static func nanoseconds(_ text: String) -> UInt64? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = UInt64(digits) else { return nil }
        let unit: UInt64
        switch text.dropFirst(digits.count) {
        case "ms": unit = 1_000_000
        case "s": unit = 1_000_000_000
        default: return nil
        }
        let (result, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : result
    }
}

/// The mistake in an override, and its remedy.
package struct DemoOverrideError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var result = self
        while let first = result.first, first == " " || first == "\t" { result.removeFirst() }
        while let last = result.last, last == " " || last == "\t" { result.removeLast() }
        return result
    }
}
