// What an origin said of a document that is stored mapped: its validators and its length, which only checks use.

package import HTTPWire

/// Beside the head of a mapped document, whose own fields say nothing of the origin's bytes.
package struct MappedOrigin: Sendable, Equatable {
    /// Of the mapping that made the document.
    package var digest: String
    /// The origin's ETag and Last-Modified, as far as it sent them.
    package var fields: Fields
    /// The origin's length in bytes; nil where it said none.
    package var length: Int64?

    package init(digest: String, fields: Fields, length: Int64?) {
        self.digest = digest
        self.fields = fields
        self.length = length
    }

    /// The names of fields that are digests of an origin's bytes (RFC 9530, RFC 3230, RFC 1864).
    package static let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]

    private static let digestName = "Drydock-Mapped"
    private static let tagName = "Drydock-Mapped-ETag"
    private static let dateName = "Drydock-Mapped-Last-Modified"
    private static let lengthName = "Drydock-Mapped-Length"

    /// Writes it into a head on its way from a source to what stores it; no client sees these lines.
    package func write(into head: inout Fields) {
        Self.remove(from: &head)
        head.append(Self.digestName, digest)
        if let tag = fields.first(.etag) { head.append(Self.tagName, tag) }
        if let date = fields.first(.lastModified) { head.append(Self.dateName, date) }
        if let length { head.append(Self.lengthName, String(length)) }
    }

    /// Reads what ``write(into:)`` wrote; nil where it wrote nothing.
    init?(_ head: Fields) {
        guard let digest = head.first(Self.digestName) else { return nil }
        self.init(digest: digest, fields: Fields(), length: head.first(Self.lengthName).flatMap { Int64($0) })
        if let tag = head.first(Self.tagName) { fields.append(.etag, tag) }
        if let date = head.first(Self.dateName) { fields.append(.lastModified, date) }
    }

    package static func remove(from head: inout Fields) {
        for name in [digestName, tagName, dateName, lengthName] { head.remove(name) }
    }

    /// The validators, with what the answer to a check says of them.
    func updated(by answer: Fields) -> MappedOrigin {
        var result = self
        for field in [KnownField.etag, .lastModified] {
            if let value = answer.first(field) { result.fields.set(field, value) }
        }
        return result
    }
}
