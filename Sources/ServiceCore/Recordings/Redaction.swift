// What of an answer no recording has: the values of secrets, and content codings.

import Content
import HTTPCaching
import HTTPWire
import Policies

enum Redaction {
    /// Stands in the place of a secret.
    static let mark = SecretURL.mark

    /// An answer as a recording has it: without a content coding where that can be taken off, and without secrets.
    /// - Parameter isSent: the content is what the origin has sent, and no more has been taken off.
    /// - Returns: nil for what says that it is JSON and cannot be read, so that a secret in it could not be found.
    static func apply(
        to content: [UInt8],
        of fields: Fields,
        _ rules: RecordingRules,
        isSent: Bool = true
    ) -> (fields: Fields, content: [UInt8])? {
        var (fields, plain) = decoded(content, fields, atMost: rules.maximumSize)
        guard let redacted = apply(to: plain, fields, rules) else { return nil }
        plain = redacted
        fields = apply(to: fields, rules)
        fields.remove(.contentLength)
        // A digest is of the bytes that were sent.
        if !isSent || plain != content {
            for name in digests { fields.removeAll { field, _ in field.equalsIgnoringCase(name) } }
        }
        return (fields, plain)
    }

    /// RFC 9530, RFC 3230 and RFC 2616 section 14.15.
    private static let digests: [StaticString] = ["content-digest", "repr-digest", "digest", "content-md5"]

    /// The content without its codings; as it is where one is unknown, or the content is not in it.
    private static func decoded(_ content: [UInt8], _ fields: Fields, atMost limit: Int) -> (Fields, [UInt8]) {
        guard let codings = ContentCoding.codings(fields), !codings.isEmpty, !content.isEmpty else {
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
        guard decoder.isAtEnd, plain.count <= limit else { return (fields, content) }
        var fields = fields
        fields.remove(.contentEncoding)
        return (fields, plain)
    }

    /// The fields without secrets: cookies keep their names and attributes, what is secret by its name, or named by the
    /// rules, loses its value, and so do such items of URLs.
    static func apply(to fields: Fields, _ rules: RecordingRules) -> Fields {
        var result = Fields()
        for line in fields.lines {
            let name = line.name.lowercased()
            if name == "set-cookie" {
                result.append(line.name, cookie(line.value))
            } else if rules.redactedFields.contains(name) || SecretNames.contains(name) {
                result.append(line.name, mark)
            } else {
                result.append(line.name, query(SecretURL.hidden(line.value, field: name), rules))
            }
        }
        return result
    }

    /// A URL without the values of the query items that the rules name.
    static func query(_ text: String, _ rules: RecordingRules) -> String {
        guard !rules.redactedQuery.isEmpty, let start = text.firstIndex(of: "?") else { return text }
        let items = text[start...].dropFirst().split(separator: "&", omittingEmptySubsequences: false)
        let hidden = items.map { item -> String in
            guard let sign = item.firstIndex(of: "="), rules.redactedQuery.contains(String(item[..<sign])) else {
                return String(item)
            }
            return item[...sign] + mark
        }
        return text[...start] + hidden.joined(separator: "&")
    }

    /// The value of a request's field as it tells recordings apart: of a secret its digest.
    static func asked(_ value: String, of name: String) -> String {
        guard SecretNames.contains(name), !value.hasPrefix(digestMark) else { return value }
        return digestMark + (ContentDigest.sha256.hex(value.utf8) ?? "").prefix(16)
    }

    /// What the digest of a secret begins with.
    static let digestMark = "sha256:"

    /// `id=7f3a; Path=/` as `id=***; Path=/`.
    private static func cookie(_ value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        let name = value[..<end].prefix { $0 != "=" }
        return "\(name)=\(mark)\(value[end...])"
    }

    /// A document without the members that the rules name; any other content as it is.
    /// - Returns: nil for what says that it is JSON and cannot be read, so that a secret in it could not be found.
    static func apply(to content: [UInt8], _ fields: Fields, _ rules: RecordingRules) -> [UInt8]? {
        guard !rules.redactedMembers.isEmpty, !content.isEmpty,
            (fields.first(.contentType) ?? "").prefix(while: { $0 != ";" }).lowercased().contains("json")
        else { return content }
        guard var tree = try? JSONReader.read(content, limits: TreeLimits(depth: 128, values: 1 << 20)) else {
            return nil
        }
        for path in rules.redactedMembers { tree = tree.changing(path[...]) { _ in .string(mark) } }
        return JSONWriter.bytes(tree)
    }
}
