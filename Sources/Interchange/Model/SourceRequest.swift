// A request of a source in the form in which a rule can ask for it: the parts of its URL, its content, and tests of
// single texts.

import Content
import HTTPWire
import Matching

/// An `http` or `https` URL.
struct SourceURL: Equatable {
    /// The scheme, host and port, without user information.
    let origin: String
    /// The host in lower case, without the port.
    let host: String
    let port: String?
    /// The path as the source has it; `/` if there is none.
    let path: String
    /// The items of the query, decoded, in their order.
    let query: [(name: String, value: String)]

    static func == (left: SourceURL, right: SourceURL) -> Bool {
        left.origin == right.origin && left.path == right.path
            && left.query.elementsEqual(right.query) { $0 == $1 }
    }

    /// Reads a URL; nil if it is not http or https, or if no service could have its host.
    init?(_ text: String) {
        guard let mark = text.firstRange(of: "://") else { return nil }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = text[mark.upperBound...].prefix { $0 != "#" }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        var port: String?
        if let colon = authority.lastIndex(of: ":") {
            guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else { return nil }
            port = number == (scheme == "http" ? 80 : 443) ? nil : String(number)
            authority = authority[..<colon]
        }
        host = authority.lowercased()
        guard Self.isHost(host) else { return nil }
        self.port = port
        origin = "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "")
        (path, query) = Self.target(rest[end...])
    }

    /// The path and the query items of a target.
    static func target(_ target: Substring) -> (path: String, query: [(name: String, value: String)]) {
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        let path = target[..<mark].isEmpty ? "/" : encoded(String(target[..<mark]))
        return (path, items(target[mark...].dropFirst()))
    }

    /// The items of a query or a form, decoded.
    static func items(_ text: Substring) -> [(name: String, value: String)] {
        text.utf8.split(separator: UInt8(ascii: "&")).map { item in
            let end = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            func decode(_ part: Substring.UTF8View) -> String {
                String(decoding: PercentEncoding.decode(form: part), as: UTF8.self)
            }
            return (decode(item[..<end]), decode(item[end...].dropFirst()))
        }
    }

    /// The path with those characters encoded that a client has to encode.
    static func encoded(_ path: String) -> String {
        if path.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) { return path }
        var result = ""
        for byte in path.utf8 {
            result += byte > 32 && byte < 127 ? String(Unicode.Scalar(byte)) : PercentEncoding.encode([byte])
        }
        return result
    }

    private static func isHost(_ host: String) -> Bool {
        let labels = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        func isAlphanumeric(_ byte: UInt8) -> Bool {
            byte >= 48 && byte <= 57 || byte >= 97 && byte <= 122
        }
        let isName = labels.allSatisfy { label in
            !label.isEmpty && label.count <= 63 && label.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 95 }
                && label.first != 45 && label.last != 45
        }
        guard host.utf8.count <= 253, isName, let last = labels.last else { return false }
        let isNumber = last.allSatisfy { $0 >= 48 && $0 <= 57 }
        return !isNumber
            || labels.count == 4
                && labels.allSatisfy { UInt8(Substring($0)) != nil && ($0.count == 1 || $0.first != 48) }
    }
}

// MARK: - Content

/// The content of a request.
enum SentBody: Equatable {
    case none
    /// The content can be asked for by these members of `when.body`.
    case known([ContentTree.Member])
    /// The content cannot be distinguished from others.
    case other

    /// The longest content, in bytes, that is written into a configuration.
    static let longest = 16384

    /// Reads the content from a text, which may be JSON.
    init(text: String, keepsSecrets: Bool) {
        if text.isEmpty {
            self = .none
        } else if text.utf8.count > Self.longest || text.contains("{{") {
            self = .other
        } else if let tree = try? JSONReader.read(Array(text.utf8)) {
            self = keepsSecrets || !tree.hasSecretNames ? .known([.init("is", tree)]) : .other
        } else {
            self = .known([.init("text", .string(text))])
        }
    }

    /// Reads the decoded items of a form; of several with one name the first one is asked for.
    init(form items: [(name: String, value: String)], keepsSecrets: Bool) {
        var members: [ContentTree.Member] = []
        for item in items where !item.name.isEmpty && members.place(of: item.name) == nil {
            guard keepsSecrets || !Secrets.isIn(item.value, of: item.name), !item.value.contains("{{") else {
                self = .other
                return
            }
            members.append(.init(item.name, .string(item.value)))
        }
        self = members.isEmpty ? .none : .known([.init("form", .object(members))])
    }

    /// The members of `when.body`; empty if the content is not asked for.
    var condition: [ContentTree.Member] {
        if case .known(let members) = self { members } else { [] }
    }

    /// Whether rules cannot distinguish the two contents.
    func isSame(_ other: SentBody) -> Bool { condition == other.condition }
}

// MARK: - Tests of a text

/// A test of a text.
indirect enum ValueTest: Equatable {
    case equals(String)
    case contains(String)
    /// A regular expression that matches a part of the text.
    case matches(String)
    case oneOf([String])
    case present(Bool)
    case not(ValueTest)

    /// A test for a regular expression that matches the whole text.
    static func matchesWhole(_ pattern: String) -> ValueTest { .matches(#"\A(?:"# + pattern + #")\z"#) }

    /// The test of an exact path, also of one that looks like a pattern.
    static func path(_ path: String) -> ContentTree {
        PathShape.looksLikePattern(path) ? [.matches(#"\A"# + quoted(path) + #"\z"#)].tree : .string(path)
    }

    /// The expression that ``matchesWhole(_:)`` was made from.
    static func inner(ofWhole pattern: String) -> String {
        guard pattern.hasPrefix(#"\A(?:"#), pattern.hasSuffix(#")\z"#) else { return pattern }
        return String(pattern.dropFirst(5).dropLast(3))
    }

    var key: String {
        switch self {
        case .equals: "is"
        case .contains: "contains"
        case .matches: "matches"
        case .oneOf: "one_of"
        case .present: "present"
        case .not: "not"
        }
    }

    var value: ContentTree {
        switch self {
        case .equals(let text), .contains(let text), .matches(let text): .string(text)
        case .oneOf(let texts): .texts(texts)
        case .present(let wanted): .bool(wanted)
        case .not(.equals(let text)): .string(text)
        case .not(let test): .object([.init(test.key, test.value)])
        }
    }

    /// A lookahead from the beginning of the text that has the same meaning as the test; nil for a test that is not
    /// about the text itself.
    fileprivate var lookahead: String? {
        switch self {
        case .equals(let text): #"(?=\A"# + Self.quoted(text) + #"\z)"#
        case .contains(let text): #"(?=[\s\S]*"# + Self.quoted(text) + ")"
        case .matches(let pattern): #"(?=[\s\S]*?(?:"# + pattern + "))"
        case .oneOf(let texts): #"(?=\A(?:"# + texts.map(Self.quoted).joined(separator: "|") + #")\z)"#
        case .present: nil
        case .not(let test): test.lookahead.map { "(?!" + $0 + ")" }
        }
    }

    /// A regular expression that matches exactly this text.
    static func quoted(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if #"\^$.|?*+()[]{}#- "#.unicodeScalars.contains(scalar) { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

extension [ValueTest] {
    /// The tests in the form of a configuration: a plain text if the value must be equal to it.
    var tree: ContentTree {
        if count == 1, case .equals(let text) = self[0] { return .string(text) }
        var members: [ContentTree.Member] = []
        var further: [String] = []
        for test in self {
            if members.place(of: test.key) != nil {
                if let pattern = test.lookahead { further.append(pattern) }
            } else {
                members.append(.init(test.key, test.value))
            }
        }
        guard !further.isEmpty else { return .object(members) }
        if let place = members.place(of: "matches"), let pattern = members[place].value.text {
            further.insert(ValueTest.matches(pattern).lookahead ?? "", at: 0)
            members.remove(at: place)
        }
        return .object(members + [.init("matches", .string(#"\A"# + further.joined()))])
    }
}
