// Names of fields and query items that carry credentials, so that their values are hidden and protected.

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
    /// So is one with a word that ends so.
    private static let wordEnds = ["token", "secret", "password", "sessionid", "apikey"]
    /// So is one that ends with this word.
    private static let ends: Set<String> = ["key"]
    /// So is one that has no other word.
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
    /// Of contents that have one of ``companions`` beside them.
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
