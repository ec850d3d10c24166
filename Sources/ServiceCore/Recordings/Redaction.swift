// The redaction of recordings: removes the values of secrets, and content codings.

import Content
import HTTPCaching
import HTTPWire
import Policies
import Trees

enum Redaction {
    /// The text that stands for a secret.
    static let mark = SecretURL.mark

    /// An answer as a recording has it: without secrets, and without a content coding if that can be decoded.
    /// - Parameters:
    ///   - secrets: the query items that the service adds, which clients must not see.
    ///   - isSent: true if the content is as the origin has sent it.
    /// - Throws: the reason why no recording can be made of it.
    static func apply(
        to content: [UInt8],
        of fields: Fields,
        _ rules: RecordingRules,
        _ secrets: SecretQuery,
        isSent: Bool = true
    ) throws(RedactionRefusal) -> (fields: Fields, content: [UInt8]) {
        var (fields, plain) = try decoded(content, fields, atMost: rules.maximumSize)
        if !fields.contains(.contentEncoding) {
            plain = SecretContent(shown: rules.shown).hidden(plain, type: fields.first(.contentType))
        }
        plain = try apply(to: plain, fields, rules)
        fields = apply(to: fields, rules, secrets)
        fields.remove(.contentLength)
        // Digests are of the bytes that were sent, so they are removed with any change.
        if !isSent || plain != content {
            for name in digests { fields.removeAll { field, _ in field.equalsIgnoringCase(name) } }
        }
        return (fields, plain)
    }

    /// True if secrets are looked for in a content, by its media type or by how it begins.
    static func looks(into content: UnsafeRawBufferPointer, of fields: Fields, _ rules: RecordingRules) -> Bool {
        SecretContent(shown: rules.shown).looks(
            into: Array(content.prefix(SecretContent.telling)),
            type: fields.first(.contentType)
        )
    }

    /// The fields with digests of the content: RFC 9530, RFC 3230, and RFC 2616 section 14.15.
    private static let digests: [StaticString] = ["content-digest", "repr-digest", "digest", "content-md5"]

    /// The content without its codings; unchanged if a coding is unknown, or if the content does not decode.
    private static func decoded(
        _ content: [UInt8],
        _ fields: Fields,
        atMost limit: Int
    ) throws(RedactionRefusal) -> (Fields, [UInt8]) {
        guard let codings = ContentCoding.codings(fields), !content.isEmpty else { return (fields, content) }
        guard !codings.isEmpty else {
            // The coding `identity` is none, and is removed.
            var fields = fields
            fields.remove(.contentEncoding)
            return (fields, content)
        }
        let decoder = ContentDecoder(codings)
        var plain: [UInt8] = []
        do {
            try content.withUnsafeBytes { bytes in
                try decoder.push(bytes) { part in
                    plain.append(contentsOf: part)
                    return plain.count <= limit
                }
            }
        } catch {
            return (fields, content)
        }
        guard plain.count <= limit else { throw .tooLong(limit) }
        guard decoder.isAtEnd else { return (fields, content) }
        var fields = fields
        fields.remove(.contentEncoding)
        return (fields, plain)
    }

    /// The fields without secrets: cookies keep their names and attributes; a field that is secret by its name or by
    /// the rules loses its value, and so do secret query items of URLs.
    static func apply(to fields: Fields, _ rules: RecordingRules, _ secrets: SecretQuery) -> Fields {
        let known = SecretContent(shown: rules.shown)
        var result = Fields()
        for line in fields.lines {
            let name = line.name.lowercased()
            if name == "set-cookie" || name == "set-cookie2" {
                result.append(line.name, SecretURL.hidden(cookie: line.value))
            } else if rules.redactedFields.contains(name) || known.isSecret(name) {
                result.append(line.name, mark)
            } else {
                let value = secrets.removed(from: line.value)
                result.append(line.name, SecretURL.hidden(value, field: name) { isSecret($0, rules) })
            }
        }
        return result
    }

    /// A request target without the values of its secret query items.
    static func target(_ path: String, _ rules: RecordingRules) -> String {
        guard path.utf8.contains(UInt8(ascii: "?")) else { return path }
        return SecretURL.hidden(path) { isSecret($0, rules) }
    }

    /// True if a query item is secret by its name or by the rules.
    private static func isSecret(_ name: String, _ rules: RecordingRules) -> Bool {
        SecretContent(shown: rules.shown).isSecret(name)
            || rules.redactedQuery.contains { StarPattern.matches(Array($0.utf8)[...], Array(name.utf8)[...]) }
    }

    /// The value of a request's field in a key; a secret is represented by its digest.
    static func asked(_ value: String, of name: String) -> String {
        guard SecretNames.contains(name), !value.hasPrefix(digestMark), value != mark else { return value }
        return digestMark + (ContentDigest.sha256.hex(value.utf8) ?? "").prefix(16)
    }

    /// True if recordings have only the presence of a request's field, and not its value.
    static func isHidden(_ name: String) -> Bool { SecretNames.contains(name) }

    /// The prefix of the digest of a secret.
    static let digestMark = "sha256:"

    /// A JSON document without the members that the rules name, whatever its media type is; any other content as it is.
    /// - Throws: ``RedactionRefusal/noJSON`` if the media type is JSON and the content is not.
    static func apply(
        to content: [UInt8],
        _ fields: Fields,
        _ rules: RecordingRules
    ) throws(RedactionRefusal) -> [UInt8] {
        guard !rules.redactedMembers.isEmpty, !content.isEmpty else { return content }
        let before: ContentTree
        do throws(TreeError) {
            before = try JSONReader.read(content, limits: TreeLimits(depth: 128, values: 1 << 20))
        } catch {
            let isSaid = fields.all(.contentType).contains { type in
                type.prefix { $0 != ";" }.lowercased().contains("json")
            }
            if isSaid { throw .noJSON }
            return content
        }
        var tree = before
        for path in rules.redactedMembers { tree = tree.changing(path[...]) { _ in .string(mark) } }
        return tree == before ? content : JSONWriter.bytes(tree)
    }
}

/// The reason why no recording is made of an answer.
enum RedactionRefusal: Error, Equatable, CustomStringConvertible {
    /// The media type is JSON and the content is not, so that a secret in it could not be found.
    case noJSON
    /// The decoded content has more than this number of bytes.
    case tooLong(Int)

    /// The reason as a predicate of the answer, with advice.
    var description: String {
        switch self {
        case .noJSON:
            "says that it is JSON and cannot be read, so that what 'recordings.redact.json' names cannot be found; "
                + "correct the origin, or remove the names"
        case .tooLong(let limit):
            "has more than \(limit) bytes without its content coding; raise 'recordings.max_size'"
        }
    }
}
