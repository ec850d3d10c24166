// Busy and idle, as an indicator of a program shows them.

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
