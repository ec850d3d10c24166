// The hub that tells the answers of all loops to those who watch the traffic, one line each.

import EventLoop
import Glibc
import Synchronization

/// Queues a line for each reader whose filter admits an answer. A reader that is too slow loses lines, and is told how
/// many.
///
/// Sendable: the readers are under one mutex; no task is resumed under it.
package final class TrafficHub: Sendable {
    fileprivate typealias Waiter = UnsafeContinuation<Void, Never>

    private struct Reader {
        let filter: TrafficFilter
        var writer: AccessLineWriter
        var lines: [UInt8] = []
        /// Lines that found no room since the last one that did.
        var lost = 0
        var waiter: Waiter?

        /// - Returns: the task that waits for the line.
        mutating func put(_ entry: AccessEntry, _ kind: AnswerKind, time: UInt64) -> Waiter? {
            guard filter.admits(entry, kind) else { return nil }
            guard lines.count < TrafficHub.queueLimit else {
                lost += 1
                return nil
            }
            if lost > 0 { tellLost() }
            writer.write(entry, time: time, to: &lines)
            if writer.format == .json {
                // The line ends with a brace and its newline.
                lines.removeLast(2)
                lines += ",\"outcome\":\"\(kind.outcome.label)\",\"tier\":\"\(kind.tier.label)\"}\n".utf8
            }
            defer { waiter = nil }
            return waiter
        }

        mutating func tellLost() {
            lines +=
                (writer.format == .json
                ? "{\"lost\":\(lost)}\n" : "... \(lost) more, which this reader was too slow for\n").utf8
            lost = 0
        }
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var last: UInt64 = 0
        var lost = 0
        var isOver = false
    }

    /// The largest number of readers at the same time.
    package static let maximumReaders = 16
    /// The most bytes of lines that wait for a reader, but for the one that reaches it.
    static let queueLimit = 256 << 10

    private let state = Mutex(State())
    private let listening = Atomic<Bool>(false)

    package init() {}

    /// True if there is a reader. It is one relaxed load: an answer without a reader costs no more.
    var isListening: Bool { listening.load(ordering: .relaxed) }

    package var readerCount: Int { state.withLock { $0.readers.count } }
    /// The number of lines since the start that readers were too slow for.
    package var lostCount: Int { state.withLock { $0.lost } }

    /// Tells an answer. Any thread.
    func put(_ entry: AccessEntry, _ kind: AnswerKind) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let time = UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
        let woken = state.withLock { state in
            var woken: [Waiter] = []
            for id in state.readers.keys {
                let lost = state.readers[id]?.lost ?? 0
                if let waiter = state.readers[id]?.put(entry, kind, time: time) { woken.append(waiter) }
                if let reader = state.readers[id], reader.lost > lost { state.lost += 1 }
            }
            return woken
        }
        for waiter in woken { waiter.resume() }
    }

    /// Adds a reader; nil if there are too many, or at the end of the daemon.
    /// - Parameter isText: whether lines are those of the access log's format `text`; otherwise they are JSON.
    package func listen(_ filter: TrafficFilter, isText: Bool) -> TrafficReader? {
        let id: UInt64? = state.withLock { state in
            guard !state.isOver, state.readers.count < Self.maximumReaders else { return nil }
            state.last += 1
            state.readers[state.last] = Reader(filter: filter, writer: AccessLineWriter(isText ? .text : .json))
            listening.store(true, ordering: .relaxed)
            return state.last
        }
        return id.map { TrafficReader(self, $0) }
    }

    /// Ends the streams of all readers, and admits no others. Queued lines can still be taken.
    package func end() {
        let woken = state.withLock { state in
            state.isOver = true
            listening.store(false, ordering: .relaxed)
            var woken: [Waiter] = []
            for id in state.readers.keys {
                if let waiter = state.readers[id]?.waiter { woken.append(waiter) }
                state.readers[id]?.waiter = nil
            }
            return woken
        }
        for waiter in woken { waiter.resume() }
    }

    /// The next lines for a reader: nil at the end, empty if it has to wait.
    fileprivate func take(_ id: UInt64) -> [UInt8]? {
        state.withLock { state in
            guard var reader = state.readers[id] else { return nil }
            if reader.lost > 0 { reader.tellLost() }
            if reader.lines.isEmpty, state.isOver { return nil }
            var lines: [UInt8] = []
            swap(&lines, &reader.lines)
            state.readers[id] = reader
            return lines
        }
    }

    /// Resumes a waiter as soon as there is something to take.
    fileprivate func wait(_ id: UInt64, _ waiter: Waiter) {
        let isReady = state.withLock { state in
            guard let reader = state.readers[id], !state.isOver, reader.lines.isEmpty, !Task.isCancelled else {
                return true
            }
            state.readers[id]?.waiter = waiter
            return false
        }
        if isReady { waiter.resume() }
    }

    fileprivate func wake(_ id: UInt64) {
        let waiter = state.withLock { state in
            defer { state.readers[id]?.waiter = nil }
            return state.readers[id]?.waiter
        }
        waiter?.resume()
    }

    fileprivate func remove(_ id: UInt64) {
        let waiter = state.withLock { state in
            let waiter = state.readers.removeValue(forKey: id)?.waiter
            if state.readers.isEmpty { listening.store(false, ordering: .relaxed) }
            return waiter
        }
        waiter?.resume()
    }
}

/// A reader of the traffic; its stream ends with this object.
///
/// Sendable: the hub holds the mutable state.
package final class TrafficReader: Sendable {
    private let hub: TrafficHub
    private let id: UInt64

    fileprivate init(_ hub: TrafficHub, _ id: UInt64) {
        self.hub = hub
        self.id = id
    }

    deinit { close() }

    /// Waits for the next lines. One caller at a time.
    /// - Returns: nil at the end, or if the task is cancelled.
    package func next() async -> [UInt8]? {
        await withTaskCancellationHandler {
            while !Task.isCancelled {
                guard let lines = hub.take(id) else { return nil }
                if !lines.isEmpty { return lines }
                await withUnsafeContinuation { hub.wait(id, $0) }
            }
            return nil
        } onCancel: {
            hub.wake(id)
        }
    }

    /// Ends the stream, and drops its queued lines. Any thread.
    package func close() { hub.remove(id) }
}
