// Names of fields, members and query items that carry credentials, and URLs without the values of such names.

import HTTPWire

package enum SecretNames {
    /// `Authorization`, `Cookie`, `X-Api-Key`, `Private-Token`, `api_key`, `accessToken` and the like,
    /// by the words of the name. What says something of a secret, such as `X-OAuth-Scopes` or `token_type`, is none.
    package static func contains(_ name: String) -> Bool {
        let words = words(of: name)
        guard let last = words.last, !harmlessEnds.contains(last) else { return false }
        return words.contains { anywhere.contains($0) || isSecretInOne($0) } || ends.contains(last)
            || whole.contains(words.joined(separator: " ")) || isOfContent(words)
            // The capitals of some names, such as DPoP, are not those of words.
            || anywhere.contains(name.lowercased())
    }

    /// `sessionid`, `csrftoken`, `accesstoken`: two words that are written as one.
    private static func isSecretInOne(_ word: String) -> Bool { wordEnds.contains { word.hasSuffix($0) } }

    /// `tokens`, `apiKeys` and the like: what is called so may be a list of secrets, and a number (`max_tokens`) is none.
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
    /// A name with a word that ends so is secret.
    private static let wordEnds = ["token", "secret", "password", "sessionid", "apikey"]
    /// A name that ends with one of these words is secret.
    private static let ends: Set<String> = ["key"]
    /// A name that has no word but one of these is secret.
    private static let whole: Set<String> = ["pass"]
    /// A name that ends with one of these words says something of a secret, and is none.
    private static let harmlessEnds: Set<String> = [
        "scope", "scopes", "count", "counts", "type", "types", "length", "limit", "limits", "remaining", "expires",
        "expiry", "expiration", "ttl", "lifetime", "time", "at", "in", "endpoint", "supported", "required", "enabled",
        "policy", "status", "algorithm", "alg",
    ]
    /// What token endpoints and logins carry: hidden in contents that are recorded, too.
    private static let contents = [
        "access_token", "refresh_token", "id_token", "password", "passwd", "client_secret", "SAMLResponse",
        "client_assertion", "cvv", "cvc",
    ]
    /// Names of contents whose values are secret if one of ``companions`` is beside them.
    private static let beside = ["code", "code_verifier", "assertion", "otp", "pin"]
    private static let companions = ["grant_type", "password", "passwd"]

    private static let contentWords = contents.map { words(of: $0) }
    private static let besideWords = beside.map { words(of: $0) }
    private static let companionWords = companions.map { words(of: $0) }

    /// The table as the documentation has it: lines of Markdown.
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

    /// What the name of a member of a content says.
    struct ContentName: OptionSet {
        let rawValue: UInt8
        /// Its value is secret.
        static let secret = ContentName(rawValue: 1)
        /// Its value is secret if a companion stands beside it.
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

    /// The words of a name end with those of ``contents``, which may be written as one: `new_password`, `idtoken`.
    private static func isOfContent(_ words: [String]) -> Bool {
        contentWords.contains { ends(words, with: $0) || isWritten(words, as: $0) }
    }

    private static func ends(_ words: [String], with end: [String]) -> Bool {
        words.count >= end.count && words.suffix(end.count).elementsEqual(end)
    }

    private static func isWritten(_ words: [String], as other: [String]) -> Bool {
        words == other || words == [other.joined()]
    }

    /// Whether a request field is for one origin alone, so that it does not follow a redirect to another one (RFC 9110
    /// section 15.4): it carries credentials, or a URL with its query, as `Referer` and `X-Original-URL` do.
    package static func isForOneOrigin(_ field: String) -> Bool {
        if contains(field) { return true }
        guard let last = words(of: field).last else { return false }
        return ["referer", "referrer", "url", "uri"].contains(last)
    }

    /// In lower case. A word ends at what is neither letter nor digit, where a capital follows a small letter, and before
    /// the last of several capitals that a small letter follows: `X-CSRFToken` is x, csrf and token.
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
    /// The name of a member, at any depth, is one of credentials.
    package var hasSecretNames: Bool {
        switch self {
        case .object(let members): members.contains { SecretNames.contains($0.name) || $0.value.hasSecretNames }
        case .array(let values): values.contains(where: \.hasSecretNames)
        default: false
        }
    }
}

// MARK: - URLs

/// URLs without the secrets in them: the password of the user, and values in query and fragment whose names say so.
package enum SecretURL {
    /// Stands in the place of a secret.
    package static let mark = "***"

    /// The deepest URL within a URL within a URL that is looked into.
    private static let depth = 3

    /// The value of a field without the secrets of the URLs in it: of `Link` those in angle brackets, of any other all of
    /// it, where it has any.
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

    /// `https://me:secret@host/` as `https://me:***@host/`; a name alone may be a token.
    private static func withoutUser(_ text: Substring) -> String {
        guard let begin = text.firstRange(of: "//")?.upperBound else { return String(text) }
        let authority = text[begin...].prefix { $0 != "/" }
        guard let end = authority.lastIndex(of: "@") else { return String(text) }
        let user = authority[..<end]
        let shown = user.firstIndex(of: ":").map { user[...$0] + mark } ?? mark[...]
        return String(text[..<begin] + shown + text[end...])
    }

    /// `id=7f3a; Path=/` of Set-Cookie as `id=***; Path=/`. Without a name all of it is the value (RFC 6265bis section 5.6).
    package static func hidden(cookie value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        let name = value[..<end].firstIndex(of: "=").map { value[...$0] } ?? ""
        return name + mark + value[end...]
    }

    /// An item of a query, without its value where its name, or a URL in the value, has a secret.
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
