// What the answer of an origin has that a recording of it has not: status, named fields and content.

import Content
package import HTTPWire
package import Policies

/// How an answer of now differs from a recording. Secrets are taken out of both before they are compared, and no value of
/// the content is in it.
package struct RecordingDrift: Sendable, Equatable {
    /// The value of a field then and now; nil where it is not there.
    package struct Field: Sendable, Equatable {
        package let name: String
        package let recorded: String?
        package let now: String?
    }

    /// The fields that are always compared. What origins say anew with each answer is not among them.
    package static let comparedFields = ["Content-Type", "Content-Language", "Location"]

    /// Of now; nil where it is that of the recording.
    package private(set) var status: Int?
    package private(set) var fields: [Field] = []
    /// What differs in the content, such as `user.roles[2] is missing`.
    package private(set) var content: [String] = []

    package var isEmpty: Bool { status == nil && fields.isEmpty && content.isEmpty }

    /// - Parameters:
    ///   - head: of the answer of now.
    ///   - content: of the answer of now; nil where it is longer than a recording may be.
    ///   - names: of fields that are compared, besides ``comparedFields``.
    package init(
        of recording: Recording,
        _ head: ResponseHead,
        _ content: [UInt8]?,
        _ rules: RecordingRules,
        fields names: [String] = []
    ) {
        if head.status != recording.status { status = head.status }
        let (old, new) = (Redaction.apply(to: recording.fields, rules), Redaction.apply(to: head.fields, rules))
        var seen: Set<String> = []
        for name in Self.comparedFields + names where seen.insert(name.lowercased()).inserted {
            let (recorded, now) = (old.combined(name).map(Self.shown), new.combined(name).map(Self.shown))
            if recorded != now { fields.append(Field(name: name, recorded: recorded, now: now)) }
        }
        guard let content else {
            self.content = ["it has more than \(rules.maximumSize) bytes, and had \(recording.content.count)"]
            return
        }
        self.content = Self.differences(recording, head, content, rules)
    }

    private static func differences(
        _ recording: Recording,
        _ head: ResponseHead,
        _ content: [UInt8],
        _ rules: RecordingRules
    ) -> [String] {
        if content == recording.content { return [] }
        let limits = TreeLimits(depth: 128, values: 1 << 20)
        // Whoever has a secret that is a member of what was no JSON then, or is none now, sees no value of it either.
        let (then, now) = (
            Redaction.apply(to: recording.content, recording.fields, rules),
            Redaction.apply(to: content, head.fields, rules)
        )
        if let then, let now, then == now { return [] }
        if let then, let old = try? JSONReader.read(then, limits: limits, repeats: true) {
            guard let now, let new = try? JSONReader.read(now, limits: limits, repeats: true) else {
                return ["it is no JSON any more"]
            }
            let found = TreeDifferences(from: old, to: new)
            return found.texts + (found.isCut ? ["there are more differences"] : [])
        }
        let first = zip(recording.content, content).enumerated().first { $1.0 != $1.1 }?.offset
        let place = first ?? min(recording.content.count, content.count)
        return ["it differs from byte \(place), and has \(content.count) bytes of \(recording.content.count)"]
    }

    /// A value without secrets in the query of a URL.
    private static func shown(_ value: String) -> String { ShownQuery.text(value, SecretQuery()) }
}
