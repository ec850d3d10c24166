// The answer of demo mode to a request that it cannot answer otherwise: a problem document.

import Content
package import HTTPWire

/// A problem document (RFC 9457) and its fields.
package struct DemoProblem: Sendable {
    package let fields = Fields([("Content-Type", "application/problem+json")])
    package let body: [UInt8]

    package init(_ status: Int, _ title: String, _ detail: String) {
        let document = ContentTree.object([
            ContentTree.Member("title", .string(title)), ContentTree.Member("status", .number(String(status))),
            ContentTree.Member("detail", .string(detail)),
        ])
        body = JSONWriter.bytes(document)
    }
}
