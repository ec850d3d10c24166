// The rules for texts: names, tokens, field values, hosts, prefixes, origins and others.

import Content
import EventLoop
import HTTPCaching
import Matching
import Policies

/// A rule for a text.
package enum TextRule: Sendable {
    case any
    /// A name: letters, digits, `.`, `_` and `-`.
    case word
    /// A token of RFC 9110 section 5.6.2.
    case token
    case fieldValue
    case userName
    case bearerToken
    case prefix
    case hostName
    /// A host name of this daemon: HOST or *.DOMAIN.
    case servedHost
    /// A pattern of targets: HOST or HOST:PORT.
    case targetPattern
    /// A pattern of targets of CONNECT: HOST:PORT.
    case connectPattern
    case webOrigin
    /// A relative path of plain segments.
    case storedPath
    /// The treatment of a fetch without clients: `finish`, `abort` or `finish-if N%`.
    case clientAbort
    /// A cause of retries: `connect`, `timeout`, `content` or a status from 400 to 599.
    case retryCause
    /// A name of query items in which `*` stands for any run of characters.
    case queryPattern
    /// The URL of an item of a batch: a path, or an absolute URL.
    case batchURL
    /// The path of a member: names with dots between them.
    case memberPath
    /// The form of a date: `seconds`, `milliseconds`, `iso8601` or a pattern.
    case dateForm
    case mediaType
    /// A media type, or `TYPE/*`, without parameters.
    case mediaRange
    /// A status from 200 to 599, a class such as `2xx`, or a range such as `200..206`.
    case statuses
    /// The name of a part of a multipart content.
    case partName
    /// A path with its slash, and perhaps a query.
    case requestPath
    /// The source of a value of a group: `status`, `header.NAME` or `body.KEY`.
    case takenPath
    /// A regular expression of PCRE2.
    case pattern
    /// The digest of a public key: `sha256//` and the Base64 of 32 bytes.
    case publicKeyPin
    /// The label of a learned latency: `SERVICE` or `SERVICE/ENDPOINT`.
    case learnedLabel
    /// A factor: `x` and a number, such as `x1.5`.
    case factor

    /// Checks a text, and returns it in its normal spelling.
    func check(_ text: String) throws(ScalarProblem) -> String {
        switch self {
        case .any: return text
        case .pattern:
            do throws(Pattern.Malformed) {
                return try Pattern(text).text
            } catch {
                let behind =
                    text.utf8.isEmpty
                    ? "" : " after '\(String(decoding: text.utf8.prefix(error.offset), as: UTF8.self))'"
                throw ScalarProblem("is no regular expression: \(error.reason)\(behind); correct it")
            }
        case .word:
            guard !text.isEmpty, text.utf8.allSatisfy({ Self.isAlphanumeric($0) || [45, 46, 95].contains($0) }) else {
                throw ScalarProblem("'\(text)' is not a name; use letters, digits, '.', '_' and '-'")
            }
            return text
        case .learnedLabel:
            let names = text.split(separator: "/", omittingEmptySubsequences: false)
            guard names.count <= 2 else {
                throw ScalarProblem("'\(text)' is no service and no endpoint; write SERVICE or SERVICE/ENDPOINT")
            }
            for name in names { _ = try TextRule.word.check(String(name)) }
            return text
        case .factor:
            guard Units.factor(text) != nil else {
                throw ScalarProblem("'\(text)' is no factor from x0.001 to x1000; write it like x1.5")
            }
            return text
        case .token:
            guard Self.isToken(text) else {
                throw ScalarProblem("'\(text)' is not a token; use letters, digits and !#$%&'*+-.^_`|~, without spaces")
            }
            return text
        case .fieldValue:
            guard text.unicodeScalars.allSatisfy({ $0 == "\t" || ($0.value >= 32 && $0.value != 127) }),
                text == text.trimmedSpaces
            else {
                throw ScalarProblem(
                    "a field value must not contain line breaks or control characters, or begin or end with a space; remove them"
                )
            }
            return text
        case .userName:
            guard !text.contains(":") else {
                throw ScalarProblem("a user name must not contain a colon (RFC 7617); remove it")
            }
            return try TextRule.fieldValue.check(text)
        case .bearerToken:
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
                throw ScalarProblem(
                    "a bearer token must not be empty or contain spaces or control characters; check the variable or the file it comes from"
                )
            }
            return text
        case .prefix: return try Self.prefix(text)
        case .hostName:
            guard let host = Self.host(text) else {
                throw ScalarProblem(
                    "'\(text)' is not a host; write a name such as api.localhost, without scheme, port or path"
                )
            }
            return host
        case .servedHost:
            guard text != "*" else {
                throw ScalarProblem(
                    "'*' would let every web page reach the services by a name of its own (DNS rebinding); name the hosts, such as drydock or \"*.lan\""
                )
            }
            guard let pattern = try? Self.hostPattern(text) else {
                throw ScalarProblem(
                    "'\(text)' is not a host; write a name such as drydock, *.DOMAIN or an address, without scheme, port or path"
                )
            }
            return pattern
        case .targetPattern:
            // An IPv6 address without brackets has colons, but no port.
            guard AddressBytes.parse(text) == nil, let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") else {
                return try Self.hostPattern(text)
            }
            return try Self.hostPattern(String(text[..<colon])) + Self.port(text[colon...])
        case .connectPattern:
            guard let colon = text.lastIndex(of: ":") else {
                throw ScalarProblem("'\(text)' has no port; write HOST:PORT, such as *:443")
            }
            return try Self.hostPattern(String(text[..<colon])) + Self.port(text[colon...])
        case .queryPattern:
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && !"&=#?".utf8.contains($0) }) else {
                throw ScalarProblem(
                    "'\(text)' is not the name of a query item; write it as it is sent, percent-encoded; * matches any characters, as in utm_*"
                )
            }
            return text
        case .webOrigin:
            if text == "*" { return text }
            guard let url = try? Addresses.origin(text), url.path.isEmpty, !text.hasSuffix("/") else {
                throw ScalarProblem(
                    "'\(text)' is not a web origin; write scheme://host[:port], such as http://localhost:3000, without a slash at the end"
                )
            }
            return url.description
        case .clientAbort:
            guard AbandonmentPolicy(words: text) != nil else {
                throw ScalarProblem("does not know '\(text)'; it takes finish, abort or finish-if 50%")
            }
            return text
        case .retryCause:
            guard RetryCause(text) != nil else {
                throw ScalarProblem(
                    "does not know '\(text)'; it takes connect, timeout, content and statuses from 400 to 599"
                )
            }
            return text
        case .memberPath:
            guard text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty }) else {
                throw ScalarProblem("'\(text)' is not a member; write its name, or a path such as user.born")
            }
            return text
        case .dateForm:
            guard DateForm(text) != nil else {
                throw ScalarProblem(
                    "does not know '\(text)'; it takes seconds, milliseconds, iso8601, or a pattern of %Y, %m, %d, %H, %M, %S and %%"
                )
            }
            return text
        case .mediaType:
            let halves = text.prefix { $0 != ";" }.split(separator: "/", omittingEmptySubsequences: false)
            guard halves.count == 2, halves.allSatisfy({ Self.isToken(String($0)) }) else {
                throw ScalarProblem("'\(text)' is not a media type; write one such as image/png")
            }
            return try TextRule.fieldValue.check(text)
        case .mediaRange:
            guard ExpectedTypes.isPattern(text) else {
                throw ScalarProblem(
                    "'\(text)' is not a media type; write one such as application/json or text/*, without parameters"
                )
            }
            return text.lowercased()
        case .statuses:
            guard StatusSet.range(text) != nil else {
                throw ScalarProblem(
                    "does not know '\(text)'; it takes statuses from 200 to 599, classes such as 2xx, and ranges such as 200..206"
                )
            }
            return text
        case .partName:
            guard !text.isEmpty else { throw ScalarProblem("takes a name, which cannot be empty; write one") }
            return try TextRule.fieldValue.check(text)
        case .batchURL:
            let isURL = ["/", "http://", "https://"].contains { text.lowercased().hasPrefix($0) }
            guard isURL, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
                throw ScalarProblem("'\(text)' is not a URL; write a path such as /github/users, or http://HOST/PATH")
            }
            return text
        case .requestPath:
            guard text.hasPrefix("/"), text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 35 }) else {
                throw ScalarProblem(
                    "'\(text)' is not a path; begin it with a slash, and percent-encode what is not ASCII"
                )
            }
            return text
        case .takenPath:
            guard TakenPath(words: text) != nil else {
                throw ScalarProblem("does not know '\(text)'; write body.KEY, header.NAME or status")
            }
            return text
        case .publicKeyPin:
            guard text.hasPrefix("sha256//"), Self.isBase64(text.dropFirst(8).utf8, of: 32) else {
                throw ScalarProblem(
                    "'\(text)' is not the digest of a public key; write sha256// and its Base64, which is 44 characters long, as curl --pinnedpubkey takes it"
                )
            }
            return text
        case .storedPath:
            let segments = text.split(separator: "/", omittingEmptySubsequences: false)
            guard text.utf8.count <= 1024,
                segments.allSatisfy({ segment in
                    !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.count <= 255
                        && segment.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
                })
            else {
                throw ScalarProblem(
                    "'\(text)' is not a relative path; write one such as maps/world.json, without a slash at the beginning or end, and without empty segments or dot segments"
                )
            }
            return text
        }
    }

    /// The host in lower case: a name, an IPv4 address, or an IPv6 address in brackets; nil if the text is none.
    static func host(_ text: String) -> String? {
        if text.hasPrefix("["), text.hasSuffix("]") {
            guard AddressBytes.parse(String(text.dropFirst().dropLast()))?.count == 16 else { return nil }
            return text.lowercased()
        }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= 253,
            labels.allSatisfy({ label in
                !label.isEmpty && label.utf8.count <= 63
                    && label.utf8.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 95 }
                    && !label.hasPrefix("-") && !label.hasSuffix("-")
            })
        else { return nil }
        // A name that looks like an IPv4 address must be a valid one, because resolvers differ
        // in how they parse others.
        if let last = labels.last, last.utf8.allSatisfy({ (48...57).contains($0) }), AddressBytes.parse(text) == nil {
            return nil
        }
        return text.lowercased()
    }

    /// Checks a port that is written after a colon.
    private static func port(_ text: Substring) throws(ScalarProblem) -> Substring {
        let port = text.dropFirst()
        guard port == "*" || Digits.parse(port).map({ (1...65535).contains($0) }) == true else {
            throw ScalarProblem("'\(port)' is not a port; write 1 to 65535, or *")
        }
        return text
    }

    private static func hostPattern(_ text: String) throws(ScalarProblem) -> String {
        if text == "*" { return text }
        let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
        if AddressBytes.parse(text)?.count == 16 { return "[\(text.lowercased())]" }
        guard let host = host(name) else {
            throw ScalarProblem("'\(text)' is not a host pattern; write a host, *.DOMAIN or *")
        }
        return (text.hasPrefix("*.") ? "*." : "") + host
    }

    private static func prefix(_ text: String) throws(ScalarProblem) -> String {
        guard text.hasPrefix("/") else { throw ScalarProblem("a prefix must begin with a slash; write /\(text)") }
        if text == "/" { return text }
        let path = text.hasSuffix("/") ? String(text.dropLast()) : text
        for segment in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard !segment.isEmpty, segment != ".", segment != ".." else {
                throw ScalarProblem(
                    "'\(text)' has an empty segment or a dot segment; write a plain path such as /github"
                )
            }
            guard segment.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 35 && $0 != 63 && $0 != 42 }) else {
                throw ScalarProblem(
                    "'\(text)' is not a path; percent-encode characters that are not ASCII, and leave out '?', '#' and '*'"
                )
            }
        }
        return path
    }

    /// Whether a text is the padded Base64 of exactly this number of bytes.
    private static func isBase64(_ text: Substring.UTF8View, of count: Int) -> Bool {
        let padding = (3 - count % 3) % 3
        guard text.count == (count + 2) / 3 * 4 else { return false }
        return text.dropLast(padding).allSatisfy { isAlphanumeric($0) || $0 == 43 || $0 == 47 }
            && text.suffix(padding).allSatisfy { $0 == 61 }
    }

    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isAlphanumeric($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
}
