// The calls that wait for an origin that is away, and what an operator did with them.

/// `GET /v1/parked`. Times are whole seconds, sizes bytes.
package struct AdminParked: Codable, Sendable, Equatable {
    package struct Call: Codable, Sendable, Equatable {
        package var id: UInt64
        package var service: String
        package var method: String
        /// As the client wrote it, without its query.
        package var path: String
        /// `parked` or `replaying`.
        package var state: String
        /// Of head and content.
        package var size: Int
        /// Since it was parked first.
        package var waited: Int
        /// Until it gets its 504.
        package var left: Int
        /// How often it was tried again.
        package var replays: Int
        /// Why it could not be answered the last time.
        package var reason: String

        package init(
            id: UInt64,
            service: String,
            method: String,
            path: String,
            state: String,
            size: Int,
            waited: Int,
            left: Int,
            replays: Int,
            reason: String
        ) {
            self.id = id
            self.service = service
            self.method = method
            self.path = path
            self.state = state
            self.size = size
            self.waited = waited
            self.left = left
            self.replays = replays
            self.reason = reason
        }
    }

    /// In the order in which they came.
    package var calls: [Call]

    package init(calls: [Call]) { self.calls = calls }
}

/// `POST /v1/parked/replay` and `/v1/parked/cancel`.
package struct AdminParkedOrder: Codable, Sendable, Equatable {
    /// Calls that were held, and are tried again or have ended.
    package var calls: Int

    package init(calls: Int) { self.calls = calls }
}
