// Lets an operator read the journal, and verify what was asked.

import AdminAPI
import ProxyServer
import ServiceCore

/// Sendable: it has no state of its own.
final class JournalFeed: JournalActions, DaemonFeature {
    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    var routes: [AdminRoute] { journalRoutes }

    var gauges: [Gauge] {
        let journal = context.parts.journal
        return [
            Gauge("drydock_journal_entries", "Entries of the journal.", read: { journal.extent.entries }),
            Gauge("drydock_journal_bytes", "Bytes of the journal.", read: { journal.extent.bytes }),
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
                // The youngest are wanted.
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

    /// - Throws: that there is no such service: whoever misspells one would take it for one that nobody has asked.
    private func known(_ service: String?) throws(Problem) {
        let plan = context.plan
        let names = plan.services.map(\.label) + (plan.forward.map { [$0.route.label] } ?? [])
        if let service, !names.contains(service) { throw .unknown(service: service, among: names) }
    }

    /// The journal with every answer whose last byte has left.
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

    /// Reads off the loop.
    private func behind<Value: Sendable>(_ read: @escaping @Sendable () -> Value) async -> Value {
        await Task.detached { read() }.value
    }
}
