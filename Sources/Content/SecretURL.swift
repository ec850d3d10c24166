// URLs without the secrets in them: the password of the user, and values in query and fragment whose names say so.

import HTTPWire

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
