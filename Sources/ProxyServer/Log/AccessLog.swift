// The access log lines of one loop, written down and put behind those of the other loops.

import EventLoop
import Glibc

/// Writes a line as soon as its answer is complete, in the order in which that happens; loop-bound.
final class AccessLogBuffer {
    private static let delay: UInt64 = 500_000_000
    private let sink: AccessLogSink
    private var writer: AccessLineWriter
    private var line: [UInt8] = []
    private var timer: LoopTimer?
    private var isArmed = false

    init(on loop: isolated EventLoop, sink: AccessLogSink) {
        self.sink = sink
        writer = AccessLineWriter(sink.format ?? .json)
        line.reserveCapacity(1024)
        // Unowned: the timer is this object's own and ends with it. A weak reference would slow down every use of it.
        timer = LoopTimer(on: loop) { [unowned self] in flush() }
    }

    /// Lines are wanted at all.
    var isOn: Bool { sink.format != nil }

    /// The format names the client's program, and where its user came from.
    var needsAgent: Bool { sink.format == .combined || sink.format == .json }

    /// The format has the request id and the host.
    var needsID: Bool { sink.format == .json }

    /// Requests go to origins with their ids.
    var passesIDs: Bool { sink.passesIDs }

    func write(_ entry: AccessEntry) {
        guard let format = sink.format else { return }
        if format != writer.format { writer = AccessLineWriter(format) }
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        line.removeAll(keepingCapacity: true)
        writer.write(entry, time: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec), to: &line)
        sink.append(line)
        guard !isArmed else { return }
        isArmed = true
        timer?.start(after: Self.delay)
    }

    /// Hands the lines of all loops to the writer.
    private func flush() {
        isArmed = false
        sink.flush()
    }
}

@available(*, unavailable) extension AccessLogBuffer: Sendable {}
