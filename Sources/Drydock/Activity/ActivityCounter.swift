// How much work is under way somewhere, for those who show that something is.

import Synchronization

/// Somebody whose work an ``ActivityStream`` follows: a ``DownloadManager``, a ``ServiceManager``, a
/// ``TaskQueue``, or a program's own.
public protocol ActivitySource: Sendable {
    /// Counts its work.
    var activity: ActivityCounter { get }
}

/// Counts work that is under way. Any thread may use it.
///
/// A program that does something which no manager and no queue knows counts it itself:
///
/// ```swift
/// let activity = ActivityCounter()
/// let image = await activity.during { await decode(data) }
/// ```
public final class ActivityCounter: Sendable, ActivitySource {
    private struct Listener {
        weak var bell: ActivityBell?
    }

    private struct State {
        var count = 0
        var beginnings: UInt64 = 0
        var listeners: [Listener] = []
    }

    /// Whom to tell that work began where there was none, or that the last one ended.
    struct Change: Sendable {
        fileprivate let bells: [ActivityBell]

        /// Rings; outside of every lock.
        func tell() { for bell in bells { bell.ring() } }
    }

    /// Protects what it holds; bells are rung outside of it.
    private let state = Mutex(State())

    /// A counter at zero.
    public init() {}

    /// Itself.
    public var activity: ActivityCounter { self }

    /// How much is under way.
    public var count: Int { state.withLock { $0.count } }

    /// Something begins; ``end()`` follows it, once.
    public func begin() { change(by: 1).tell() }

    /// Something has ended that ``begin()`` has told of. Without that, nothing happens.
    public func end() { change(by: -1).tell() }

    /// Counts one thing while it is done.
    public func during<Value, Failure>(_ work: () async throws(Failure) -> Value) async throws(Failure) -> Value {
        begin()
        defer { end() }
        return try await work()
    }

    /// Counts; it may be called under a lock, so that the order is that of what happened.
    func change(by difference: Int) -> Change {
        let bells = state.withLock { state -> [ActivityBell] in
            let old = state.count
            state.count = max(0, old + difference)
            guard (old == 0) != (state.count == 0) else { return [] }
            if old == 0 { state.beginnings += 1 }
            return state.listeners.compactMap(\.bell)
        }
        return Change(bells: bells)
    }

    /// Whether something is under way, and how often something began where there was nothing.
    var look: (isBusy: Bool, beginnings: UInt64) { state.withLock { ($0.count > 0, $0.beginnings) } }

    /// Rings at every change, as long as somebody holds the bell.
    func listen(_ bell: ActivityBell) {
        state.withLock { state in
            state.listeners.removeAll { $0.bell == nil }
            state.listeners.append(Listener(bell: bell))
        }
    }
}

/// Wakes one who looks at counters, or whose time has come.
///
/// Sendable: it is a stream and its continuation.
final class ActivityBell: Sendable {
    let rings: AsyncStream<Void>
    private let ringer: AsyncStream<Void>.Continuation

    init() { (rings, ringer) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func ring() { ringer.yield() }
}
