// A representation that is at hand as a whole, as an origin has it, and what the conditions of a request count for there
// (RFC 9110 section 13.2.2).

package import HTTPCaching
package import HTTPWire

/// A response that is answered with, and is not stored.
package struct OwnRepresentation: Sendable {
    /// Its head as the rules of conditions and ranges take it.
    package let head: StoredHead

    /// - Parameters:
    ///   - head: of the answer with all of it.
    ///   - length: bytes of its body; nil where nobody knows.
    ///   - now: Unix seconds.
    package init(_ head: ResponseHead, length: Int64?, now: Int64) {
        var fields = head.fields
        // Last-Modified is a strong validator only beside a later Date (RFC 9110 section 8.8.2.2).
        if !fields.contains(.date) { fields.append(.date, HTTPDate.format(now)) }
        // As it is: nothing of it is stored.
        self.head = StoredHead(
            status: head.status,
            reason: head.reason,
            fields: fields,
            requestTime: now,
            responseTime: now,
            validatedAt: now,
            initialAge: 0,
            varyFields: Fields(),
            varyNames: [],
            bodyLength: length,
            requestMethod: .get,
            hadAuthorization: false
        )
    }

    /// The request with the conditions that count here; nil where one of its preconditions does not hold, which is a 412.
    package func judged(_ request: RequestHead) -> RequestHead? {
        guard Caching.meetsPreconditions(request: request, stored: head) else { return nil }
        var request = request
        // Without Last-Modified a date is compared with nothing.
        if !head.fields.contains(.lastModified) { request.fields.remove(.ifModifiedSince) }
        return request
    }
}
