// The access log lines of one loop, gathered and handed on.

import EventLoop
import Glibc

/// The lines of one loop, handed on twice a second or when 32 KiB are together; loop-bound.
final class AccessLogBuffer {
    private static let handOver = 32 << 10
    private static let delay: UInt64 = 500_000_000
    private let sink: AccessLogSink
    private var writer: AccessLineWriter
    private var bytes: [UInt8]
    private var timer: LoopTimer?
    private var isArmed = false

    init(on loop: isolated EventLoop, sink: AccessLogSink) {
        self.sink = sink
        writer = AccessLineWriter(sink.format ?? .json)
        bytes = sink.emptyBuffer()
        // Unowned: the timer is this object's own and ends with it. A weak reference would slow down every use of it.
        timer = LoopTimer(on: loop) { [unowned self] in flush() }
    }

    /// Lines are wanted at all.
    var isOn: Bool { sink.format != nil }

    /// The format names the client's program.
    var needsAgent: Bool { sink.format == .combined }

    func write(_ entry: AccessEntry) {
        guard let format = sink.format else { return }
        if format != writer.format { writer = AccessLineWriter(format) }
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        writer.write(entry, time: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec), to: &bytes)
        if bytes.count >= Self.handOver {
            flush()
        } else if !isArmed {
            isArmed = true
            timer?.start(after: Self.delay)
        }
    }

    /// Hands over what is there.
    func flush() {
        isArmed = false
        timer?.cancel()
        guard !bytes.isEmpty else { return }
        var full = sink.emptyBuffer()
        swap(&full, &bytes)
        sink.submit(full)
    }
}

@available(*, unavailable) extension AccessLogBuffer: Sendable {}
