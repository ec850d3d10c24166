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

    private struct State {
        var used = 0
        var nextTicket: UInt64 = 0
        var queue: [(ticket: UInt64, waiter: UnsafeContinuation<Void, Never>)] = []
        /// Tickets that were cancelled before they stood in the queue.
        var cancelled: Set<UInt64> = []
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
            return (state.used, change < 0 ? next(&state) : nil)
        }
        ready?.resume()
        return min(window, max(Self.leastWindow, (limit - used) / 4))
    }

    /// Suspends while the budget is used up; first come, first served. Call it before a fill starts.
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    package func waitForRoom(on loop: isolated EventLoop) async throws {
        let ticket: UInt64? = state.withLock { state in
            if state.used < limit && state.queue.isEmpty { return nil }
            state.nextTicket += 1
            return state.nextTicket
        }
        guard let ticket else { return }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { enqueue($0, ticket: ticket) }
        } onCancel: {
            cancel(ticket)
        }
        // Whoever was let in lets the next one in if there is room for both.
        state.withLock { state in
            state.cancelled.remove(ticket)
            return next(&state)
        }?.resume()
        try Task.checkCancellation()
    }

    private func enqueue(_ waiter: UnsafeContinuation<Void, Never>, ticket: UInt64) {
        let isReady = state.withLock { state in
            let mayGo = state.used < limit && state.queue.isEmpty
            if state.cancelled.remove(ticket) != nil || mayGo { return true }
            state.queue.append((ticket, waiter))
            return false
        }
        if isReady { waiter.resume() }
    }

    private func cancel(_ ticket: UInt64) {
        let waiter: UnsafeContinuation<Void, Never>? = state.withLock { state in
            guard let index = state.queue.firstIndex(where: { $0.ticket == ticket }) else {
                state.cancelled.insert(ticket)
                return nil
            }
            return state.queue.remove(at: index).waiter
        }
        waiter?.resume()
    }

    private func next(_ state: inout State) -> UnsafeContinuation<Void, Never>? {
        state.used < limit && !state.queue.isEmpty ? state.queue.removeFirst().waiter : nil
    }
}
