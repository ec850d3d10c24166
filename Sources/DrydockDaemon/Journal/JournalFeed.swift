// The commands that read, follow and clear the journal, and that verify requests with it.

import HTTPWire
import ProxyServer
import ServiceCore
import Trees

/// Answers the commands about the journal.
///
/// Sendable: it has no mutable state of its own.
final class JournalFeed: DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var gauges: [Gauge] {
        let journal = context.parts.journal
        return [
            Gauge("drydock_journal_entries", "Entries of the journal.", read: { journal.extent.entries }),
            Gauge("drydock_journal_bytes", "Bytes of the journal.", read: { journal.extent.bytes }),
            Gauge("drydock_journal_limit_bytes", "The limit of drydock_journal_bytes.", read: { journal.extent.limit }),
            Gauge(
                "drydock_journal_dropped_entries",
                "Entries that made room for later ones since the journal was last cleared.",
                read: { Int(clamping: journal.extent.dropped) }
            ),
        ]
    }

    func journal(_ query: JournalQuery) async throws(Problem) -> AdminJournal {
        try known(query.service)
        let journal = try await recorded
        return await behind {
            var entries: [NumberedEntry] = []
            var cursor = journal.start
            while case let page = journal.page(&cursor), !page.isEmpty {
                entries += page.filter { query.admits($0.entry) }
                // A limit means the youngest entries.
                if let limit = query.limit, entries.count > limit { entries.removeFirst(entries.count - limit) }
            }
            let extent = journal.extent
            return AdminJournal(
                entries: entries.map { AdminJournalEntry($0) },
                bytes: extent.bytes,
                limit: extent.limit,
                dropped: extent.dropped
            )
        }
    }

    func follow(_ query: JournalQuery) async throws(Problem) -> JournalStream {
        try known(query.service)
        let journal = try journal
        let first = query.limit == 0 ? journal.end : journal.start
        if let reader = journal.follow(from: first) { return JournalStream(reader, query) }
        let isEnding = context.isStopping
        throw Problem(
            status: 503,
            title: isEnding ? "Ending" : "Too many readers",
            detail: isEnding
                ? "the daemon is ending, and records nothing any more"
                : "\(Journal.maximumReaders) follow the journal already; end one of them first"
        )
    }

    func clearJournal() async throws(Problem) -> AdminJournalCleared {
        AdminJournalCleared(entries: try await recorded.clear())
    }

    func verify(_ wanted: AdminVerification) async throws(Problem) -> AdminVerdict {
        try known(wanted.service)
        let journal = try await recorded
        let check = try JournalCheck(wanted, redacted: journal.settings.redacted, now: EventHub.wallTime())
        return await behind { check.run(journal) }
    }

    /// Checks the name of a service: a misspelt one would be taken for one without requests.
    /// - Throws: a 404 if there is no such service.
    private func known(_ service: String?) throws(Problem) {
        let plan = context.plan
        let names = plan.services.map(\.label) + (plan.forward.map { [$0.route.label] } ?? [])
        if let service, !names.contains(service) { throw .unknown(service: service, among: names) }
    }

    /// The journal, once every answer whose last byte has been sent is in it.
    /// - Throws: ``Problem/journalOff``.
    private var recorded: Journal {
        get async throws(Problem) {
            let journal = try journal
            await context.untilRecorded()
            return journal
        }
    }

    private var journal: Journal {
        get throws(Problem) {
            let journal = context.parts.journal
            guard journal.isOn else { throw .journalOff }
            return journal
        }
    }

    /// Runs `read` in a task of its own, off the loop.
    private func behind<Value: Sendable>(_ read: @escaping @Sendable () -> Value) async -> Value {
        await Task.detached { read() }.value
    }
}

/// The query of `GET /v1/journal`: which entries are asked for.
struct JournalQuery: Sendable, Equatable {
    /// The name of the service whose entries are asked for; nil for all services.
    var service: String?
    /// The largest number of entries, of which the youngest are taken; nil for all.
    var limit: Int?
    /// True if new entries follow until the client leaves.
    var follows = false

    init() {}

    /// Parses `service=`, `limit=` and `follow`, each at most once.
    /// - Throws: a 400 that names the mistake.
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

    func admits(_ entry: JournalEntry) -> Bool { service == nil || service == entry.service }
}

extension JournalFeed {
    var routes: [AdminRoute] {
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
    /// Refuses unknown members: if they were ignored, every request would match the question.
    static func check(_ body: [UInt8]) throws(Problem) {
        let known = [
            "method", "path", "query", "fields", "body_json", "body_contains", "service", "endpoint", "since", "times",
            "at_least", "at_most",
        ]
        // A body that is not JSON is refused later, when it is decoded.
        guard let members = (try? JSONReader.read(body))?.members else { return }
        if let unknown = members.first(where: { !known.contains($0.name) }) {
            throw .badQuery("'\(unknown.name)' is not known; there are \(known.joined(separator: ", "))")
        }
    }
}

/// An answer of JSON lines: the entries that are in the journal, then each new one.
struct JournalStream: AdminStream {
    private let reader: JournalReader
    private let query: JournalQuery

    init(_ reader: JournalReader, _ query: JournalQuery) {
        self.reader = reader
        self.query = query
    }

    func next() async -> [UInt8]? {
        while let entries = await reader.next() {
            var lines: [UInt8] = []
            for numbered in entries where query.admits(numbered.entry) {
                lines += (try? AdminJSON.encode(AdminJournalEntry(numbered))) ?? []
            }
            if !lines.isEmpty { return lines }
        }
        return nil
    }

    func close() { reader.close() }
}

extension Problem {
    /// The refusal of commands about the journal while none is kept.
    static let journalOff = Problem(
        status: 409,
        title: "Journal off",
        detail: "the configuration keeps no journal; write journal: 16MiB, and reload"
    )
}

extension AdminJournalEntry {
    init(_ numbered: NumberedEntry) {
        let entry = numbered.entry
        self.init(
            number: numbered.number,
            time: EventLine.time(entry.time),
            method: entry.method,
            target: entry.target,
            fields: entry.fields.map { Field(name: $0.name, value: $0.value) },
            status: entry.status,
            source: entry.source,
            durationMs: Double(entry.duration / 1000) / 1000
        )
        func said(_ text: String) -> String? { text.isEmpty ? nil : text }
        (service, endpoint) = (said(entry.service), said(entry.endpoint))
        (cacheStatus, demo) = (said(entry.cacheStatus), said(entry.demo))
        violations = said(entry.violations)
        isBodyCut = entry.isBodyCut ? true : nil
        isAborted = entry.isAborted ? true : nil
        guard !entry.body.isEmpty else { return }
        // A cut body may end within a character, which is left out then.
        let text = entry.isBodyCut ? entry.body.withoutPartialCharacter : entry.body[...]
        body = String(validating: text, as: UTF8.self)
        if body == nil { bodyBase64 = Base64.encode(entry.body) }
    }
}

extension [UInt8] {
    /// The bytes without an incomplete UTF-8 character at their end.
    fileprivate var withoutPartialCharacter: ArraySlice<UInt8> {
        for length in 1...3 where length <= count {
            let byte = self[count - length]
            if byte & 0xC0 == 0x80 { continue }
            let needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return needed > length ? dropLast(length) : self[...]
        }
        return self[...]
    }
}

// MARK: - Documents

/// The document of `GET /v1/journal`.
package struct AdminJournal: Codable, Sendable, Equatable {
    /// The entries that were asked for, the oldest first.
    package var entries: [AdminJournalEntry]
    /// The number of bytes of all entries, those that were not asked for included.
    package var bytes: Int
    /// The largest number of bytes that the journal may have.
    package var limit: Int
    /// The number of entries that made room for later ones since the journal was last cleared.
    package var dropped: UInt64
}

/// A request and its answer; a line of `GET /v1/journal?follow`. Members without a value are nil.
package struct AdminJournalEntry: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String
    }

    package var number: UInt64
    /// The time at which the request came, such as `2026-01-31T12:00:00.123Z`.
    package var time: String
    package var method: String
    /// The request target without the secrets of the configuration.
    package var target: String
    package var service: String?
    package var endpoint: String?
    /// The fields of the request; `***` stands for a hidden value.
    package var fields: [Field]
    /// The beginning of the request's body, if it is UTF-8.
    package var body: String?
    /// The beginning of the request's body in base64, if it is not UTF-8.
    package var bodyBase64: String?
    /// True if the body was longer, or was not read to its end.
    package var isBodyCut: Bool?
    package var status: Int
    /// The source of the answer: `demo`, `hit`, `miss` and so on.
    package var source: String
    package var cacheStatus: String?
    /// The value of Drydock-Demo in the answer.
    package var demo: String?
    /// The violations of the service's OpenAPI document by the request.
    package var violations: String?
    /// Milliseconds from the request's complete head to the last byte of the answer.
    package var durationMs: Double
    /// True if the answer did not reach the client as a whole.
    package var isAborted: Bool?
}

/// The answer of `DELETE /v1/journal`.
package struct AdminJournalCleared: Codable, Sendable, Equatable {
    /// The number of entries that were removed.
    package var entries: Int
}

/// The body of `POST /v1/verify`: conditions on requests, and the number of requests that is expected; at least one
/// without a number.
package struct AdminVerification: Codable, Sendable, Equatable {
    package var method: String?
    /// The path of the target without its query; `*` stands for any characters.
    package var path: String?
    /// The items that the query has to have, decoded; it may have others.
    package var query: [Item]?
    /// The fields that the request has to have; it may have others.
    package var fields: [Item]?
    /// A JSON text whose members the body has to have; it may have others.
    package var bodyJson: String?
    package var bodyContains: String?
    package var service: String?
    package var endpoint: String?
    /// The time span in which requests count, such as `5m` before now; nil for the whole journal.
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
    /// An entry that nearly meets the conditions, or is one too many.
    package struct Near: Codable, Sendable, Equatable {
        package var entry: AdminJournalEntry
        /// The differences in words; empty for an entry that meets the conditions.
        package var differences: [String]
    }

    /// True if the number of requests is as expected.
    package var isMet: Bool
    /// The number of requests that meet the conditions.
    package var count: Int
    /// The expectation in words, such as `exactly 2`.
    package var expected: String
    /// The reason why the number is not as expected, or is not certain; nil if it is as expected.
    package var reason: String?
    /// The closest entries if the number is not as expected, three at most.
    package var closest: [Near]
}
