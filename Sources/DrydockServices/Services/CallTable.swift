// The calls of a manager that have not ended, and the control of each: it is cancelled, parked and repeated by those
// who do not know its model.

import Drydock
import ServiceCore
import Synchronization

/// The calls of a manager that have not ended, and its budget of retries. Sendable: under a mutex.
final class CallTable: Sendable {
    struct Entry: Sendable {
        let info: CallInfo
        let type: ObjectIdentifier
        let control: CallControl
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var parked = 0
        /// Nobody can repeat what is parked.
        var isParkingClosed = false
        var budget = RetryBudget()
    }

    private static let numbers = Atomic<UInt64>(0)

    private let state = Mutex(State())
    private let start = ContinuousClock.now
    private let metric: RefusedRetries

    init(_ metric: RefusedRetries) { self.metric = metric }

    /// A number that no other call of the program has.
    static var nextNumber: UInt64 { numbers.add(1, ordering: .relaxed).newValue }

    /// Counts the calls that have not ended.
    let activity = ActivityCounter()

    func insert(_ entry: Entry) {
        let change = state.withLock { state in
            state.entries[entry.info.id] = entry
            return activity.change(by: 1)
        }
        change.tell()
    }

    /// - Returns: whether no call is left.
    func remove(_ id: UInt64) -> Bool {
        let (entry, isIdle, change) = state.withLock { state in
            let entry = state.entries.removeValue(forKey: id)
            return (entry, state.entries.isEmpty, entry.map { _ in activity.change(by: -1) })
        }
        withExtendedLifetime(entry) { change?.tell() }
        return entry != nil && isIdle
    }

    func entries(where isWanted: (Entry) -> Bool = { _ in true }) -> [Entry] {
        state.withLock { Array($0.entries.values) }.filter(isWanted).sorted { $0.info.id < $1.info.id }
    }

    var count: Int { state.withLock { $0.entries.count } }

    // MARK: - Parking

    /// - Returns: false where there is no room.
    func takeParkingSlot(_ limit: Int) -> Bool {
        state.withLock { state in
            guard !state.isParkingClosed, state.parked < limit else { return false }
            state.parked += 1
            return true
        }
    }

    var isParkingClosed: Bool { state.withLock { $0.isParkingClosed } }

    func closeParking() { state.withLock { $0.isParkingClosed = true } }

    func leaveParkingSlot() { state.withLock { $0.parked -= 1 } }

    // MARK: - Retries

    private var now: UInt64 { (ContinuousClock.now - start).wholeNanoseconds + 1 }

    private let refused = Atomic<Int>(0)

    /// Retries that the budget had none left for.
    var refusedRetries: Int { refused.load(ordering: .relaxed) }

    func earn(_ share: Double) { state.withLock { $0.budget.earn(share, now: now) } }

    /// Takes a retry out of the budget.
    /// - Returns: nil where there was one to take.
    func refusesRetry() -> RetryBudget.Refusal? {
        let refusal = state.withLock { $0.budget.refuses(now: now) }
        if refusal != nil {
            refused.wrappingAdd(1, ordering: .relaxed)
            metric.count()
        }
        return refusal
    }
}

// MARK: - The control of one call

/// The control of one call. Sendable: its state is under its own mutex, and nothing is resumed or cancelled under it.
final class CallControl: Sendable {
    private struct State {
        /// Cancels its task.
        var cancel: (@Sendable () -> Void)?
        var isCancelled = false
        var parked: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())

    /// It runs in a task; where it was cancelled before, so is the task now.
    func begin(cancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.cancel = cancel
            return state.isCancelled
        }
        if isCancelled { cancel() }
    }

    func cancel() {
        let (cancel, parked) = state.withLock { state in
            state.isCancelled = true
            defer { state.parked = nil }
            return (state.cancel, state.parked)
        }
        cancel?()
        parked?.resume(returning: false)
    }

    var isParked: Bool { state.withLock { $0.parked != nil } }

    /// Waits until it is repeated or cancelled.
    /// - Parameter onParked: it can be repeated from now on; not called where it has been cancelled.
    /// - Returns: whether it is repeated.
    func park(onParked: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.parked = continuation }
                return state.isCancelled
            }
            if isCancelled { continuation.resume(returning: false) } else { onParked() }
        }
    }

    /// - Returns: whether it was parked.
    func repeatParked() -> Bool {
        let parked = state.withLock { state in
            defer { state.parked = nil }
            return state.parked
        }
        parked?.resume(returning: true)
        return parked != nil
    }
}
