// The limit on concurrent fetches of one service, and the bounded queue for others.

package import DownloadCore
package import EventLoop
package import Policies
import Synchronization

/// The reason why a fetch was not admitted.
package enum AdmissionRefusal: Error, Sendable, Equatable {
    /// The queue is full, or a more urgent fetch has taken the place in it.
    case queueFull(length: Int)
    /// No slot became free in time.
    case waitedTooLong(nanoseconds: UInt64)
    /// The task that waited for the slot was cancelled.
    case cancelled
}

/// The limits of one service; a reload changes them in place.
package struct AdmissionLimits: Sendable, Equatable {
    /// The most fetches at the same time; nil for no limit.
    package var concurrent: Int?
    /// The most fetches that wait.
    package var queueLength: Int
    /// The longest wait of a fetch, in nanoseconds.
    package var wait: UInt64

    package init(concurrent: Int? = nil, queueLength: Int = 100, wait: UInt64 = 5_000_000_000) {
        self.concurrent = concurrent
        self.queueLength = queueLength
        self.wait = wait
    }
}

/// A counting gate with a priority queue (``AdmissionQueue``). It counts fetches, not clients. If the queue is full, a
/// new fetch takes the place of the last one of a lower class.
///
/// Sendable: all state is under one mutex; waiters are resumed outside it.
package final class Admission: Sendable {
    private struct Waiter {
        let continuation: UnsafeContinuation<AdmissionRefusal?, Never>
    }

    private struct State {
        var limits: AdmissionLimits
        var running = 0
        var waiting = AdmissionQueue<Waiter>()
        var lastID: UInt64 = 0
        /// Fetches that got no slot, because the queue was full or the wait too long.
        var refused = 0
    }

    private let state: Mutex<State>

    package init(_ limits: AdmissionLimits) { state = Mutex(State(limits: limits)) }

    /// The limits in force.
    package var limits: AdmissionLimits { state.withLock { $0.limits } }
    package var running: Int { state.withLock { $0.running } }
    package var waiting: Int { state.withLock { $0.waiting.count } }
    /// Fetches since the start that got no slot, because the queue was full or the wait too long.
    package var refusedCount: Int { state.withLock { $0.refused } }
    package func waiting(of priority: FetchPriority) -> Int { state.withLock { $0.waiting.count(of: priority) } }

    /// The admission of a client's next fetch.
    enum Outlook: Equatable {
        case free
        /// The fetch would wait behind this number of others.
        case queued(Int)
        /// The queue is full: its limit is this number.
        case full(Int)
    }

    /// The admission that a client's fetch would get at present.
    var outlook: Outlook {
        state.withLock { state in
            if state.waiting.isEmpty, state.running < state.limits.concurrent ?? .max { return .free }
            let others = state.waiting.count
            // A client takes the place of a less urgent fetch.
            let mayWait = others < state.limits.queueLength || state.waiting.count(of: .client) < others
            return mayWait ? .queued(state.waiting.count(of: .client)) : .full(state.limits.queueLength)
        }
    }

    /// Applies new limits; wider ones admit waiters at once.
    package func update(_ limits: AdmissionLimits) {
        let admitted = state.withLock { state in
            state.limits = limits
            return Self.admit(&state)
        }
        for waiter in admitted { waiter.continuation.resume(returning: nil) }
    }

    /// Takes a slot if one is free; a caller that gets one calls ``release()`` once.
    package func takeFreeSlot() -> Bool {
        state.withLock { state in
            guard state.waiting.isEmpty, state.running < state.limits.concurrent ?? .max else { return false }
            state.running += 1
            return true
        }
    }

    /// Waits for a slot. A caller that gets one calls ``release()`` once.
    /// - Parameter urgency: the urgency of the fetch, which may rise during the wait; nil if a client waits.
    /// - Throws: `AdmissionRefusal`, with no slot taken.
    @inline(never) package func acquire(
        _ urgency: FetchUrgency? = nil,
        on loop: isolated EventLoop
    ) async throws(AdmissionRefusal) {
        if takeFreeSlot() { return }
        let (id, wait) = state.withLock { state in
            state.lastID += 1
            return (state.lastID, state.limits.wait)
        }
        let timer = LoopTimer(on: loop) { [self] in refuse(id, .waitedTooLong(nanoseconds: wait)) }
        defer { timer.cancel() }
        timer.start(after: wait)
        // The observer is added before the fetch is queued: a rise that it misses is seen when the priority is read
        // under the mutex.
        let observer = urgency?.observe { [weak self] in self?.raise(id, to: $0) }
        defer { if let observer { urgency?.forget(observer) } }
        let refusal = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in enqueue(id, Waiter(continuation: continuation), urgency) }
        } onCancel: {
            refuse(id, .cancelled)
        }
        if let refusal {
            if refusal != .cancelled { state.withLock { $0.refused += 1 } }
            throw refusal
        }
        // The slot was given before the task was cancelled, and is not needed any more.
        guard Task.isCancelled else { return }
        release()
        throw .cancelled
    }

    /// Returns a slot, which the next fetch in the queue gets.
    package func release() {
        let admitted = state.withLock { state in
            state.running -= 1
            return Self.admit(&state)
        }
        for waiter in admitted { waiter.continuation.resume(returning: nil) }
    }

    private func enqueue(_ id: UInt64, _ waiter: Waiter, _ urgency: FetchUrgency?) {
        let (answer, displaced): (AdmissionRefusal??, (waiter: Waiter, length: Int)?) = state.withLock { state in
            if Task.isCancelled { return (.some(.cancelled), nil) }
            if state.running < state.limits.concurrent ?? .max, state.waiting.isEmpty {
                state.running += 1
                return (.some(nil), nil)
            }
            let priority = urgency.priority
            let length = state.limits.queueLength
            guard state.waiting.count >= length else {
                state.waiting.append(id, waiter, priority)
                return (nil, nil)
            }
            guard let displaced = state.waiting.displace(below: priority) else {
                return (.some(.queueFull(length: length)), nil)
            }
            state.waiting.append(id, waiter, priority)
            return (nil, (displaced, length))
        }
        displaced?.waiter.continuation.resume(returning: .queueFull(length: displaced?.length ?? 0))
        if let answer { waiter.continuation.resume(returning: answer) }
    }

    private func raise(_ id: UInt64, to priority: FetchPriority) {
        state.withLock { $0.waiting.raise(id, to: priority) }
    }

    private func refuse(_ id: UInt64, _ refusal: AdmissionRefusal) {
        let waiter = state.withLock { $0.waiting.remove(id) }
        waiter?.continuation.resume(returning: refusal)
    }

    private static func admit(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        while state.running < state.limits.concurrent ?? .max, let next = state.waiting.popFirst() {
            state.running += 1
            admitted.append(next)
        }
        return admitted
    }
}

/// A queue with four classes, in which each class is first come, first served. A more urgent class is served first, but
/// of five fetches in a row at most four pass over those of a lower class: the fifth is one of these, and among these
/// the same holds. So no fetch starves, and a client waits for at most a fifth of the slots.
///
/// Each operation takes constant time on average: fetches that leave from the middle are skipped later.
package struct AdmissionQueue<Waiter> {
    /// The most fetches of a class in a row while lower classes wait.
    package static var inARow: Int { 4 }

    private struct Lane {
        /// The identifiers of the class in order; those that have moved or left are skipped.
        var order: [UInt64] = []
        var first = 0
        var count = 0
        /// The number of fetches that left in a row while lower classes waited.
        var inARow = 0

        mutating func append(_ id: UInt64) {
            order.append(id)
            count += 1
        }

        mutating func popFirst() -> UInt64? {
            guard first < order.count else { return nil }
            defer {
                first += 1
                if first * 2 > order.count {
                    order.removeSubrange(..<first)
                    first = 0
                }
            }
            return order[first]
        }

        mutating func popLast() -> UInt64? { first < order.count ? order.popLast() : nil }

        /// Removes the identifiers that have left, as soon as they are the majority.
        mutating func tidy(_ isHere: (UInt64) -> Bool) {
            guard order.count - first > 2 * count + 16 else { return }
            order = order[first...].filter(isHere)
            first = 0
        }
    }

    private var lanes: [Lane] = FetchPriority.allCases.map { _ in Lane() }
    private var waiters: [UInt64: (priority: FetchPriority, waiter: Waiter)] = [:]

    package init() {}

    package var count: Int { waiters.count }
    package var isEmpty: Bool { waiters.isEmpty }
    package func count(of priority: FetchPriority) -> Int { lanes[Int(priority.rawValue)].count }

    /// Appends a fetch.
    /// - Parameter id: an identifier that no other fetch has or had in this queue.
    package mutating func append(_ id: UInt64, _ waiter: Waiter, _ priority: FetchPriority) {
        waiters[id] = (priority, waiter)
        lanes[Int(priority.rawValue)].append(id)
    }

    /// Takes out the fetch that gets the free slot; nil if none waits.
    package mutating func popFirst() -> Waiter? {
        guard let chosen = nextLane(), let id = take(chosen, { $0.popFirst() }) else { return nil }
        return remove(id)
    }

    /// Takes out the last fetch of the lowest class below `priority`, to make room; nil if there is none.
    package mutating func displace(below priority: FetchPriority) -> Waiter? {
        let last = lanes.indices.last { $0 > Int(priority.rawValue) && lanes[$0].count > 0 }
        guard let last, let id = take(last, { $0.popLast() }) else { return nil }
        return remove(id)
    }

    /// Takes out a fetch that waits no longer; nil if it has already left.
    package mutating func remove(_ id: UInt64) -> Waiter? {
        guard let (priority, waiter) = waiters.removeValue(forKey: id) else { return nil }
        let index = Int(priority.rawValue)
        lanes[index].count -= 1
        lanes[index].tidy { waiters[$0]?.priority == priority }
        return waiter
    }

    /// Moves a fetch to the end of a more urgent class.
    package mutating func raise(_ id: UInt64, to priority: FetchPriority) {
        guard let (old, waiter) = waiters[id], old < priority, let _ = remove(id) else { return }
        append(id, waiter, priority)
    }

    /// The class whose turn it is, which is counted; nil if none waits.
    private mutating func nextLane() -> Int? {
        var chosen: Int?
        for index in lanes.indices where lanes[index].count > 0 {
            chosen = index
            let lowerWait = lanes[(index + 1)...].contains { $0.count > 0 }
            guard lowerWait, lanes[index].inARow >= Self.inARow else {
                lanes[index].inARow = lowerWait ? lanes[index].inARow + 1 : 0
                break
            }
            lanes[index].inARow = 0
        }
        return chosen
    }

    /// The next identifier of a class that is still in it.
    private mutating func take(_ lane: Int, _ pop: (inout Lane) -> UInt64?) -> UInt64? {
        while let id = pop(&lanes[lane]) {
            if waiters[id].map({ Int($0.priority.rawValue) }) == lane { return id }
        }
        return nil
    }
}

extension AdmissionQueue: Sendable where Waiter: Sendable {}
