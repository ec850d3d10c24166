// The memory that all windows of all fills share.

package import EventLoop
import Synchronization

/// Counts the bytes that growing bodies hold. The fuller the budget is, the smaller is the window that each fill may
/// keep, down to ``leastWindow``, so that many slow readers never stop the others; past the limit new fills queue.
///
/// Sendable: the counts and the queue are under one mutex.
package final class FillBudget: Sendable {
    /// In bytes; what a fill may always hold.
    package static let leastWindow = 64 * 1024

    /// In bytes; what a seat counts.
    package static let seatSize = 4096

    private struct State {
        var used = 0
        var nextTicket: UInt64 = 0
        var queue: [(ticket: UInt64, waiter: UnsafeContinuation<Bool, Never>)] = []
        /// Tickets that were cancelled before they stood in the queue.
        var cancelled: Set<UInt64> = []

        /// Takes room for one seat.
        mutating func seat(limit: Int) -> Bool {
            guard used + FillBudget.seatSize <= limit || used == 0 else { return false }
            used += FillBudget.seatSize
            return true
        }
    }

    /// In bytes.
    package let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: bytes; 64 MiB by default.
    package init(limit: Int = 64 * 1024 * 1024) { self.limit = max(1, limit) }

    /// Bytes that are held now; it may exceed the limit by ``leastWindow`` a fill.
    package var used: Int { state.withLock { $0.used } }

    /// Fills that wait for room.
    package var queued: Int { state.withLock { $0.queue.count } }

    /// Counts a change of what a fill holds.
    /// - Returns: how much one fill may hold now, at most `window`.
    func charge(_ change: Int, window: Int) -> Int {
        let (used, ready) = state.withLock { state in
            state.used += change
            var ready: [UnsafeContinuation<Bool, Never>] = []
            while !state.queue.isEmpty, state.seat(limit: limit) { ready.append(state.queue.removeFirst().waiter) }
            return (state.used, ready)
        }
        for waiter in ready { waiter.resume(returning: true) }
        return min(window, max(Self.leastWindow, (limit - used) / 4))
    }

    /// Suspends while the budget is used up; first come, first served. Call it before a fill starts, and keep the seat
    /// until the fill ends.
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    package func waitForRoom(on loop: isolated EventLoop) async throws -> FillSeat {
        let ticket: UInt64? = state.withLock { state in
            if state.queue.isEmpty && state.seat(limit: limit) { return nil }
            state.nextTicket += 1
            return state.nextTicket
        }
        guard let ticket else { return FillSeat(self) }
        let isSeated = await withTaskCancellationHandler {
            await withUnsafeContinuation { enqueue($0, ticket: ticket) }
        } onCancel: {
            cancel(ticket)
        }
        state.withLock { _ = $0.cancelled.remove(ticket) }
        guard isSeated else { throw CancellationError() }
        return FillSeat(self)
    }

    private func enqueue(_ waiter: UnsafeContinuation<Bool, Never>, ticket: UInt64) {
        let answer: Bool? = state.withLock { state in
            if state.cancelled.remove(ticket) != nil { return false }
            if state.queue.isEmpty && state.seat(limit: limit) { return true }
            state.queue.append((ticket, waiter))
            return nil
        }
        if let answer { waiter.resume(returning: answer) }
    }

    private func cancel(_ ticket: UInt64) {
        let waiter: UnsafeContinuation<Bool, Never>? = state.withLock { state in
            guard let index = state.queue.firstIndex(where: { $0.ticket == ticket }) else {
                state.cancelled.insert(ticket)
                return nil
            }
            return state.queue.remove(at: index).waiter
        }
        waiter?.resume(returning: false)
    }
}

/// The right to fill: given back when the object goes away.
///
/// Sendable: it only refers to the budget.
package final class FillSeat: Sendable {
    private let budget: FillBudget

    init(_ budget: FillBudget) { self.budget = budget }

    deinit { _ = budget.charge(-FillBudget.seatSize, window: 0) }
}
