// `/v1/journal` and `/v1/verify`: what was asked, and whether it was asked so often.

package import AdminAPI
import Content
import HTTPWire

/// Which entries of the journal are wanted.
package struct JournalQuery: Sendable, Equatable {
    /// Nil: of all services.
    package var service: String?
    /// The youngest of them, at most so many; nil: all.
    package var limit: Int?
    /// What is recorded from now on follows, until the client leaves.
    package var follows = false

    package init() {}

    /// `service=`, `limit=` and `follow`, each at most once.
    init(members: [(name: String, value: String)]) throws(Problem) {
        for (name, value) in members {
            switch name {
            case "service" where !value.isEmpty && service == nil: service = value
            case "limit" where limit == nil:
                guard let number = Int(value), number >= 0 else {
                    throw .badQuery("limit is \(value); give a number of entries")
                }
                limit = number
            case "follow" where value.isEmpty: follows = true
            default: throw .badQuery("give service=NAME, limit=NUMBER and follow, each at most once")
            }
        }
        if follows, limit ?? 0 != 0 { throw .badQuery("with follow, limit is 0, or left out") }
    }

    package func admits(_ entry: JournalEntry) -> Bool { service == nil || service == entry.service }
}

/// Implemented where the daemon is put together.
package protocol JournalActions: Sendable {
    /// - Throws: a 409 where no journal is kept.
    func journal(_ query: JournalQuery) async throws(Problem) -> AdminJournal
    /// Begins to follow the journal: from its oldest entry, or behind its youngest where the limit is 0.
    /// - Throws: a 409 where no journal is kept, a 503 where too many follow it, or the daemon is ending.
    func follow(_ query: JournalQuery) async throws(Problem) -> JournalStream
    /// - Throws: a 409 where no journal is kept.
    func clearJournal() async throws(Problem) -> AdminJournalCleared
    /// - Throws: a 400 where the question is not understood, a 409 where no journal is kept.
    func verify(_ wanted: AdminVerification) async throws(Problem) -> AdminVerdict
}

extension JournalActions {
    package var journalRoutes: [AdminRoute] {
        [
            AdminRoute(.get, .journal) { request async throws(Problem) in
                let query = try JournalQuery(members: request.queryItems)
                guard query.follows else { return try await .jsonBehind(await self.journal(query)) }
                var answer = AdminAnswer(type: "application/jsonl", body: [])
                answer.stream = try await self.follow(query)
                return answer
            },
            AdminRoute(.delete, .journal) { request async throws(Problem) in
                guard request.queryItems.isEmpty else { throw .badQuery("the journal is cleared as a whole") }
                return try .json(await self.clearJournal())
            },
            AdminRoute(.post, .verify, bodyLimit: 1 << 20) { request async throws(Problem) in
                try VerificationMembers.check(request.body)
                return try .json(await self.verify(try request.decode(AdminVerification.self)))
            },
        ]
    }
}

private enum VerificationMembers {
    /// A member that is not understood would make a question that everything answers.
    static func check(_ body: [UInt8]) throws(Problem) {
        let known = [
            "method", "path", "query", "fields", "body_json", "body_contains", "service", "endpoint", "since", "times",
            "at_least", "at_most",
        ]
        // What is no JSON at all is refused when it is decoded.
        guard let members = (try? JSONReader.read(body))?.members else { return }
        if let unknown = members.first(where: { !known.contains($0.name) }) {
            throw .badQuery("'\(unknown.name)' is not known; there are \(known.joined(separator: ", "))")
        }
    }
}

/// Entries as JSON lines: those that were there, then those that come.
package struct JournalStream: AdminStream {
    private let reader: JournalReader
    private let query: JournalQuery

    package init(_ reader: JournalReader, _ query: JournalQuery) {
        self.reader = reader
        self.query = query
    }

    package func next() async -> [UInt8]? {
        while let entries = await reader.next() {
            var lines: [UInt8] = []
            for numbered in entries where query.admits(numbered.entry) {
                lines += (try? AdminJSON.encode(AdminJournalEntry(numbered))) ?? []
            }
            if !lines.isEmpty { return lines }
        }
        return nil
    }

    package func close() { reader.close() }
}

extension Problem {
    /// No journal is kept.
    package static let journalOff = Problem(
        status: 409,
        title: "Journal off",
        detail: "the configuration keeps no journal; write journal: 16MiB, and reload"
    )
}
