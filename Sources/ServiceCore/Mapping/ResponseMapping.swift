// The mapping of a route's answers: which, how much of a document is held, and how messages call it.

import HTTPCaching
import HTTPWire
package import Mapping

/// Sendable: a value.
package struct ResponseMapping: Sendable, Equatable {
    package let plan: MappingPlan
    /// Bytes: a document up to this length is mapped before its head is sent; of a longer one no element may be longer.
    package let buffer: Int
    /// Such as `endpoint 'users' of service 'people'`.
    package let owner: String

    package init(_ plan: MappingPlan, buffer: Int = 1 << 20, owner: String) {
        self.plan = plan
        self.buffer = buffer
        self.owner = owner
    }

    /// What a client is told of a document that cannot be mapped.
    package func message(_ failure: MappingFailure) -> String {
        "the answer for \(owner) cannot be mapped: \(failure); compare 'response.map' with what the origin sends"
    }

    /// The head of a mapped document.
    /// - Parameters:
    ///   - origin: the head that it came with.
    ///   - document: nil while it is not known as a whole.
    ///   - isStored: what the origin said stays beside it, for checks.
    func head(_ origin: ResponseHead, document: [UInt8]?, originLength: Int64?, isStored: Bool) -> ResponseHead {
        var head = origin
        var fields = origin.fields
        let said = MappedOrigin(digest: plan.digest, fields: Self.validators(origin.fields), length: originLength)
        Self.removeRepresentation(from: &fields)
        fields.set(.contentType, "application/json")
        if let tag = entityTag(said.fields, document) { fields.set(.etag, tag) }
        if let document { fields.set(.contentLength, String(document.count)) }
        if isStored { said.write(into: &fields) }
        head.fields = fields
        return head
    }

    /// The head of an answer that stays as it is, and is stored under the same mapping.
    func unmapped(_ origin: ResponseHead) -> ResponseHead {
        var head = origin
        let length = origin.fields.first(.contentLength).flatMap { Int64($0) }
        MappedOrigin(digest: plan.digest, fields: Self.validators(origin.fields), length: length)
            .write(into: &head.fields)
        return head
    }

    private static func validators(_ fields: Fields) -> Fields {
        var said = Fields()
        for field in [KnownField.etag, .lastModified] {
            if let value = fields.first(field) { said.append(field, value) }
        }
        return said
    }

    /// Removes what a head says of the origin's bytes, before other ones take their place.
    static func removeRepresentation(from fields: inout Fields) {
        for field in [
            KnownField.etag, .lastModified, .contentLength, .contentEncoding, .contentRange, .acceptRanges, .trailer,
        ] { fields.remove(field) }
        for name in MappedOrigin.digests { fields.remove(name) }
        withoutCoding(&fields)
    }

    /// The mapped document is the same whatever coding the client takes.
    private static func withoutCoding(_ fields: inout Fields) {
        guard let vary = fields.combined(.vary) else { return }
        let names = vary.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        let kept = names.filter { $0.lowercased() != "accept-encoding" && !$0.isEmpty }
        guard kept.count < names.count else { return }
        if kept.isEmpty { fields.remove(.vary) } else { fields.set(.vary, kept.joined(separator: ", ")) }
    }

    /// Of the document's bytes where they are known; else of what the origin's validators say, and weak where they do
    /// not name its bytes; nil where it has none.
    private func entityTag(_ said: Fields, _ document: [UInt8]?) -> String? {
        if let document {
            return ContentDigest.sha256.hex(document).map { "\"\($0.prefix(32))\"" }
        }
        let tag = said.first(.etag)
        guard let name = tag ?? said.first(.lastModified),
            let digest = ContentDigest.sha256.hex(Array("\(plan.digest) \(name)".utf8))
        else { return nil }
        let isStrong = tag.map { !$0.hasPrefix("W/") } ?? false
        return (isStrong ? "" : "W/") + "\"\(digest.prefix(32))\""
    }
}
