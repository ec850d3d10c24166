// The answers to an operator's orders: a switch, ended fetches, purges and pins.

/// `POST /v1/offline`.
package struct AdminOffline: Codable, Sendable, Equatable {
    /// No origin is asked.
    package var isOffline: Bool

    package init(isOffline: Bool) { self.isOffline = isOffline }
}

/// `POST /v1/cancel`: what was ended.
package struct AdminCancelled: Codable, Sendable, Equatable {
    package var fetches: Int
    /// Requests that waited for them or read their bodies.
    package var waiters: Int

    package init(fetches: Int, waiters: Int) {
        self.fetches = fetches
        self.waiters = waiters
    }
}

/// `DELETE /v1/entries`.
package struct AdminPurge: Codable, Sendable, Equatable {
    /// Stored responses that are gone, or stale.
    package var purged: Int
    /// The responses are stale, and not removed.
    package var isSoft: Bool

    package init(purged: Int, isSoft: Bool) {
        self.purged = purged
        self.isSoft = isSoft
    }
}

/// `PUT` and `DELETE /v1/pins`.
package struct AdminPin: Codable, Sendable, Equatable {
    /// As stored responses are listed.
    package var url: String
    package var isPinned: Bool
    /// False where it was so before.
    package var isChanged: Bool

    package init(url: String, isPinned: Bool, isChanged: Bool) {
        self.url = url
        self.isPinned = isPinned
        self.isChanged = isChanged
    }
}

/// `GET /v1/pins`.
package struct AdminPins: Codable, Sendable, Equatable {
    /// In the order of their bytes.
    package var urls: [String]

    package init(urls: [String]) { self.urls = urls }
}
