// What of an answer no recording has: the values of secrets, and content codings.

import Content
import HTTPCaching
import HTTPWire
import Policies

enum Redaction {
    /// Stands in the place of a secret.
    static let mark = SecretURL.mark

    /// An answer as a recording has it: without a content coding where that can be taken off, and without secrets.
    /// - Parameters:
    ///   - secrets: the query items that the service adds, which no client may see.
    ///   - isSent: the content is what the origin has sent, and no more has been taken off.
    /// - Throws: why no recording can be made of it.
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
        // A digest is of the bytes that were sent.
        if !isSent || plain != content {
            for name in digests { fields.removeAll { field, _ in field.equalsIgnoringCase(name) } }
        }
        return (fields, plain)
    }

    /// Whether secrets are looked for in a content, or could be.
    static func looks(into content: UnsafeRawBufferPointer, of fields: Fields, _ rules: RecordingRules) -> Bool {
        SecretContent(shown: rules.shown).looks(
            into: Array(content.prefix(SecretContent.telling)),
            type: fields.first(.contentType)
        )
    }

    /// RFC 9530, RFC 3230 and RFC 2616 section 14.15.
    private static let digests: [StaticString] = ["content-digest", "repr-digest", "digest", "content-md5"]

    /// The content without its codings; as it is where one is unknown, or the content is not in it.
    private static func decoded(
        _ content: [UInt8],
        _ fields: Fields,
        atMost limit: Int
    ) throws(RedactionRefusal) -> (Fields, [UInt8]) {
        guard let codings = ContentCoding.codings(fields), !content.isEmpty else { return (fields, content) }
        guard !codings.isEmpty else {
            // `identity` is no coding.
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

    /// The fields without secrets: cookies keep their names and attributes, what is secret by its name, or named by the
    /// rules, loses its value, and so do such items of URLs.
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

    /// A target without the values of secret query items.
    static func target(_ path: String, _ rules: RecordingRules) -> String {
        guard path.utf8.contains(UInt8(ascii: "?")) else { return path }
        return SecretURL.hidden(path) { isSecret($0, rules) }
    }

    /// Whether an item of a query is secret by its name, or the rules name it.
    private static func isSecret(_ name: String, _ rules: RecordingRules) -> Bool {
        SecretContent(shown: rules.shown).isSecret(name)
            || rules.redactedQuery.contains { StarPattern.matches(Array($0.utf8)[...], Array(name.utf8)[...]) }
    }

    /// The value of a request's field as it tells recordings apart: of a secret its digest.
    static func asked(_ value: String, of name: String) -> String {
        guard SecretNames.contains(name), !value.hasPrefix(digestMark), value != mark else { return value }
        return digestMark + (ContentDigest.sha256.hex(value.utf8) ?? "").prefix(16)
    }

    /// Whether no recording has the value of a request's field, but only that it was sent.
    static func isHidden(_ name: String) -> Bool { SecretNames.contains(name) }

    /// What the digest of a secret begins with.
    static let digestMark = "sha256:"

    /// A document without the members that the rules name, whatever it says that it is; any other content as it is.
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

/// Why no recording is made of an answer.
enum RedactionRefusal: Error, Equatable, CustomStringConvertible {
    /// It says that it is JSON and cannot be read, so that a secret in it could not be found.
    case noJSON
    /// It has more than so many bytes without its codings.
    case tooLong(Int)

    /// Said of the answer, with what to do.
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
