// The names of fields, members and query items that carry credentials, and URLs without the values of such names.

import HTTPWire
import Trees

package enum SecretNames {
    /// Whether a name is that of a secret, by its words: `Authorization`, `Cookie`, `X-Api-Key`, `Private-Token`,
    /// `api_key`, `accessToken` and similar ones. A name that describes a secret, such as `X-OAuth-Scopes` or
    /// `token_type`, is not.
    package static func contains(_ name: String) -> Bool {
        let words = words(of: name)
        guard let last = words.last, !harmlessEnds.contains(last) else { return false }
        return words.contains { anywhere.contains($0) || isSecretInOne($0) } || ends.contains(last)
            || whole.contains(words.joined(separator: " ")) || isOfContent(words)
            // Capitals do not begin words in some names, such as DPoP.
            || anywhere.contains(name.lowercased())
    }

    /// Whether a word is that of a secret written together with another one: `sessionid`, `csrftoken`, `accesstoken`.
    private static func isSecretInOne(_ word: String) -> Bool { wordEnds.contains { word.hasSuffix($0) } }

    /// Whether a name is the plural of a secret, such as `tokens` or `apiKeys`: its value may be a list of secrets,
    /// while a number (`max_tokens`) is not secret.
    package static func containsPlural(_ name: String) -> Bool {
        let words = words(of: name)
        return words.contains { $0.hasSuffix("s") && anywhere.contains(String($0.dropLast())) } || words.last == "keys"
    }

    // MARK: - The table

    /// A name with one of these words is secret.
    private static let anywhere: Set<String> = [
        "auth", "authorization", "authentication", "cookie", "token", "secret", "password", "passwd", "pwd", "apikey",
        "credential", "credentials", "session", "jwt", "sig", "signature", "bearer", "passphrase", "passcode",
        "cookie2", "otp", "totp", "hotp", "mfa", "dpop", "csrf", "xsrf",
    ]
    /// A name with a word that has one of these endings is secret.
    private static let wordEnds = ["token", "secret", "password", "sessionid", "apikey"]
    /// A name that ends with one of these words is secret.
    private static let ends: Set<String> = ["key"]
    /// A name that consists of one of these words is secret.
    private static let whole: Set<String> = ["pass"]
    /// A name that ends with one of these words describes a secret, and is not one.
    private static let harmlessEnds: Set<String> = [
        "scope", "scopes", "count", "counts", "type", "types", "length", "limit", "limits", "remaining", "expires",
        "expiry", "expiration", "ttl", "lifetime", "time", "at", "in", "endpoint", "supported", "required", "enabled",
        "policy", "status", "algorithm", "alg",
    ]
    /// The names in the contents of token endpoints and logins, which are hidden in recorded contents, too.
    private static let contents = [
        "access_token", "refresh_token", "id_token", "password", "passwd", "client_secret", "SAMLResponse",
        "client_assertion", "cvv", "cvc",
    ]
    /// Names in contents whose values are secret if one of ``companions`` is beside them.
    private static let beside = ["code", "code_verifier", "assertion", "otp", "pin"]
    private static let companions = ["grant_type", "password", "passwd"]

    private static let contentWords = contents.map { words(of: $0) }
    private static let besideWords = beside.map { words(of: $0) }
    private static let companionWords = companions.map { words(of: $0) }

    /// The table of the documentation, as lines of Markdown.
    package static var table: [String] {
        func row(_ what: String, _ names: some Sequence<String>) -> String {
            "| \(what) | \(names.map { "`\($0)`" }.joined(separator: ", ")) |"
        }
        return [
            "| a name is secret | |", "|---|---|",
            row("with one of the words", anywhere.sorted()),
            row("with a word that ends with", wordEnds), row("that ends with the word", ends.sorted()),
            row("that is", whole.sorted()),
            row("of contents, too", contents),
            row("of contents with \(companions.map { "`\($0)`" }.joined(separator: ", ")) beside it", beside),
            row("never, if it ends with the word", harmlessEnds.sorted()),
        ]
    }

    // MARK: - Contents

    /// The meaning of the name of a member.
    struct ContentName: OptionSet {
        let rawValue: UInt8
        /// The value is secret.
        static let secret = ContentName(rawValue: 1)
        /// The value is secret if a companion is beside it.
        static let beside = ContentName(rawValue: 2)
        static let companion = ContentName(rawValue: 4)
    }

    static func content(_ name: String) -> ContentName {
        let words = words(of: name)
        guard let last = words.last, !harmlessEnds.contains(last) || words == ["grant", "type"] else { return [] }
        var result: ContentName = []
        if isOfContent(words) { result.insert(.secret) }
        if besideWords.contains(where: { isWritten(words, as: $0) }) { result.insert(.beside) }
        if companionWords.contains(where: { ends(words, with: $0) }) { result.insert(.companion) }
        return result
    }

    /// Whether the last words of a name are those of ``contents``, which may be written together: `new_password`,
    /// `idtoken`.
    private static func isOfContent(_ words: [String]) -> Bool {
        contentWords.contains { ends(words, with: $0) || isWritten(words, as: $0) }
    }

    private static func ends(_ words: [String], with end: [String]) -> Bool {
        words.count >= end.count && words.suffix(end.count).elementsEqual(end)
    }

    private static func isWritten(_ words: [String], as other: [String]) -> Bool {
        words == other || words == [other.joined()]
    }

    /// Whether a request field is for one origin only, so that it does not follow a redirect to another one (RFC 9110
    /// section 15.4): it carries credentials, or a URL with its query, as `Referer` and `X-Original-URL` do.
    package static func isForOneOrigin(_ field: String) -> Bool {
        if contains(field) { return true }
        guard let last = words(of: field).last else { return false }
        return ["referer", "referrer", "url", "uri"].contains(last)
    }

    /// The words of a name in lower case. A word ends at any character but letters and digits, before a capital after a
    /// small letter, and before the last of several capitals that a small letter follows: `X-CSRFToken` is x, csrf and
    /// token.
    private static func words(of name: String) -> [String] {
        var words = [""]
        var isSmall = false
        var isCapital = false
        for character in name {
            guard character.isLetter || character.isNumber else {
                words.append("")
                (isSmall, isCapital) = (false, false)
                continue
            }
            if isSmall, character.isUppercase { words.append("") }
            if isCapital, character.isLowercase, words[words.count - 1].count > 1 {
                words.append(String(words[words.count - 1].removeLast()))
            }
            words[words.count - 1] += character.lowercased()
            isSmall = character.isLowercase || character.isNumber
            isCapital = character.isUppercase
        }
        return words.filter { !$0.isEmpty }
    }
}

extension ContentTree {
    /// Whether the name of a member, at any depth, is one of credentials.
    package var hasSecretNames: Bool {
        switch self {
        case .object(let members): members.contains { SecretNames.contains($0.name) || $0.value.hasSecretNames }
        case .array(let values): values.contains(where: \.hasSecretNames)
        default: false
        }
    }
}

// MARK: - URLs

/// URLs without their secrets: the password of the user, and the values in query and fragment with secret names.
package enum SecretURL {
    /// The mark in the place of a secret.
    package static let mark = "***"

    /// The most levels of URLs within URLs that are examined.
    private static let depth = 3

    /// The value of a field without the secrets in its URLs: for `Link` those in angle brackets, for any other field
    /// the whole value.
    /// - Parameter isSecret: whether an item of a query is a secret, by its decoded name.
    package static func hidden(
        _ value: String,
        field name: String,
        where isSecret: (String) -> Bool = SecretNames.contains
    ) -> String {
        guard
            value.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "@") }
            )
        else { return value }
        guard name.lowercased() == "link" else { return hidden(value, where: isSecret) }
        var result = ""
        var rest = value[...]
        while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
            let first = rest.index(after: open)
            result += rest[..<first] + hidden(String(rest[first..<close]), where: isSecret)
            rest = rest[close...]
        }
        return result + rest
    }

    /// A URL, or a path with a query, without its secrets: `/a?token=***&page=2`.
    /// - Parameter isSecret: whether an item of a query is a secret, by its decoded name.
    package static func hidden(_ url: String, where isSecret: (String) -> Bool = SecretNames.contains) -> String {
        hidden(url, within: 0, isSecret)
    }

    private static func hidden(_ url: String, within level: Int, _ isSecret: (String) -> Bool) -> String {
        let start = url.firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
        var text = withoutUser(url[..<start])
        var rest = url[start...]
        while let separator = rest.first {
            text.append(separator)
            rest = rest.dropFirst()
            let item = rest.prefix { !"?#&;".contains($0) }
            text += hidden(item: item, within: level, isSecret)
            rest = rest[item.endIndex...]
        }
        return text
    }

    /// A URL without the password of its user: `https://me:***@host/` for `https://me:secret@host/`; a user name alone
    /// may be a token.
    private static func withoutUser(_ text: Substring) -> String {
        guard let begin = text.firstRange(of: "//")?.upperBound else { return String(text) }
        let authority = text[begin...].prefix { $0 != "/" }
        guard let end = authority.lastIndex(of: "@") else { return String(text) }
        let user = authority[..<end]
        let shown = user.firstIndex(of: ":").map { user[...$0] + mark } ?? mark[...]
        return String(text[..<begin] + shown + text[end...])
    }

    /// A cookie without its value: `id=***; Path=/` for `id=7f3a; Path=/`. Without a name all of it is the value (RFC
    /// 6265bis section 5.6).
    package static func hidden(cookie value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        let name = value[..<end].firstIndex(of: "=").map { value[...$0] } ?? ""
        return name + mark + value[end...]
    }

    /// An item of a query, without its value if its name is secret, or a URL in the value has a secret.
    private static func hidden(item: Substring, within level: Int, _ isSecret: (String) -> Bool) -> String {
        guard let sign = item.firstIndex(of: "="), item.index(after: sign) < item.endIndex else { return String(item) }
        let value = item[sign...].dropFirst()
        if isSecret(decoded(item[..<sign])) { return String(item[...sign] + mark) }
        guard level < depth, value.utf8.contains(UInt8(ascii: "%")) else { return String(item) }
        let inner = decoded(value)
        return hidden(inner, within: level + 1, isSecret) == inner ? String(item) : String(item[...sign] + mark)
    }

    private static func decoded(_ text: Substring) -> String {
        String(decoding: PercentEncoding.decode(form: text.utf8), as: UTF8.self)
    }
}
