// The rules of a mapped document: each names the value that it takes, and its conversion.

import Trees

/// The type of a mapped value; the raw value is the word of a configuration.
package enum MappedType: String, Sendable, CaseIterable {
    case string
    case number
    case bool
    /// A time in RFC 3339, in UTC.
    case date
    /// An absolute URL, which stays as it is.
    case url
    /// Base64 (RFC 4648 section 4), as a string.
    case data
}

/// The meaning of a missing value; null counts as one.
package enum MissingValue: String, Sendable, CaseIterable {
    case null
    /// The member, or the element, is left out.
    case omit
    /// The document cannot be mapped.
    case error
}

/// One value of a mapped document.
package struct MappingRule: Sendable, Equatable {
    /// The way in which the value is made from the one that is taken.
    package indirect enum Shape: Sendable, Equatable {
        /// The value is copied byte for byte.
        case same
        case converted(MappedType, ValueFormat)
        /// An array, each element of which the rule makes from one element.
        case each(MappingRule)
        /// An object, whose members are made from parts of the value.
        case object([Member])
    }

    package struct Member: Sendable, Equatable {
        package let name: String
        package let rule: MappingRule
        /// The name as a JSON string with its colon.
        let lead: [UInt8]

        package init(name: String, rule: MappingRule) {
            self.name = name
            self.rule = rule
            lead = JSONWriter.quoted(name) + [UInt8(ascii: ":")]
        }
    }

    /// The path from the value that the rule around it has taken.
    package let from: MappingPath
    package let shape: Shape
    package let missing: MissingValue
    /// A JSON text that replaces a missing value; nil for none.
    package let standIn: [UInt8]?
    /// The tree of `from`; nil for the value itself.
    let pathTree: PathTree?
    /// The tree of the members of an object; nil for other shapes.
    let memberTree: PathTree?

    package init(
        from: MappingPath = .itself,
        _ shape: Shape = .same,
        missing: MissingValue = .null,
        standIn: [UInt8]? = nil
    ) {
        self.from = from
        self.shape = shape
        self.missing = missing
        self.standIn = standIn
        pathTree = from.names.isEmpty ? nil : PathTree([from])
        if case .object(let members) = shape {
            memberTree = PathTree(members.map(\.rule.from))
        } else {
            memberTree = nil
        }
    }

    /// Whether a text is a number in the form of JSON.
    package static func isNumber(_ text: String) -> Bool { JSONTokenizer.isNumber(Array(text.utf8)[...]) }

    package static func == (left: MappingRule, right: MappingRule) -> Bool {
        left.from == right.from && left.shape == right.shape && left.missing == right.missing
            && left.standIn == right.standIn
    }
}

/// The mapping of a document: the rule of its root, and a digest that distinguishes it from all others.
package struct MappingPlan: Sendable, Equatable {
    /// The version of the results, which must change if the same rules give other results.
    private static let version = "1"

    package let root: MappingRule
    /// Sixteen digits that are the same in every process.
    package let digest: String

    package init(_ root: MappingRule) {
        self.root = root
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        // FNV-1a suffices, since a configuration is not an adversary.
        for byte in "\(Self.version)\(Self.text(root))".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let digits = String(hash, radix: 16)
        digest = String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static func text(_ rule: MappingRule) -> String {
        let shape =
            switch rule.shape {
            case .same: "same"
            case .converted(let type, let format): "\(type.rawValue) \(quoted(format.text))"
            case .each(let inner): "[\(text(inner))]"
            case .object(let members):
                "{" + members.map { quoted($0.name) + text($0.rule) }.joined(separator: ",") + "}"
            }
        let standIn = rule.standIn.map { quoted(String(decoding: $0, as: UTF8.self)) } ?? "-"
        return "(\(quoted(rule.from.text)) \(shape) \(rule.missing.rawValue) \(standIn))"
    }

    private static func quoted(_ text: String) -> String { "\(text.utf8.count):\(text)" }
}

/// The reason why a document cannot be mapped.
package struct MappingFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The path of the value in the mapped document, such as `users[3].born`; empty for the whole document.
    package var keyPath: String
    /// The reason, such as `"soon" is no date`.
    package let reason: String

    package init(keyPath: String = "", _ reason: String) {
        self.keyPath = keyPath
        self.reason = reason
    }

    /// The failure with its path within a member, or an element.
    func within(_ outer: String) -> MappingFailure {
        var failure = self
        failure.keyPath = keyPath.isEmpty ? outer : keyPath.hasPrefix("[") ? outer + keyPath : "\(outer).\(keyPath)"
        return failure
    }

    package var description: String { keyPath.isEmpty ? reason : "'\(keyPath)': \(reason)" }
}
