// The journal of requests, and what is verified by it.

/// `GET /v1/journal`.
package struct AdminJournal: Codable, Sendable, Equatable {
    /// The oldest first.
    package var entries: [AdminJournalEntry]
    /// Bytes of all entries, those that were not asked for included.
    package var bytes: Int
    /// What `bytes` is at most.
    package var limit: Int
    /// Entries that made room for later ones since the journal was last cleared.
    package var dropped: UInt64

    package init(entries: [AdminJournalEntry], bytes: Int, limit: Int, dropped: UInt64) {
        self.entries = entries
        self.bytes = bytes
        self.limit = limit
        self.dropped = dropped
    }
}

/// A request and its answer; a line of `GET /v1/journal?follow`. A member that says nothing is nil.
package struct AdminJournalEntry: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var number: UInt64
    /// When the request came, such as `2026-01-31T12:00:00.123Z`.
    package var time: String
    package var method: String
    /// Without the secrets of the configuration.
    package var target: String
    package var service: String?
    package var endpoint: String?
    /// Of the request; `***` stands for a value that is hidden.
    package var fields: [Field]
    /// The beginning of the request's body, where it is UTF-8.
    package var body: String?
    /// The same in base64, where it is not.
    package var bodyBase64: String?
    /// There was more of the body, or it was not read to its end.
    package var isBodyCut: Bool?
    package var status: Int
    /// What answered: `demo`, `hit`, `miss` and so on.
    package var source: String
    package var cacheStatus: String?
    /// The value of Drydock-Demo.
    package var demo: String?
    /// What is wrong with the request, by the document of OpenAPI of its service.
    package var violations: String?
    /// Milliseconds to the last byte of the answer.
    package var durationMs: Double
    /// The answer did not reach the client as a whole.
    package var isAborted: Bool?

    package init(
        number: UInt64,
        time: String,
        method: String,
        target: String,
        fields: [Field],
        status: Int,
        source: String,
        durationMs: Double
    ) {
        self.number = number
        self.time = time
        self.method = method
        self.target = target
        self.fields = fields
        self.status = status
        self.source = source
        self.durationMs = durationMs
    }
}

/// `DELETE /v1/journal`.
package struct AdminJournalCleared: Codable, Sendable, Equatable {
    /// Entries that are gone.
    package var entries: Int

    package init(entries: Int) { self.entries = entries }
}

/// The body of `POST /v1/verify`: which requests are meant, and how many are expected. Without a number, at least one is.
package struct AdminVerification: Codable, Sendable, Equatable {
    package var method: String?
    /// Of the target, without a query; `*` stands for any characters.
    package var path: String?
    /// Items that the query has, decoded; it may have others.
    package var query: [Item]?
    /// Fields that the request has.
    package var fields: [Item]?
    /// A JSON text: the members that it has are those of the body, which may have others.
    package var bodyJson: String?
    package var bodyContains: String?
    package var service: String?
    package var endpoint: String?
    /// How far back, such as `5m`; nil: as far as the journal goes.
    package var since: String?
    package var times: Int?
    package var atLeast: Int?
    package var atMost: Int?

    package struct Item: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init() {}
}

/// The answer of `POST /v1/verify`.
package struct AdminVerdict: Codable, Sendable, Equatable {
    /// An entry that is like those that were meant.
    package struct Near: Codable, Sendable, Equatable {
        package var entry: AdminJournalEntry
        /// What is different, in words; empty for one that was meant.
        package var differences: [String]

        package init(entry: AdminJournalEntry, differences: [String]) {
            self.entry = entry
            self.differences = differences
        }
    }

    /// It is as expected.
    package var isMet: Bool
    /// Requests that were meant.
    package var count: Int
    /// What was expected, in words: `exactly 2`.
    package var expected: String
    /// Why it is not as expected, or cannot be known.
    package var reason: String?
    /// Where it is not as expected: what came closest, at most three.
    package var closest: [Near]

    package init(isMet: Bool, count: Int, expected: String, reason: String?, closest: [Near]) {
        self.isMet = isMet
        self.count = count
        self.expected = expected
        self.reason = reason
        self.closest = closest
    }
}
