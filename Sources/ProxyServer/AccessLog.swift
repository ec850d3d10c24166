// Where access log lines go: a buffer per loop, and behind all of them one writer on the I/O pool.

package import Configuration
package import EventLoop
import Glibc
import Synchronization

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
        writer = AccessLineWriter(sink.format)
        bytes = sink.emptyBuffer()
        timer = LoopTimer(on: loop) { [weak self] in self?.flush() }
    }

    /// The format names the client's program.
    var needsAgent: Bool { writer.format == .combined }

    func write(_ entry: AccessEntry) {
        guard sink.isOpen else { return }
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

/// Writes what the loops hand over, in order, on the I/O pool, so that a slow disk or a stuck pipe never holds a loop.
///
/// Sendable: the state is under a mutex; one job on the pool writes at a time.
package final class AccessLogSink: Sendable {
    private struct State {
        var descriptor: Int32
        var pending: [[UInt8]] = []
        var pendingBytes = 0
        var spare: [[UInt8]] = []
        var isWriting = false
        var mustReopen = false
        var dropped: UInt64 = 0
        var idle: [UnsafeContinuation<Void, Never>] = []
    }

    /// Lines beyond this wait for nobody: they are dropped and counted.
    private static let pendingLimit = 8 << 20
    private let state: Mutex<State>
    private let pool: IOPool
    private let path: String?
    let format: AccessLineWriter.Format
    let isOpen: Bool

    /// - Throws: `SystemError` naming the file where it cannot be opened.
    package init(_ configuration: LogConfiguration, pool: IOPool) throws(SystemError) {
        self.pool = pool
        format =
            switch configuration.format {
            case .json: .json
            case .combined: .combined
            case .text: .text
            }
        let descriptor: Int32
        switch configuration.access {
        case .off: (path, descriptor) = (nil, -1)
        case .stdout: (path, descriptor) = (nil, STDOUT_FILENO)
        case .stderr: (path, descriptor) = (nil, STDERR_FILENO)
        case .file(let file): (path, descriptor) = (file, try Self.open(file))
        }
        isOpen = descriptor >= 0
        state = Mutex(State(descriptor: descriptor))
    }

    deinit {
        let descriptor = state.withLock { $0.descriptor }
        if path != nil, descriptor >= 0 { close(descriptor) }
    }

    /// Opens the file anew before the next write: it may have been moved away.
    package func reopen() {
        guard path != nil else { return }
        state.withLock { $0.mustReopen = true }
        start()
    }

    /// Buffers of lines that were dropped because nothing could be written.
    package var droppedBuffers: UInt64 { state.withLock { $0.dropped } }

    /// Waits until what was handed over has been written.
    package func drain() async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if state.isWriting { state.idle.append(continuation) }
                return !state.isWriting
            }
            if isIdle { continuation.resume() }
        }
    }

    func emptyBuffer() -> [UInt8] {
        if let spare = state.withLock({ $0.spare.popLast() }) { return spare }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 << 10)
        return bytes
    }

    func submit(_ bytes: [UInt8]) {
        state.withLock { state in
            guard state.pendingBytes + bytes.count <= Self.pendingLimit else {
                state.dropped += 1
                return
            }
            state.pending.append(bytes)
            state.pendingBytes += bytes.count
        }
        start()
    }

    // MARK: - On the pool

    private func start() {
        let mustStart = state.withLock { state in
            guard !state.isWriting, !state.pending.isEmpty || state.mustReopen else { return false }
            state.isWriting = true
            return true
        }
        if mustStart { pool.submit { self.writePending() } }
    }

    private func writePending() {
        while true {
            let (work, descriptor) = take()
            guard !work.isEmpty else {
                let idle = state.withLock { state in
                    defer { state.idle = [] }
                    return state.idle
                }
                for waiter in idle { waiter.resume() }
                return
            }
            for bytes in work { Self.write(bytes, to: descriptor) }
            recycle(work)
        }
    }

    /// What is to be written now; nothing ends the job.
    private func take() -> (work: [[UInt8]], descriptor: Int32) {
        if let path, state.withLock({ $0.mustReopen }) {
            let fresh = try? Self.open(path)
            let old = state.withLock { state in
                state.mustReopen = false
                guard let fresh else { return Int32(-1) }
                defer { state.descriptor = fresh }
                return state.descriptor
            }
            if old >= 0 { close(old) }
        }
        return state.withLock { state in
            defer {
                state.pending = []
                state.pendingBytes = 0
            }
            if state.pending.isEmpty { state.isWriting = false }
            return (state.pending, state.descriptor)
        }
    }

    private func recycle(_ buffers: [[UInt8]]) {
        var emptied: [[UInt8]] = []
        for var bytes in buffers.prefix(8) {
            bytes.removeAll(keepingCapacity: true)
            emptied.append(bytes)
        }
        state.withLock { state in
            if state.spare.count < 8 { state.spare += emptied }
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                if count > 0 {
                    written += count
                } else if errno == EAGAIN {
                    var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    if poll(&wait, 1, 10_000) == 0 { return }
                } else if errno != EINTR {
                    return
                }
            }
        }
    }

    private static func open(_ path: String) throws(SystemError) -> Int32 {
        let descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
        guard descriptor >= 0 else { throw SystemError("open the access log \(path)") }
        return descriptor
    }
}
