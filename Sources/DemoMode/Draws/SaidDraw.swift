// Reads back what Drydock-Demo said of an answer, so that its draws can be repeated.

package import Policies

/// One member of `Drydock-Demo`: the rule that has drawn, and the name of the draw.
package struct SaidDraw: Sendable, Equatable {
    package enum Rule: Sendable, Equatable {
        /// Of demo mode; the rule's name is nil for an endpoint's or a service's own answer.
        case demo(endpoint: String, rule: String?)
        /// Of `faults`.
        case fault(String)
    }

    /// The member as it stands there.
    package let text: String
    package let rule: Rule
    package let name: DrawName
    /// The request had asked for some of it.
    package let isOverridden: Bool
    /// What the answer got wrong.
    package let misbehaved: [Misbehaviour.Kind]

    /// - Parameter value: the value of the field, or some of its members.
    /// - Throws: what is wrong with it, and what to write instead.
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

    /// Splits where no quoted string is open.
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

/// What is wrong with the text of a draw, and what to write instead.
package struct SaidDrawError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
