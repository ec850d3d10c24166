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
    ///   - secrets: the query items that the service adds.
    ///   - names: of fields that are compared, besides ``comparedFields``.
    package init(
        of recording: Recording,
        _ head: ResponseHead,
        _ content: [UInt8]?,
        _ rules: RecordingRules,
        _ secrets: SecretQuery,
        fields names: [String] = []
    ) {
        if head.status != recording.status { status = head.status }
        let then = try? Redaction.apply(to: recording.content, of: recording.fields, rules, secrets)
        let now = content.flatMap { try? Redaction.apply(to: $0, of: head.fields, rules, secrets) }
        let old = then?.fields ?? Redaction.apply(to: recording.fields, rules, secrets)
        let new = now?.fields ?? Redaction.apply(to: head.fields, rules, secrets)
        var seen: Set<String> = []
        for name in Self.comparedFields + names where seen.insert(name.lowercased()).inserted {
            let (recorded, now) = (old.combined(name), new.combined(name))
            if recorded != now { fields.append(Field(name: name, recorded: recorded, now: now)) }
        }
        guard let content else {
            self.content = ["it has more than \(rules.maximumSize) bytes, and had \(recording.content.count)"]
            return
        }
        if content != recording.content {
            // Whoever has a secret that is a member of what was no JSON then, or is none now, sees no value of it either.
            self.content = Self.differences(then?.content, now?.content, recording.content, content)
        }
    }

    /// - Parameters:
    ///   - then: what was recorded, without secrets; nil where those cannot be found in it.
    ///   - now: the same of the answer of now.
    private static func differences(
        _ then: [UInt8]?,
        _ now: [UInt8]?,
        _ recorded: [UInt8],
        _ content: [UInt8]
    ) -> [String] {
        let limits = TreeLimits(depth: 128, values: 1 << 20)
        if let then, let now, then == now { return [] }
        if let then, let old = try? JSONReader.read(then, limits: limits, repeats: true) {
            guard let now, let new = try? JSONReader.read(now, limits: limits, repeats: true) else {
                return ["it is no JSON any more"]
            }
            let found = TreeDifferences(from: old, to: new)
            return found.texts + (found.isCut ? ["there are more differences"] : [])
        }
        let (old, new) = (then ?? recorded, now ?? content)
        let first = zip(old, new).enumerated().first { $1.0 != $1.1 }?.offset
        let place = first ?? min(old.count, new.count)
        return ["it differs from byte \(place), and has \(new.count) bytes of \(old.count)"]
    }
}
