// A tier for tests that several stores share: it can be slow, out of reach, and cut off in the middle of a commit.

import EventLoop
import HTTPCaching
import Synchronization

@testable import CacheStore

/// What the stores share. It keeps records in their encoding, as a server on the other end of a wire would.
///
/// Sendable: its state is under a mutex.
final class SharedServer: Sendable {
    struct Entry: Sendable {
        let record: [UInt8]
        let body: [UInt8]
        /// Which its store knew when the fetch or check behind it began.
        let moment: UInt64
        /// In the order of that store.
        let number: UInt64

        func isLater(than moment: UInt64, _ number: UInt64) -> Bool { (self.moment, self.number) > (moment, number) }
    }

    struct State {
        var moment: UInt64 = 0
        /// By the key and the variant.
        var entries: [CacheKey: [[UInt8]: Entry]] = [:]
        var invalidatedKeys: [CacheKey: UInt64] = [:]
        var invalidatedRules: [InvalidationRule: UInt64] = [:]
        var purges: [(rule: PurgeRule, moment: UInt64)] = []
        var listeners: [(owner: ObjectIdentifier, heard: @Sendable (TierNews) -> Void)] = []

        mutating func next() -> UInt64 {
            moment += 1
            return moment
        }

        /// Whether something that concerns a response was invalidated after a moment.
        func isInvalidated(_ key: CacheKey, _ head: StoredHead, after moment: UInt64) -> Bool {
            let subject = Self.subject(key, head)
            let names = subject.names + [.url(of: key)]
            return invalidatedKeys[key] ?? 0 > moment || names.contains { invalidatedRules[$0] ?? 0 > moment }
                || purges.contains { $0.moment > moment && $0.rule.concerns(subject) }
        }

        static func subject(_ key: CacheKey, _ head: StoredHead) -> RuleSubject {
            RuleSubject(
                key: key,
                names: InvalidationRule.concerning(head, key),
                arrivedAt: head.responseTime,
                isPinned: { false }
            )
        }

        /// - Returns: how many have gone.
        mutating func removeAll(where isGone: (CacheKey, StoredHead) -> Bool) -> Int {
            var count = 0
            for (key, variants) in entries {
                let left = variants.filter { _, entry in
                    StoredRecord(decoding: entry.record).map { !isGone(key, $0.head) } ?? false
                }
                count += variants.count - left.count
                entries[key] = left
            }
            return count
        }
    }

    let state = Mutex(State())

    /// Texts of the bodies that are stored under a key.
    func bodies(_ key: CacheKey) -> [String] {
        state.withLock { ($0.entries[key] ?? [:]).values.map { String(decoding: $0.body, as: UTF8.self) } }
    }

    /// Changes one byte of every body.
    func damage() {
        state.withLock { state in
            for (key, variants) in state.entries {
                state.entries[key] = variants.mapValues { entry in
                    var body = entry.body
                    if !body.isEmpty { body[0] ^= 1 }
                    return Entry(record: entry.record, body: body, moment: entry.moment, number: entry.number)
                }
            }
        }
    }

    func tell(_ news: TierNews, from owner: AnyObject) {
        let listeners = state.withLock { $0.listeners.filter { $0.owner != ObjectIdentifier(owner) } }
        for listener in listeners { listener.heard(news) }
    }
}

/// One store's way to the server.
///
/// Sendable: its state is under a mutex.
final class SharedTier: ResponseTier {
    private struct State {
        var isDown = false
        /// Bodies are out of reach, heads are not.
        var losesBodies = false
        var findGate: Valve?
        var commitGate: Valve?
        /// What could not be removed while the server was out of reach.
        var owed: [@Sendable (inout SharedServer.State) -> Void] = []
        var statistics = TierStatistics()
        var tells = true
    }

    let server: SharedServer
    private let state = Mutex(State())
    let name = StoreTier.shared
    let isShared = true

    init(_ server: SharedServer, hearsNews: Bool = true) {
        self.server = server
        state.withLock { $0.tells = hearsNews }
    }

    var statistics: TierStatistics { state.withLock { $0.statistics } }
    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }
    var losesBodies: Bool {
        get { state.withLock { $0.losesBodies } }
        set { state.withLock { $0.losesBodies = newValue } }
    }
    /// What is asked waits until it is open, after the server has answered.
    var findGate: Valve? {
        get { state.withLock { $0.findGate } }
        set { state.withLock { $0.findGate = newValue } }
    }
    /// What is stored waits until it is open, before the server has it.
    var commitGate: Valve? {
        get { state.withLock { $0.commitGate } }
        set { state.withLock { $0.commitGate = newValue } }
    }

    /// Runs one command on the server, after what is owed to it.
    private func run<R: Sendable>(
        _ command: (inout SharedServer.State) throws(TierError) -> R
    ) throws(TierError) -> R {
        let (isDown, owed) = state.withLock { state in
            defer { if !state.isDown { state.owed = [] } }
            return (state.isDown, state.owed)
        }
        if isDown { throw .unavailable("the server is out of reach") }
        return try server.state.withLock { server throws(TierError) in
            for command in owed { command(&server) }
            return try command(&server)
        }
    }

    private static func wait(_ gate: Valve?) async {
        guard let gate else { return }
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            if !gate.whenOpen({ continuation.resume() }) { continuation.resume() }
        }
    }

    // MARK: - Finding

    func find(_ question: TierQuestion) async throws(TierError) -> TierAnswer {
        let known = question.heads.map { Caching.variantKey($0) }
        let (entries, moment) = try run { server throws(TierError) in
            ((server.entries[question.key] ?? [:]).filter { !known.contains($0.key) }.map(\.value), server.next())
        }
        await Self.wait(findGate)
        let findings = entries.compactMap { entry in
            StoredRecord(decoding: entry.record).map { TierFinding(question.key, $0.head, number: $0.fileID) }
        }
        state.withLock { state in
            if findings.isEmpty { state.statistics.misses += 1 } else { state.statistics.hits += 1 }
        }
        return TierAnswer(findings.sorted { $0.head.responseTime > $1.head.responseTime }, moment: moment)
    }

    func open(_ finding: TierFinding, _ question: TierQuestion) async throws(TierError) -> StoredResponse {
        if losesBodies { throw .unavailable("the server is out of reach") }
        let entry = try run { server throws(TierError) in
            server.entries[finding.key]?[Caching.variantKey(finding.head)]
        }
        guard let entry, let record = StoredRecord(decoding: entry.record) else { throw .absent }
        let chunk = Chunk(entry.body)
        guard record.describes(chunk) else { throw .damaged }
        return StoredResponse(
            key: finding.key,
            head: record.head,
            body: .complete(chunk),
            tier: .shared,
            via: nil,
            policy: question.policy
        )
    }

    // MARK: - Changing

    func commit(_ commit: TierCommit) async throws(TierError) {
        guard let chunk = commit.body.inMemory()?.wholeChunk else { throw .refused(.abandoned) }
        await Self.wait(commitGate)
        let (key, number) = (commit.key, commit.token.number)
        let record = StoredRecord(key, commit.head, number: number, body: chunk).encode()
        let entry = SharedServer.Entry(
            record: record,
            body: chunk.array(0..<chunk.capacity),
            moment: commit.moment,
            number: number
        )
        let variant = Caching.variantKey(commit.head)
        try run { server throws(TierError) in
            if server.isInvalidated(key, commit.head, after: commit.moment) { throw .invalidated }
            if server.entries[key]?[variant]?.isLater(than: commit.moment, number) == true { throw .outdated }
            _ = server.next()
            server.entries[key, default: [:]][variant] = entry
        }
        state.withLock { $0.statistics.commits += 1 }
    }

    func remove(_ response: TierReference) {
        let variant = Caching.variantKey(response.head)
        order { server in
            guard let entry = server.entries[response.key]?[variant],
                !entry.isLater(than: response.moment, response.number)
            else { return }
            _ = server.next()
            server.entries[response.key]?[variant] = nil
        }
    }

    func remove(_ key: CacheKey) {
        order { server in
            server.invalidatedKeys[key] = server.next()
            server.entries[key] = nil
        }
        server.tell(.keys([key]), from: self)
    }

    /// Carries an invalidation out, or owes it to the server.
    private func order(_ command: @escaping @Sendable (inout SharedServer.State) -> Void) {
        do throws(TierError) {
            try run { server throws(TierError) in command(&server) }
        } catch {
            state.withLock { $0.owed.append(command) }
        }
    }

    // MARK: - Invalidation

    func invalidate(_ rules: [InvalidationRule], number: UInt64) async {
        order { server in
            let moment = server.next()
            for rule in rules { server.invalidatedRules[rule] = moment }
            _ = server.removeAll { key, head in
                rules.contains(.url(of: key)) || InvalidationRule.concerning(head, key).contains(where: rules.contains)
            }
        }
        server.tell(.rules(rules), from: self)
    }

    func purge(_ rules: [PurgeRule], number: UInt64) async -> Int {
        let count = Count()
        order { server in
            let moment = server.next()
            server.purges += rules.map { ($0, moment) }
            let gone = server.removeAll { key, head in
                rules.contains { $0.concerns(SharedServer.State.subject(key, head)) }
            }
            count.value.withLock { $0 = gone }
        }
        server.tell(.everything, from: self)
        return count.value.withLock { $0 }
    }

    private final class Count: Sendable {
        let value = Mutex(0)
    }

    func listen(_ heard: @escaping @Sendable (TierNews) -> Void) {
        guard state.withLock({ $0.tells }) else { return }
        server.state.withLock { $0.listeners.append((ObjectIdentifier(self), heard)) }
    }

    // MARK: - Listing

    func list(_ query: ListQuery, pinned: [String], limit: Int) async throws -> (rows: [TierRow], end: String?) {
        let keys = try run { server throws(TierError) in server.entries.keys.filter { query.selects($0) } }
        return (keys.map { TierRow(name: "\($0.hash)", url: "\($0)") }, nil)
    }

    func heads(of rows: [TierRow]) async -> [TierListing] {
        let urls = Set(rows.map(\.url))
        let found = try? run { server throws(TierError) in
            server.entries.filter { urls.contains("\($0.key)") }.flatMap { $0.value.values }
        }
        return (found ?? []).compactMap { entry in
            StoredRecord(decoding: entry.record).map { record in
                let key = CacheKey(bytes: record.key)
                return TierListing(key, record.head, length: record.bodyLength, number: record.fileID)
            }
        }
    }
}
