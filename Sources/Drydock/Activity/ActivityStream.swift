// Busy and idle, as an indicator of a program shows them, from counts of the work that is under way.

import Synchronization

/// Whether managers and queues are busy, as a sequence that tells each change.
///
/// ```swift
/// let activity = ActivityStream(of: [manager.activity, queue.activity])
/// for await isBusy in activity { spinner.isVisible = isBusy }
/// ```
///
/// It begins with what is, and then true and false take turns: true as soon as one of them has work, false once none has.
/// Work that is shorter than the minimum is shown for the minimum, so that an indicator does not flicker. It never ends by
/// itself; each iteration is one of its own. A program's own work counts where a queue runs it.
public struct ActivityStream: AsyncSequence, Sendable {
    private let counters: [ActivityCounter]
    private let minimum: Duration
    private let time: Timepiece

    /// Follows these together.
    /// - Parameters:
    ///   - activities: of managers and queues; their own minimums do not count.
    ///   - minimumBusy: how long true lasts at least; 300 ms by default, zero tells every change at once.
    ///   - clock: what that is measured by.
    public init(
        of activities: [ActivityStream],
        minimumBusy: Duration = .milliseconds(300),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(counters: activities.flatMap(\.counters), minimumBusy: minimumBusy, clock: clock)
    }

    /// Follows what has counters.
    package init(
        counters: [ActivityCounter],
        minimumBusy: Duration = .milliseconds(300),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.counters = counters
        minimum = minimumBusy
        time = Timepiece(clock)
    }

    /// How much is under way.
    public var count: Int { counters.reduce(0) { $0 + $1.count } }

    /// Begins with what is.
    public func makeAsyncIterator() -> some AsyncIteratorProtocol<Bool, Never> {
        ActivityIterator(counters, minimum, time)
    }
}

/// The changes of whether somebody is busy, one after the other.
private struct ActivityIterator: AsyncIteratorProtocol {
    private let counters: [ActivityCounter]
    private let time: Timepiece
    private let bell = ActivityBell()
    private var rings: AsyncStream<Void>.AsyncIterator
    private var edges: ActivityEdges
    private let alarm = Alarm()

    init(_ counters: [ActivityCounter], _ minimum: Duration, _ time: Timepiece) {
        (self.counters, self.time) = (counters, time)
        edges = ActivityEdges(minimum: minimum)
        rings = bell.rings.makeAsyncIterator()
        for counter in counters { counter.listen(bell) }
    }

    /// The next change; nil once the task is cancelled.
    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Bool? {
        while !Task.isCancelled {
            let looks = counters.map(\.look)
            let step = edges.look(
                isBusy: looks.contains { $0.isBusy },
                beginnings: looks.reduce(0) { $0 + $1.beginnings },
                now: time.now()
            )
            switch step {
            case .tell(let isBusy):
                alarm.clear()
                return isBusy
            case .wait(let deadline):
                alarm.set(deadline, time, bell)
                if await rings.next(isolation: actor) == nil { return nil }
            }
        }
        return nil
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

/// The count of work that is under way. Any thread may use it.
package final class ActivityCounter: Sendable {
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
    package init() {}

    /// How much is under way.
    package var count: Int { state.withLock { $0.count } }

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
        case tell(isBusy: Bool)
        /// Look again when somebody rings, and at this time, where there is one.
        case wait(until: Duration?)
    }

    private let minimum: Duration
    /// What was told last; nil before the first.
    private var told: Bool?
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
            told = false
            return .tell(isBusy: false)
        case false where !isBusy && !hasBegun: return .wait(until: nil)
        case nil, false:
            told = true
            busySince = now
            return .tell(isBusy: true)
        case true:
            if isBusy { return .wait(until: nil) }
            guard now >= busySince + minimum else { return .wait(until: busySince + minimum) }
            told = false
            return .tell(isBusy: false)
        }
    }
}
