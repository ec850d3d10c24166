// What arrived against what a script says must arrive.

import Foundation
import TestSupport

extension ScriptScope {
    /// Where the scenario's own paths begin.
    var url: String { "http://\(authority)\(path)" }
}

extension FieldTest {
    /// What is wrong with the joined value of a field, nil where it is right.
    func mismatch(_ name: String, _ value: String?, _ scope: ScriptScope) throws(ScriptTextError) -> String? {
        let got = value.map { "“\($0)”" } ?? "no such field"
        switch self {
        case .equals(let text):
            let expected = try scope.expand(text)
            return value == expected ? nil : "\(name)\n  expected “\(expected)”\n  got \(got)"
        case .contains(let text):
            let expected = try scope.expand(text)
            if let value, expected.isEmpty || value.contains(expected) { return nil }
            return "\(name)\n  expected something with “\(expected)”\n  got \(got)"
        case .lacks(let text):
            let unexpected = try scope.expand(text)
            return value?.contains(unexpected) == true
                ? "\(name)\n  expected nothing with “\(unexpected)”\n  got \(got)" : nil
        case .absent: return value == nil ? nil : "\(name)\n  expected no such field\n  got \(got)"
        }
    }
}

/// A body as a message shows it: its beginning, what is not printable as `\xHH`.
func excerpt(_ bytes: [UInt8]) -> String {
    let text = bytes.prefix(60).map { byte in
        (32..<127).contains(byte)
            ? String(UnicodeScalar(byte)) : "\\x" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return "“\(text.joined())”\(bytes.count > 60 ? "…" : "") (\(bytes.count) bytes)"
}

/// Compares one response with the lines below a request.
struct ResponseComparison {
    struct Mismatch {
        /// nil for what a script need not say.
        var position: ScriptPosition?
        var message: String
    }

    private(set) var mismatches: [Mismatch] = []
    private let response: RawResponse

    init(_ response: RawResponse, _ expectations: [Expectation], scope: ScriptScope) throws(ScriptTextError) {
        self.response = response
        var interims = 0
        for expectation in expectations {
            if case .interim(let status) = expectation.what {
                interims += 1
                let got = response.interim.count >= interims ? response.interim[interims - 1].status : nil
                if got != status { add(expectation.position, "interim", "\(status)", got.map { "\($0)" } ?? "none") }
                continue
            }
            try check(expectation, interim: interims, scope)
        }
        checkWhatNeedNotBeSaid(expectations, interims: interims)
    }

    /// The whole head, for messages.
    var summary: String {
        let fields = response.head.fields.map { "    \($0.name): \($0.value)" }.joined(separator: "\n")
        return "  in \(response.status) \(response.head.reason)\n\(fields)\n    \(excerpt(response.body))"
    }

    private mutating func add(_ position: ScriptPosition?, _ what: String, _ expected: String, _ got: String) {
        mismatches.append(Mismatch(position: position, message: "\(what)\n  expected \(expected)\n  got \(got)"))
    }

    private mutating func check(
        _ expectation: Expectation,
        interim: Int,
        _ scope: ScriptScope
    ) throws(ScriptTextError) {
        let position = expectation.position
        switch expectation.what {
        case .status(let status):
            if response.status != status { add(position, "status", "\(status)", "\(response.status)") }
        case .reason(let reason):
            if response.head.reason != reason { add(position, "reason", reason, response.head.reason) }
        case .field(let name, let test): try check(position, name, test, response.head.fields, scope)
        case .body(let bytes):
            if response.body != bytes { add(position, "body", excerpt(bytes), excerpt(response.body)) }
        case .bodyPart(let bytes):
            if response.body.firstRange(of: bytes) == nil {
                add(position, "body", "something with \(excerpt(bytes))", excerpt(response.body))
            }
        case .pattern(let range):
            let isPattern = response.body.withUnsafeBytes { Pattern.matches($0, at: range.lowerBound) }
            if response.body.count != range.count || !isPattern {
                let got = "\(response.body.count) bytes, \(isPattern ? "of" : "not of") the pattern"
                add(position, "body", "the pattern from \(range.lowerBound), \(range.count) bytes", got)
            }
        case .interim: break
        case .interimField(let name, let test):
            guard interim > 0, response.interim.count >= interim else {
                add(position, "interim", "a response with \(name)", "\(response.interim.count) interim responses")
                return
            }
            try check(position, name, test, response.interim[interim - 1].fields, scope)
        case .cut:
            if response.end != .cut { add(position, "end", "a body that is cut", "a complete one") }
        case .trailer(let name, let test): try check(position, name, test, response.trailers, scope)
        }
    }

    private mutating func check(
        _ position: ScriptPosition,
        _ name: String,
        _ test: FieldTest,
        _ fields: [(name: String, value: String)],
        _ scope: ScriptScope
    ) throws(ScriptTextError) {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        let joined = values.isEmpty ? nil : values.joined(separator: ", ")
        if let message = try test.mismatch(name, joined, scope) {
            mismatches.append(Mismatch(position: position, message: message))
        }
    }

    /// Unless a script says otherwise: 200, no interim response, a body that is complete.
    private mutating func checkWhatNeedNotBeSaid(_ expectations: [Expectation], interims: Int) {
        let saysStatus = expectations.contains { if case .status = $0.what { true } else { false } }
        if !saysStatus, response.status != 200 { add(nil, "status", "200, as nothing is said", "\(response.status)") }
        if response.interim.count > interims {
            add(nil, "interim", "\(interims)", "\(response.interim.map(\.status))")
        }
        let isCut = expectations.contains { $0.what == .cut }
        if !isCut, response.end != .complete { add(nil, "end", "a complete body", "one that is cut") }
    }
}
