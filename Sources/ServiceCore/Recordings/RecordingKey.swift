// What tells one recording from another: method, target, named fields and content of a request.

import Content
import DownloadCore
import HTTPCaching
package import HTTPWire
package import Policies

/// What a request is recorded under, without secrets, and the name of its files.
package struct RecordingKey: Sendable, Hashable {
    /// Method and target, such as `GET /users/7?page=2`. HEAD is answered from what was recorded of GET.
    package let request: String
    /// Names, in lower case, and values of the fields that the rules name; several lines of one name are one. Of a secret
    /// it has the digest, and of credentials that the rules do not name ``Redaction/mark``: that there were some.
    package let fields: [[String]]
    /// The SHA-256 of the content in hexadecimal digits; nil without content, or where it makes no difference.
    package let body: String?

    /// - Parameters:
    ///   - path: path and query on the origin.
    ///   - content: of the request; empty where it has none.
    package init(_ method: Method, path: String, _ fields: Fields, content: [UInt8], _ rules: RecordingRules) {
        let target = Redaction.target(KeyRules(ignoreQuery: rules.ignoredQuery).path(path), rules)
        request = "\(method == .head ? "GET" : method.name) \(target)"
        let named = rules.fields.compactMap { name in
            fields.combined(name).map { [name, Redaction.asked($0, of: name)] }
        }
        let credentials = Self.credentials.filter { !rules.fields.contains($0) && fields.combined($0) != nil }
        self.fields = named + (rules.matchesCredentials ? credentials.map { [$0, Redaction.mark] } : [])
        body = rules.matchesBody && !content.isEmpty ? ContentDigest.sha256.hex(content) : nil
    }

    /// A key as a document has it.
    init(request: String, fields: [[String]], body: String?) {
        self.request = request
        self.fields = fields.map { $0.count == 2 ? [$0[0], Redaction.asked($0[1], of: $0[0])] : $0 }
        self.body = body
    }

    /// Fields that say who asks.
    private static let credentials = [
        "api-key", "authorization", "private-token", "x-access-token", "x-api-key", "x-auth-token",
    ]

    /// The same for a request without credentials; nil where it has none.
    var withoutCredentials: RecordingKey? {
        let others = fields.filter { $0.count != 2 || $0[1] != Redaction.mark }
        return others.count == fields.count ? nil : RecordingKey(request: request, fields: others, body: body)
    }

    /// Path and query on the origin where it is that of a GET; nil for other methods.
    package var pathOfGET: String? { request.hasPrefix("GET /") ? String(request.dropFirst(4)) : nil }

    /// ``fields``, but for what somebody has written that is no name with a value.
    package var fieldLines: [(name: String, value: String)] {
        fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }
    }

    /// An item of the query, or a field, stands there without its value: nobody can make the request again.
    package var hasSecrets: Bool {
        if fieldLines.contains(where: { $0.value == Redaction.mark }) { return true }
        return tellsSecretsApart
    }

    /// The value of a secret makes a difference.
    var tellsSecretsApart: Bool {
        if fieldLines.contains(where: { SecretNames.contains($0.name) && $0.value != Redaction.mark }) { return true }
        guard let mark = request.firstIndex(of: "?") else { return false }
        return request[mark...].dropFirst().split { "&;".contains($0) }.contains { $0.hasSuffix("=" + Redaction.mark) }
    }

    /// The name of its files in the folder of a service, without an extension: readable, and another one for each key.
    package var name: String {
        let text = ([request] + fields.map { $0.joined(separator: ": ") } + [body ?? ""]).joined(separator: "\n")
        let digest = (ContentDigest.sha256.hex(text.utf8) ?? "").prefix(16)
        let readable = request.unicodeScalars.prefix(80).map { scalar -> Character in
            let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            return isPlain || scalar == "-" ? Character(scalar) : "_"
        }
        return "\(String(readable)).\(digest)"
    }
}
