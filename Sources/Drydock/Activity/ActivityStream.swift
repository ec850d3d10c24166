// Busy and idle, as an indicator of a program shows them, from counts of the work that is under way.

import Synchronization

/// Whether something is under way.
public enum Activity: String, Sendable, Hashable, CaseIterable {
    /// Nothing is.
    case idle
    /// Something is.
    case busy
}

/// Whether managers and queues are busy, as a sequence that tells each change.
///
/// ```swift
/// for await activity in ActivityStream(of: [manager, queue]) { spinner.isVisible = activity == .busy }
/// ```
///
/// It begins with what is, and then ``Activity/busy`` and ``Activity/idle`` take turns: busy as soon as one of them has
/// work, idle once none has. Work that is shorter than the minimum is shown for the minimum, so that an indicator does not
/// flicker. It never ends by itself; each iteration is one of its own.
public struct ActivityStream: AsyncSequence, Sendable {
    public typealias Element = Activity
    public typealias Failure = Never

    private let counters: [ActivityCounter]
    private let minimum: Duration
    private let time: Timepiece

    /// Follows these.
    /// - Parameters:
    ///   - sources: managers, queues, and counters of a program's own.
    ///   - minimumBusy: how long ``Activity/busy`` lasts at least; 300 ms by default, zero tells every change at once.
    ///   - clock: what that is measured by.
    public init(
        of sources: [any ActivitySource],
        minimumBusy: Duration = .milliseconds(300),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        counters = sources.map(\.activity)
        minimum = minimumBusy
        time = Timepiece(clock)
    }

    /// Begins with what is.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(counters, minimum, time) }

    /// The changes, one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let counters: [ActivityCounter]
        private let time: Timepiece
        private let bell = ActivityBell()
        private var rings: AsyncStream<Void>.AsyncIterator
        private var edges: ActivityEdges
        private let alarm = Alarm()

        fileprivate init(_ counters: [ActivityCounter], _ minimum: Duration, _ time: Timepiece) {
            (self.counters, self.time) = (counters, time)
            edges = ActivityEdges(minimum: minimum)
            rings = bell.rings.makeAsyncIterator()
            for counter in counters { counter.listen(bell) }
        }

        /// The next change; nil once the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Activity? {
            while !Task.isCancelled {
                let looks = counters.map(\.look)
                let step = edges.look(
                    isBusy: looks.contains { $0.isBusy },
                    beginnings: looks.reduce(0) { $0 + $1.beginnings },
                    now: time.now()
                )
                switch step {
                case .tell(let activity):
                    alarm.clear()
                    return activity
                case .wait(let deadline):
                    alarm.set(deadline, time, bell)
                    if await rings.next(isolation: actor) == nil { return nil }
                }
            }
            return nil
        }
    }
}

/// Rings a bell at a time, unless it is set anew, or nobody holds it any more.
private final class Alarm {
    private var deadline: Duration?
    private var task: Task<Void, Never>?

    deinit { task?.cancel() }

    func clear() {
        task?.cancel()
        (task, deadline) = (nil, nil)
    }

    func set(_ deadline: Duration?, _ time: Timepiece, _ bell: ActivityBell) {
        guard deadline != self.deadline else { return }
        clear()
        guard let deadline else { return }
        self.deadline = deadline
        task = Task {
            do { try await time.sleep(deadline) } catch { return }
            bell.ring()
        }
    }
}

// MARK: - Counting

/// Somebody whose work an ``ActivityStream`` follows: a ``DownloadManager``, a `ServiceManager`, a
/// `TaskQueue`, or a program's own.
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
    package struct Change: Sendable {
        fileprivate let bells: [ActivityBell]

        /// Rings; outside of every lock.
        package func tell() { for bell in bells { bell.ring() } }
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
    package func change(by difference: Int) -> Change {
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

// MARK: - When the indicator changes

/// Busy is told as soon as work begins, and idle when none is left, but no sooner than a minimum time after busy. What
/// begins and ends between two looks is told, too.
struct ActivityEdges {
    enum Step: Equatable {
        case tell(Activity)
        /// Look again when somebody rings, and at this time, where there is one.
        case wait(until: Duration?)
    }

    private let minimum: Duration
    private var told: Activity?
    /// How often work had begun when busy was told, or at a later look.
    private var beginnings: UInt64 = 0
    private var busySince = Duration.zero

    init(minimum: Duration) { self.minimum = minimum }

    /// - Parameters:
    ///   - isBusy: whether something is under way.
    ///   - beginnings: how often something began where there was nothing; it never becomes less.
    ///   - now: it never becomes less either.
    mutating func look(isBusy: Bool, beginnings: UInt64, now: Duration) -> Step {
        let hasBegun = beginnings != self.beginnings
        self.beginnings = beginnings
        switch told {
        case nil where !isBusy:
            told = .idle
            return .tell(.idle)
        case .idle where !isBusy && !hasBegun: return .wait(until: nil)
        case nil, .idle:
            told = .busy
            busySince = now
            return .tell(.busy)
        case .busy:
            if isBusy { return .wait(until: nil) }
            guard now >= busySince + minimum else { return .wait(until: busySince + minimum) }
            told = .idle
            return .tell(.idle)
        }
    }
}
