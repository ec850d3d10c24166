// A fetch that several requests may wait for: who waits, what came of it, and the table that finds it by key.

package import CacheStore
internal import EventLoop
package import HTTPCaching
package import HTTPWire
import Policies
import Synchronization

/// What a fill came to, as soon as that is known.
package enum FillOutcome: Sendable {
    /// A response is arriving.
    case streaming(FetchedResponse)
    /// The stored response was checked and is good; with the status of the check's answer, and whether what that has made of the
    /// stored head may be told others.
    case refreshed(StoredResponse, status: Int, isShared: Bool)
    /// The check or the fetch failed, and the stale stored response may be used.
    case stale(StoredResponse, cause: StaleCause)
    /// A part is arriving, or stored parts were checked and are good; with the head of the whole, as this request may see
    /// it, and the status of the answer.
    case part(Partial, StoredHead, status: Int)
    /// The check failed, and the stale stored parts may be used.
    case stalePart(Partial, cause: StaleCause)
    /// What is stored has changed: look again.
    case again
    /// What came is for one request alone, and not all of it: that request is passed on as it is, for the reason given.
    case alone(String?)
    /// Nothing came.
    case failed(FetchError)
}

/// Why a stale response is answered.
package enum StaleCause: Sendable {
    /// The origin answered with this status.
    case status(Int)
    /// The origin could not be asked.
    case error(FetchError)

    /// The status that the origin answered; nil where it did not.
    package var errorStatus: Int? {
        if case .status(let status) = self { status } else { nil }
    }
}

/// A response on its way.
package struct FetchedResponse: Sendable {
    /// End-to-end fields only.
    package let head: ResponseHead
    package let body: Body
    /// Whether it is being stored, and why or why not.
    package let decision: StoreDecision
    /// The head as it would be stored: what a request's conditions are held against.
    package let described: StoredHead
    /// The same where it is being stored, else nil.
    package var stored: StoredHead? { if case .store = decision { described } else { nil } }
    /// Why no tier takes the response although it may be stored; nil where one does, if all of it comes.
    package let keepRefusal: UnstoredReason?
    /// A stored response was checked before and found to be changed.
    package let replacesStale: Bool
    /// Why a 206 that is passed on is not stored.
    var partRefusal: String?
    /// Of the time when the fetch began, for what the head says.
    let token: GenerationToken
    /// Set when it is stored, or will never be, with the reason why no tier has it.
    var end: Latch<UnstoredReason?>?
    /// The status that the origin answered.
    package var status: Int { head.status }
}

/// One fill. Any loop.
final class SharedFetch: Sendable {
    let key: CacheKey
    /// The request that began it.
    let request: RequestHead
    /// Set as soon as it is known what the origin says.
    let outcome = Latch<FillOutcome>()
    /// Set when the last byte has come and what is to be stored is stored, or when the fill has failed; with the reason why no tier
    /// has what its head said would be stored.
    let end = Latch<UnstoredReason?>()
    private let waiting = Atomic<Int>(0)
    /// The request that began it waits for the outcome.
    private let led = Atomic<Bool>(false)
    /// It goes on although nobody waits: what it brings is for those who come later.
    private let wanted = Atomic<Bool>(false)
    /// Tells the loop of the fetch that a waiter has left.
    private let left = Mutex<(@Sendable () -> Void)?>(nil)
    /// Counted by the table, and not over yet.
    private let isRunning = Atomic<Bool>(true)

    fileprivate init(_ ask: CacheAsk) {
        key = ask.key
        request = ask.request
    }

    /// - Returns: false where it was over already.
    fileprivate func stop() -> Bool { isRunning.exchange(false, ordering: .relaxed) }

    /// Requests besides the leader's that wait for the outcome.
    var waiters: Int { waiting.load(ordering: .relaxed) }

    /// Whether `request` may be answered by what this fill brings, as far as anybody can tell (RFC 9111 section 4.1).
    /// - Parameter known: a stored response of the same key: what it varies by, the next one probably varies by, too.
    fileprivate func maySelect(_ request: RequestHead, known: StoredHead?) -> Bool {
        if case .streaming(let response)? = outcome.value {
            return response.stored.map { Caching.selects(stored: $0, request: request) } ?? true
        }
        guard var expected = known, !expected.varyNames.isEmpty else { return true }
        expected.varyFields = expected.selectingFields(of: self.request)
        return Caching.selects(stored: expected, request: request)
    }

    /// One more waits, if there may be one more; only under the table's mutex.
    fileprivate func enter(atMost limit: Int) -> Bool {
        guard waiters < limit else { return false }
        waiting.wrappingAdd(1, ordering: .relaxed)
        return true
    }

    /// One that the table counted as a waiter waits no longer; if it reads the body, it does so already.
    func leave() {
        let remaining = waiting.wrappingSubtract(1, ordering: .relaxed).newValue
        guard remaining == 0 else { return }
        if let outcome = outcome.value {
            // Nothing flows, or whoever reads it tells the writer by leaving.
            guard case .streaming(let response) = outcome, response.body.readerCount == 0 else { return }
        }
        left.withLock { $0 }?()
    }

    var isLed: Bool {
        get { led.load(ordering: .relaxed) }
        set { led.store(newValue, ordering: .relaxed) }
    }

    /// It goes on, whoever leaves.
    func want() { wanted.store(true, ordering: .relaxed) }

    var isWanted: Bool { wanted.load(ordering: .relaxed) }

    /// - Parameter action: called on any thread when the last waiter has left and nobody reads.
    func whenLeft(_ action: @escaping @Sendable () -> Void) { left.exchange(action) }

    /// Requests that wait for the outcome, or read what came of it.
    var audience: Int {
        guard let outcome = outcome.value else { return waiters + (isLed ? 1 : 0) }
        if case .streaming(let response) = outcome { return response.body.readerCount }
        return 0
    }
}

extension StoredHead {
    /// The lines of `request` that select this response.
    func selectingFields(of request: RequestHead) -> Fields {
        var fields = Fields()
        for name in varyNames {
            for value in request.fields.all(name) { _ = fields.append(name, value) }
        }
        return fields
    }
}

/// The fills under way, by key: one for each selection of request fields that is known to make a difference.
///
/// Sendable: sharded, each shard under its own mutex.
final class SharedFetchTable: Sendable {
    /// What joining came to.
    enum Place {
        /// A new fill: the caller runs it.
        case leader(SharedFetch)
        /// A fill that is under way; the caller calls ``SharedFetch/leave()`` when it has waited.
        case waiter(SharedFetch)
        /// The fill has as many waiters as it may have.
        case full
    }

    private final class Shard: Sendable {
        let fills = Mutex<[CacheKey: [SharedFetch]]>([:])
    }

    private let shards: [Shard] = (0..<16).map { _ in Shard() }
    private let underWay: UnderWay

    /// - Parameter underWay: counts the fills that are not over, whether or not they can be found.
    init(_ underWay: UnderWay) { self.underWay = underWay }

    private func make(_ ask: CacheAsk) -> SharedFetch {
        underWay.begin()
        return SharedFetch(ask)
    }

    private func shard(_ key: CacheKey) -> Shard { shards[Int(truncatingIfNeeded: key.hash & 15)] }

    /// Finds a fill whose answer may be this request's, or begins one.
    /// - Parameter known: a stored response of the same key, if there is one.
    func join(_ ask: CacheAsk, known: StoredHead?) -> Place {
        shard(ask.key).fills.withLock { fills in
            if let fill = fills[ask.key]?.first(where: { $0.maySelect(ask.request, known: known) }) {
                return fill.enter(atMost: ask.collapse.waiters) ? .waiter(fill) : .full
            }
            let fill = make(ask)
            fills[ask.key, default: []].append(fill)
            return .leader(fill)
        }
    }

    /// Begins a fill; nil where one is under way whose answer may be this request's.
    func lead(_ ask: CacheAsk, known: StoredHead?) -> SharedFetch? {
        shard(ask.key).fills.withLock { fills in
            if fills[ask.key]?.contains(where: { $0.maySelect(ask.request, known: known) }) == true { return nil }
            let fill = make(ask)
            fills[ask.key, default: []].append(fill)
            return fill
        }
    }

    /// Begins a fill that nobody else can find.
    func leadAlone(_ ask: CacheAsk) -> SharedFetch { make(ask) }

    /// Keeps later requests from joining the fills of a key; those that wait for them go on waiting.
    func forget(_ key: CacheKey) {
        let forgotten = shard(key).fills.withLock { $0.removeValue(forKey: key) }
        // Let go of without the mutex: a fill holds its body, and that its file.
        withExtendedLifetime(forgotten) {}
    }

    /// Takes a fill out for which nobody waits, so that nobody joins it any more; readers of its body do not count.
    /// - Returns: false where somebody waits, or where it goes on all the same.
    func giveUp(_ fill: SharedFetch) -> Bool {
        shard(fill.key).fills.withLock { fills in
            guard fill.waiters == 0, !fill.isLed, !fill.isWanted else { return false }
            Self.remove(fill, from: &fills)
            return true
        }
    }

    /// What the fill brought is stored, or will never be.
    func end(_ fill: SharedFetch) {
        remove(fill)
        if fill.stop() { underWay.end() }
    }

    /// Later requests do not find the fill any more.
    func remove(_ fill: SharedFetch) {
        shard(fill.key).fills.withLock { Self.remove(fill, from: &$0) }
    }

    private static func remove(_ fill: SharedFetch, from fills: inout [CacheKey: [SharedFetch]]) {
        guard var left = fills[fill.key] else { return }
        left.removeAll { $0 === fill }
        fills[fill.key] = left.isEmpty ? nil : left
    }

    /// Whether others can find the fill.
    func contains(_ fill: SharedFetch) -> Bool {
        shard(fill.key).fills.withLock { $0[fill.key]?.contains { $0 === fill } ?? false }
    }

    /// Fills of a key.
    func count(of key: CacheKey) -> Int { shard(key).fills.withLock { $0[key]?.count ?? 0 } }
}
