// A request for a demo collection and its answer, as values.

package import HTTPWire

/// A request, without its connection.
package struct CollectionRequest: Sendable {
    package var method: String
    /// What follows the service's prefix, with the query.
    package var target: String
    /// The service's prefix, which `Location` and `Link` begin with.
    package var prefix: String
    /// The value of If-Match; nil without one.
    package var ifMatch: String?
    package var body: [UInt8]
    /// The random bits that a new id is made of.
    package var bits: UInt64

    package init(
        method: String,
        target: String,
        prefix: String = "",
        ifMatch: String? = nil,
        body: [UInt8] = [],
        bits: UInt64 = 0
    ) {
        self.method = method
        self.target = target
        self.prefix = prefix
        self.ifMatch = ifMatch
        self.body = body
        self.bits = bits
    }
}

/// What a collection answers.
package struct CollectionAnswer: Sendable {
    package var status: Int
    package var fields: Fields
    package var body: [UInt8]

    init(_ status: Int, _ fields: Fields, _ body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// Why a collection does not do what it is asked, as a problem document (RFC 9457).
struct CollectionRefusal: Error, Equatable {
    let status: Int
    let title: String
    let detail: String
    var fields: [String] = []

    init(_ status: Int, _ title: String, _ detail: String) {
        self.status = status
        self.title = title
        self.detail = detail
    }
}
