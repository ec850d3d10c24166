// Names of fields and query items that carry credentials, so that their values are hidden and protected.

package enum SecretNames {
    /// `Authorization`, `Cookie`, `X-Api-Key`, `Private-Token`, `api_key`, `accessToken` and the like,
    /// by the words of the name.
    package static func contains(_ name: String) -> Bool {
        let words = words(of: name)
        return words.contains { secret.contains($0) || isSecretInOne($0) } || words.last == "key" || words == ["pass"]
    }

    /// `sessionid`, `csrftoken`, `accesstoken`: two words that are written as one.
    private static func isSecretInOne(_ word: String) -> Bool {
        ["token", "secret", "password", "sessionid", "apikey"].contains { word.hasSuffix($0) }
    }

    /// `tokens`, `apiKeys` and the like: what is called so may be a list of secrets, and a number (`max_tokens`) is none.
    package static func containsPlural(_ name: String) -> Bool {
        let words = words(of: name)
        return words.contains { $0.hasSuffix("s") && secret.contains(String($0.dropLast())) } || words.last == "keys"
    }

    private static let secret: Set<String> = [
        "auth", "authorization", "authentication", "cookie", "token", "secret", "password", "passwd", "pwd", "apikey",
        "credential", "credentials", "session", "jwt", "sig", "signature", "bearer", "passphrase", "passcode",
        "cookie2",
        "otp", "totp", "hotp", "mfa", "dpop", "csrf", "xsrf", "assertion",
    ]

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
