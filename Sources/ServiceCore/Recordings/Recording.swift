// One recorded answer: its key, and the document beside its content in a folder.

package import CacheStore
import Content
import DownloadCore
import FoundationEssentials
import HTTPCaching
package import HTTPWire
package import Policies
import Trees

/// An origin's answer without secrets.
package struct Recording: Sendable {
    package let key: RecordingKey
    /// The request fields that the answer names in Vary: each a name in lower case with its value, or the name alone if
    /// the request had no such field. Nil if they are not known: the recording answers all requests with its key.
    package let vary: [[String]]?
    /// The time of the recording, in seconds since 1970.
    package let recordedAt: Int64
    package let status: Int
    package let reason: String
    /// The fields of the answer, without those of the connection and without Content-Length, which the content decides.
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

    /// The head of the answer for now: Date is now, Expires is as far away as it was, and Age is removed.
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - length: the length of the content in bytes.
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
    /// The recording without its content, which ``content`` has.
    package let recording: Recording
    package let content: Body
    /// The length of the content in bytes.
    package var length: Int64 { content.knownLength ?? 0 }
}

/// The document `NAME.head.json` of a recording; a person may edit it, and the content beside it.
struct RecordingDocument: Codable, Equatable {
    /// The method and target, such as `GET /users/7`.
    var request: String
    /// The request fields that the key has, as names and values.
    var match: [[String]]?
    /// The SHA-256 of the request's content, in hexadecimal digits.
    var body: String?
    /// The request fields that the answer names in Vary: each a name with its value, or a name alone.
    var vary: [[String]]?
    /// The time of the recording, such as `2026-11-21T07:00:00Z`.
    var recordedAt: String
    var status: Int
    var reason: String?
    /// The field lines of the answer in their order, as names and values.
    var fields: [[String]]
    /// The name of the file with the content, in the same folder; nil for an answer without content.
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

    /// The error of bytes that are not a document: the position of the mistake, and what it is.
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

    /// The document as JSON.
    /// - Throws: nothing for a document that ``init(_:content:)`` makes.
    func encode() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0a]
    }

    /// The key of the recording.
    var key: RecordingKey { RecordingKey(request: request, fields: match ?? [], body: body) }

    /// The recording with this content.
    /// - Returns: nil if the status, a field or the time cannot be sent.
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

/// The key of a recording: the request without its secrets, from which the name of its files is made.
package struct RecordingKey: Sendable, Hashable {
    /// The method and target, such as `GET /users/7?page=2`; HEAD has the key of GET.
    package let request: String
    /// The names, in lower case, and values of the request fields that the rules name; lines of one name are combined.
    /// A secret is represented by its digest, and credentials that the rules do not name by ``Redaction/mark``.
    package let fields: [[String]]
    /// The SHA-256 of the request's content in hexadecimal digits; nil without content, or if the rules ignore it.
    package let body: String?

    /// - Parameters:
    ///   - path: the path and query on the origin.
    ///   - content: the content of the request; empty if it has none.
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

    /// The key that a document has.
    init(request: String, fields: [[String]], body: String?) {
        self.request = request
        self.fields = fields.map { $0.count == 2 ? [$0[0], Redaction.asked($0[1], of: $0[0])] : $0 }
        self.body = body
    }

    /// The fields with credentials, which tell who sends a request.
    private static let credentials = [
        "api-key", "authorization", "private-token", "x-access-token", "x-api-key", "x-auth-token",
    ]

    /// The key of the same request without credentials; nil if it has none.
    var withoutCredentials: RecordingKey? {
        let others = fields.filter { $0.count != 2 || $0[1] != Redaction.mark }
        return others.count == fields.count ? nil : RecordingKey(request: request, fields: others, body: body)
    }

    /// The path and query on the origin; nil if the method is not GET.
    package var pathOfGET: String? { request.hasPrefix("GET /") ? String(request.dropFirst(4)) : nil }

    /// The pairs of ``fields``, without those that a person has written with anything but a name and a value.
    package var fieldLines: [(name: String, value: String)] {
        fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }
    }

    /// True if the key has secrets: the request cannot be repeated from it.
    package var hasSecrets: Bool {
        if fieldLines.contains(where: { $0.value == Redaction.mark }) { return true }
        return tellsSecretsApart
    }

    /// True if different values of a secret make different keys.
    var tellsSecretsApart: Bool {
        if fieldLines.contains(where: { SecretNames.contains($0.name) && $0.value != Redaction.mark }) { return true }
        guard let mark = request.firstIndex(of: "?") else { return false }
        return request[mark...].dropFirst().split { "&;".contains($0) }.contains { $0.hasSuffix("=" + Redaction.mark) }
    }

    /// The name of the recording's files in the folder of a service, without an extension: readable, and different for
    /// each key.
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
    /// The request fields that the answer names in Vary, sorted: each a name in lower case with its value, or alone if
    /// the request has no such field. Only the presence of a secret counts: a recording of one user answers another
    /// one.
    ///
    /// `Accept-Encoding` is left out, since recordings have no content coding, and so is `*`, which cannot be compared.
    static func pairs(_ answer: Fields, _ request: Fields) -> [[String]] {
        let names = answer.all(.vary).flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        return Set(names).subtracting(["", "*", "accept-encoding"]).sorted().map { pair($0, request) }
    }

    /// True if the request has the field values that an answer was recorded for.
    /// - Parameter pairs: the fields; nil matches every request.
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
