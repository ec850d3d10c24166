// Waiting, in a task on a loop, until a descriptor is ready: for connects and handshakes of tunnels.

import EventLoop
import Glibc

/// How a wait ended.
enum DescriptorWait: Sendable, Equatable {
    case ready, timedOut, cancelled
}

/// The waits of one loop; loop-bound. Each has a number, because a cancellation handler cannot hold a loop-bound object.
final class DescriptorWaits {
    private final class Wait: IOHandler {
        var event: IOEvent?
        var timer: LoopTimer?
        let finish: (DescriptorWait) -> Void

        init(_ finish: @escaping (DescriptorWait) -> Void) { self.finish = finish }

        func ready(_ readiness: IOReadiness) { finish(.ready) }
    }

    private struct Entry {
        let wait: Wait
        let waiter: UnsafeContinuation<DescriptorWait, Never>
    }

    private var entries: [UInt64: Entry] = [:]
    private var last: UInt64 = 0

    /// Waits until `descriptor` is ready, `deadline` (monotonic nanoseconds) is past, or the task is cancelled.
    func wait(
        for descriptor: Int32,
        _ readiness: IOReadiness,
        until deadline: UInt64,
        on loop: isolated EventLoop,
        box: LoopBox<DescriptorWaits>
    ) async -> DescriptorWait {
        last += 1
        let id = last
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                if Task.isCancelled { return waiter.resume(returning: .cancelled) }
                add(id, descriptor, readiness, deadline, waiter, on: loop)
            }
        } onCancel: {
            box.submit { waits, _ in waits.finish(id, .cancelled) }
        }
    }

    /// When a wait that begins now ends; one of `.max` never does.
    static func deadline(_ timeout: UInt64) -> UInt64 {
        let now = Monotonic.now()
        return now &+ min(timeout, .max - now)
    }

    private func add(
        _ id: UInt64,
        _ descriptor: Int32,
        _ readiness: IOReadiness,
        _ deadline: UInt64,
        _ waiter: UnsafeContinuation<DescriptorWait, Never>,
        on loop: isolated EventLoop
    ) {
        let wait = Wait { [weak self] result in self?.finish(id, result) }
        let event = IOEvent(on: loop, descriptor: descriptor, handler: wait)
        let timer = LoopTimer(on: loop) { [weak wait] in wait?.finish(.timedOut) }
        wait.event = event
        wait.timer = timer
        entries[id] = Entry(wait: wait, waiter: waiter)
        let now = Monotonic.now()
        timer.start(after: deadline > now ? deadline - now : 0)
        event.watch(readiness)
    }

    private func finish(_ id: UInt64, _ result: DescriptorWait) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        entry.wait.event?.cancel()
        entry.wait.timer?.cancel()
        entry.waiter.resume(returning: result)
    }

    func cancelAll() {
        for id in entries.keys.sorted() { finish(id, .cancelled) }
    }
}

@available(*, unavailable) extension DescriptorWaits: Sendable {}
