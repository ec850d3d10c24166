// What a route answers while there is nothing yet, and what when there will be nothing; and what its bodies must be.

internal import CacheStore
package import Content
internal import HTTPWire

/// A file that answers in place of what is not there.
package final class StandIn: Sendable, Equatable {
    /// Of the file, for messages.
    package let path: String
    package let status: Int
    let body: Body
    private let fields: Fields
    private let bytes: [UInt8]

    /// - Parameters:
    ///   - bytes: the file's content, held in memory.
    ///   - contentType: the value of Content-Type.
    package init(path: String, status: Int, bytes: [UInt8], contentType: String) {
        self.path = path
        self.status = status
        self.bytes = bytes
        body = .complete(bytes)
        // Nobody behind this proxy may keep it either (RFC 9111 section 5.2.2.5).
        fields = Fields([("Content-Type", contentType), ("Cache-Control", "no-store")])
    }

    var head: ResponseHead { ResponseHead(status: status, fields: fields) }

    package static func == (left: StandIn, right: StandIn) -> Bool {
        left === right || left.status == right.status && left.bytes == right.bytes && left.fields == right.fields
    }
}

/// What a route answers before, instead of and after a look at the origin's answer. A route without it has none.
package struct PhasePlan: Sendable, Equatable {
    /// Answers where nothing is stored and the origin takes longer than ``patience``.
    package var placeholder: StandIn?
    /// Nanoseconds until the placeholder answers.
    package var patience: UInt64
    /// Answers where the fetch fails and nothing stored may serve.
    package var fallback: StandIn?
    /// What is not this is passed on and not stored.
    package var expect: ContentExpectation

    /// - Parameter patience: in nanoseconds; 300 ms by default.
    package init(
        placeholder: StandIn? = nil,
        patience: UInt64 = 300_000_000,
        fallback: StandIn? = nil,
        expect: ContentExpectation = .any
    ) {
        self.placeholder = placeholder
        self.patience = patience
        self.fallback = fallback
        self.expect = expect
    }

    /// Nothing of it changes anything.
    package var isEmpty: Bool { placeholder == nil && fallback == nil && expect == .any }
}
