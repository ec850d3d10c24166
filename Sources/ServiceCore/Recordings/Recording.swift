// One recorded answer: what tells it from others, and the document that stands beside its content in a folder.

package import CacheStore
import Content
import DownloadCore
import FoundationEssentials
import HTTPCaching
package import HTTPWire
package import Policies

/// An answer as an origin gave it, without secrets.
package struct Recording: Sendable {
    package let key: RecordingKey
    /// The fields of the request that the answer names in Vary: names in lower case with their values, or a name alone where
    /// the request had no such field. Nil where that is not known: the recording answers whatever they are.
    package let vary: [[String]]?
    /// Unix seconds.
    package let recordedAt: Int64
    package let status: Int
    package let reason: String
    /// Without those of the connection and without Content-Length, which is that of the content.
    package let fields: Fields
    package let content: [UInt8]

    package init(
        key: RecordingKey,
        vary: [[String]]? = nil,
        recordedAt: Int64,
        status: Int,
        reason: String,
        fields: Fields,
        content: [UInt8]
    ) {
        self.key = key
        self.vary = vary
        self.recordedAt = recordedAt
        self.status = status
        self.reason = reason
        self.fields = fields
        self.content = content
    }

    /// The head of the answer: Date is now, Expires as far away as it was, and Age is gone.
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - length: of the content, in bytes.
    package func head(now: Int64, length: Int64) -> ResponseHead {
        var fields = fields
        fields.remove(.age)
        if let expires = fields.first(.expires), let date = HTTPDate.parse(expires, now: recordedAt) {
            let (moved, overflow) = date.addingReportingOverflow(now - recordedAt)
            if !overflow, moved > 0, moved < 253_402_300_800 { fields.set(.expires, HTTPDate.format(moved)) }
        }
        fields.set(.date, HTTPDate.format(now))
        fields.set(.contentLength, String(length))
        return ResponseHead(status: status, reason: reason, fields: fields)
    }
}

/// A recording whose content is read while it is sent.
package struct OpenRecording: Sendable {
    /// Without its content.
    package let recording: Recording
    package let content: Body
    /// Of the content, in bytes.
    package var length: Int64 { content.knownLength ?? 0 }
}

/// The document `NAME.head.json`, which a person may change, as the content beside it.
struct RecordingDocument: Codable, Equatable {
    /// `GET /users/7`
    var request: String
    /// The fields of the request that tell it from others: names and values.
    var match: [[String]]?
    /// The SHA-256 of the request's content.
    var body: String?
    /// The fields of the request that the answer names in Vary: names and values, or a name alone.
    var vary: [[String]]?
    /// Such as `2026-11-21T07:00:00Z`.
    var recordedAt: String
    var status: Int
    var reason: String?
    /// Names and values of the answer's field lines, in their order.
    var fields: [[String]]
    /// The name of the file with the content, in the same folder; absent: there is none.
    var content: String?

    private enum CodingKeys: String, CodingKey {
        case request, match, body, vary, status, reason, fields, content
        case recordedAt = "recorded_at"
    }

    private static let form = Date.ISO8601FormatStyle()

    init(_ recording: Recording, content: String?) {
        request = recording.key.request
        match = recording.key.fields.isEmpty ? nil : recording.key.fields
        body = recording.key.body
        vary = recording.vary
        recordedAt = Date(timeIntervalSince1970: Double(recording.recordedAt)).formatted(Self.form)
        status = recording.status
        reason = recording.reason.isEmpty ? nil : recording.reason
        fields = recording.fields.lines.map { [$0.name, $0.value] }
        self.content = content
    }

    /// Why bytes are no document: the place of the mistake, and what it is.
    struct Malformed: Error {
        let reason: String
    }

    static func decode(_ bytes: [UInt8]) throws(Malformed) -> RecordingDocument {
        do throws(TreeError) { _ = try JSONReader.read(bytes) } catch {
            throw Malformed(reason: "it is not JSON: \(error)")
        }
        do {
            return try JSONDecoder().decode(RecordingDocument.self, from: Data(bytes))
        } catch {
            guard let error = error as? DecodingError else { throw Malformed(reason: "\(error)") }
            switch error {
            case .keyNotFound(let key, _): throw Malformed(reason: "'\(key.stringValue)' is missing")
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
                let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(
                    separator: "."
                )
                throw Malformed(reason: "the value of '\(path)' is of another kind")
            default: throw Malformed(reason: "it is no document of a recording")
            }
        }
    }

    /// - Throws: never for what ``init(_:content:)`` makes.
    func encode() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0a]
    }

    /// Whose document it is.
    var key: RecordingKey { RecordingKey(request: request, fields: match ?? [], body: body) }

    /// - Returns: nil where the status, a field or the time cannot be sent.
    func recording(_ key: RecordingKey, content: [UInt8]) -> Recording? {
        guard (200...599).contains(status), status != 304, status != 206,
            let date = try? Self.form.parse(recordedAt)
        else { return nil }
        let seconds = date.timeIntervalSince1970
        guard seconds > 0, seconds < 253_402_300_800 else { return nil }
        var lines = Fields()
        for pair in fields {
            guard pair.count == 2, lines.append(pair[0], pair[1]) else { return nil }
        }
        for field in [KnownField.contentLength, .transferEncoding, .connection, .keepAlive] { lines.remove(field) }
        return Recording(
            key: key,
            vary: vary,
            recordedAt: Int64(seconds),
            status: status,
            reason: reason ?? "",
            fields: lines,
            content: content
        )
    }
}

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

enum RecordingVary {
    /// Names in lower case, sorted, with their values, or alone where the request has no such field. Of a secret there is
    /// only that it was sent: the recordings of one user answer another one.
    ///
    /// `Accept-Encoding` is not among them, since recordings have no content coding, and neither is `*`, which says
    /// nothing that could be compared.
    static func pairs(_ answer: Fields, _ request: Fields) -> [[String]] {
        let names = answer.all(.vary).flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        return Set(names).subtracting(["", "*", "accept-encoding"]).sorted().map { pair($0, request) }
    }

    /// Whether a request has the values that an answer was recorded for.
    /// - Parameter pairs: nil matches every request.
    static func matches(_ pairs: [[String]]?, _ request: Fields) -> Bool {
        (pairs ?? []).allSatisfy { known in
            guard let name = known.first else { return true }
            return pair(name.lowercased(), request).dropFirst().elementsEqual(known.dropFirst())
        }
    }

    static func pair(_ name: String, _ request: Fields) -> [String] {
        guard let value = request.combined(name) else { return [name] }
        return [name, Redaction.isHidden(name) ? Redaction.mark : value]
    }
}
