// The name of a draw, from which it can be repeated, and a parser for the members of Drydock-Demo.

package import Policies

/// The request and key of a draw, such as `9f3a01c2b4d5e6f7.12`: the key's digest with sixteen hexadecimal digits, and
/// the number of the request among those with this key, from 1.
///
/// Together with a rule and its seed it gives the whole draw, without the request.
package struct DrawName: Sendable, Hashable, CustomStringConvertible {
    package let key: DrawKey
    /// The number of the draw among those of its key, from 0.
    package let ordinal: UInt64

    package init(_ key: DrawKey, ordinal: UInt64) {
        self.key = key
        self.ordinal = ordinal
    }

    /// Reads the name of a draw.
    /// - Returns: nil if the text is not one.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 16, parts[1].utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
            parts[0].utf8.first != UInt8(ascii: "+"), let digest = UInt64(parts[0], radix: 16),
            let number = UInt64(parts[1]), number > 0
        else { return nil }
        self.init(DrawKey(digest: digest), ordinal: number - 1)
    }

    /// The name of the first draw of a key whose digest is 0, which prepared answers have until they are sent.
    package static let blank = DrawName(DrawKey(digest: 0), ordinal: 0)

    package var description: String {
        let digits = String(key.digest, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits + ".\(ordinal &+ 1)"
    }
}

// MARK: - What Drydock-Demo said

/// One member of `Drydock-Demo`: the rule that drew, and the name of the draw.
package struct SaidDraw: Sendable, Equatable {
    package enum Rule: Sendable, Equatable {
        /// A draw of demo mode; the rule's name is nil for an endpoint's or a service's own answer.
        case demo(endpoint: String, rule: String?)
        /// A draw of the rule of `faults` with this name.
        case fault(String)
    }

    /// The text of the member.
    package let text: String
    package let rule: Rule
    package let name: DrawName
    /// Whether the request had chosen a part of the answer.
    package let isOverridden: Bool
    /// The misbehaviours that the answer showed.
    package let misbehaved: [Misbehaviour.Kind]

    /// Reads the members of a field value.
    /// - Parameter value: the value of the field, or some of its members.
    /// - Throws: the mistake and its remedy.
    package static func read(_ value: String) throws(SaidDrawError) -> [SaidDraw] {
        var draws: [SaidDraw] = []
        for member in split(value, at: ",") {
            let text = trimmed(member)
            if !text.isEmpty { draws.append(try SaidDraw(member: text)) }
        }
        if draws.isEmpty { throw SaidDrawError("there is no draw in it; write a value of Drydock-Demo") }
        return draws
    }

    private init(member: String) throws(SaidDrawError) {
        var parameters: [String: String] = [:]
        var isOverridden = false
        for part in Self.split(member, at: ";") {
            let part = Self.trimmed(part)
            guard let equals = part.firstIndex(of: "=") else {
                if part == "override" { isOverridden = true }
                continue
            }
            parameters[String(part[..<equals])] = Self.unquoted(part[part.index(after: equals)...])
        }
        guard let draw = parameters["draw"] else {
            throw SaidDrawError("'\(member)' has no draw=; write a whole member of Drydock-Demo")
        }
        guard let name = DrawName(draw) else {
            throw SaidDrawError("'\(draw)' is no draw; it has sixteen hexadecimal digits, a dot and a number from 1")
        }
        if let endpoint = parameters["endpoint"] {
            rule = .demo(endpoint: endpoint, rule: parameters["rule"])
        } else if let fault = parameters["fault"] {
            rule = .fault(fault)
        } else {
            throw SaidDrawError("'\(member)' has neither endpoint= nor fault=; write a whole member of Drydock-Demo")
        }
        text = member
        let wrongs = parameters["misbehave"] ?? ""
        misbehaved = wrongs.split(separator: " ").compactMap { Misbehaviour.Kind(rawValue: String($0)) }
        self.name = name
        self.isOverridden = isOverridden
    }

    /// Splits at separators that are outside of quoted strings.
    private static func split(_ text: String, at separator: Character) -> [Substring] {
        var parts: [Substring] = []
        var (start, isQuoted, isEscaped) = (text.startIndex, false, false)
        for index in text.indices {
            switch text[index] {
            case _ where isEscaped: isEscaped = false
            case "\\" where isQuoted: isEscaped = true
            case "\"": isQuoted.toggle()
            case separator where !isQuoted:
                parts.append(text[start..<index])
                start = text.index(after: index)
            default: break
            }
        }
        return parts + [text[start...]]
    }

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }

    private static func unquoted(_ text: Substring) -> String {
        guard text.count > 1, text.first == "\"", text.last == "\"" else { return String(text) }
        var (result, isEscaped) = ("", false)
        for character in text.dropFirst().dropLast() {
            if character == "\\", !isEscaped {
                isEscaped = true
                continue
            }
            isEscaped = false
            result.append(character)
        }
        return result
    }
}

/// The mistake in the text of a draw, and its remedy.
package struct SaidDrawError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
