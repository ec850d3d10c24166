// The destination of access log lines: one queue for all loops, and one writer on the I/O pool.

package import EventLoop
import Glibc
import Synchronization

/// Where access log lines go, and what is in them.
package struct AccessLogSettings: Sendable, Equatable {
    package enum Destination: Sendable, Equatable {
        case off, stdout, stderr
        /// An absolute path; lines are appended.
        case file(path: String)
    }

    /// The format of a line.
    package enum Format: UInt8, Sendable {
        case json = 1
        case combined, text
    }

    package var destination: Destination
    package var format: Format
    /// True if request ids are forwarded to origins.
    package var passesIDs: Bool

    package init(_ destination: Destination, format: Format = .json, passesIDs: Bool = false) {
        self.destination = destination
        self.format = format
        self.passesIDs = passesIDs
    }

    /// The format as an atomic can hold it; 0 if nothing is logged.
    fileprivate var code: UInt8 { destination == .off ? 0 : format.rawValue }
}

/// Collects the lines of all loops in the order in which they come, and writes them on the I/O pool, so that a slow
/// disk or a stuck pipe never holds a loop.
///
/// Sendable: the state is under a mutex; one job on the pool writes at a time, and only that job changes the
/// descriptor.
package final class AccessLogSink: Sendable {
    private struct Target {
        var descriptor: Int32
        /// The path of the file that this sink has opened; nil for standard output and standard error.
        var path: String?
        /// True if a write can block for as long as the reader likes: for a pipe, a terminal or a socket.
        var mayBlock = true

        func close() {
            if path != nil, descriptor >= 0 { Glibc.close(descriptor) }
        }
    }

    private struct State {
        var target: Target
        /// The target that replaces the current one before the next write.
        var next: Target?
        /// Lines for which no write job has been submitted.
        var open: [UInt8] = []
        var pending: [[UInt8]] = []
        var pendingBytes = 0
        var spare: [[UInt8]] = []
        var isWriting = false
        /// True once the daemon ends: no wait for a reader is without a bound then.
        var isEnding = false
        /// True if no reader took bytes for the whole waiting time at the end: the rest is dropped.
        var isGivenUp = false
        var dropped: UInt64 = 0
        var idle: [UnsafeContinuation<Void, Never>] = []
    }

    /// The most bytes of lines that wait for the writer; lines beyond it are dropped and counted.
    private static let pendingLimit = 8 << 20
    /// The number of bytes of lines that are handed to the writer without waiting for more.
    private static let handOver = 32 << 10
    private let state: Mutex<State>
    private let formatCode: Atomic<UInt8>
    private let isPassingIDs: Atomic<Bool>
    private let pool: IOPool
    private let lastWaits: Int

    /// - Parameter lastWaits: half seconds for which the end waits for a pipe whose reader reads nothing, before the
    ///   rest is dropped; 6 by default.
    /// - Throws: `SystemError` with the path if the file cannot be opened.
    package init(_ settings: AccessLogSettings, pool: IOPool, lastWaits: Int = 6) throws(SystemError) {
        self.pool = pool
        self.lastWaits = lastWaits
        formatCode = Atomic(settings.code)
        isPassingIDs = Atomic(settings.passesIDs)
        state = Mutex(State(target: try Self.open(settings.destination)))
    }

    deinit {
        state.withLock { state in
            state.target.close()
            state.next?.close()
        }
    }

    /// Changes destination and format. The file is always opened again, because log rotation may have moved it.
    /// - Throws: `SystemError` with the path if the file cannot be opened; nothing changes then.
    package func update(_ settings: AccessLogSettings) throws(SystemError) {
        let next = try Self.open(settings.destination)
        let unused = state.withLock { state in
            defer { state.next = next }
            return state.next
        }
        unused?.close()
        formatCode.store(settings.code, ordering: .relaxed)
        isPassingIDs.store(settings.passesIDs, ordering: .relaxed)
        start()
    }

    /// Switches the forwarding of request ids, and leaves destination and format as they are.
    package func pass(ids: Bool) { isPassingIDs.store(ids, ordering: .relaxed) }

    /// The number of buffers of lines that were dropped because nothing could be written.
    package var droppedBuffers: UInt64 { state.withLock { $0.dropped } }

    /// Waits until all lines have been written; if the reader of a pipe reads nothing for three seconds, the rest is
    /// dropped. Later lines are written at once.
    package func drain() async {
        state.withLock { $0.isEnding = true }
        flush()
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                if state.isWriting { state.idle.append(continuation) }
                return !state.isWriting
            }
            if isIdle { continuation.resume() }
        }
    }

    // MARK: - For the loops

    /// The format of lines; nil if nothing is logged.
    var format: AccessLogSettings.Format? { AccessLogSettings.Format(rawValue: formatCode.load(ordering: .relaxed)) }

    /// True if request ids are forwarded to origins.
    var passesIDs: Bool { isPassingIDs.load(ordering: .relaxed) }

    /// Adds a line, with its LF, to the queue of all loops.
    func append(_ line: [UInt8]) {
        let isMuch = state.withLock { state in
            state.open.append(contentsOf: line)
            return state.open.count >= Self.handOver || state.isEnding
        }
        if isMuch { flush() }
    }

    /// Hands all lines of the queue to the writer.
    func flush() {
        let hasLines = state.withLock { state in
            if state.open.isEmpty { return false }
            guard state.pendingBytes + state.open.count <= Self.pendingLimit else {
                state.dropped += 1
                state.open.removeAll(keepingCapacity: true)
                return false
            }
            var next = state.spare.popLast() ?? []
            if next.capacity < 2 * Self.handOver { next.reserveCapacity(2 * Self.handOver) }
            swap(&next, &state.open)
            state.pendingBytes += next.count
            state.pending.append(next)
            return true
        }
        if hasLines { start() }
    }

    // MARK: - On the pool

    private func start() {
        let mustStart = state.withLock { state in
            guard !state.isWriting, !state.pending.isEmpty || state.next != nil else { return false }
            state.isWriting = true
            return true
        }
        if mustStart { pool.submit { self.writePending() } }
    }

    private func writePending() {
        while true {
            let (work, target, idle) = take()
            guard !work.isEmpty else {
                for waiter in idle { waiter.resume() }
                return
            }
            let lost = work.count { !write($0, to: target) }
            if lost > 0 { state.withLock { $0.dropped += UInt64(lost) } }
            recycle(work)
        }
    }

    /// Takes the lines to write now, and their destination. No lines end the job; the result then has the tasks that
    /// waited for its end, and later ones wait for another job.
    private func take() -> (work: [[UInt8]], target: Target, idle: [UnsafeContinuation<Void, Never>]) {
        let (taken, old) = state.withLock { state in
            var old: Target?
            if let next = state.next {
                old = state.target
                state.target = next
                state.next = nil
            }
            let work = state.pending
            state.pending = []
            state.pendingBytes = 0
            var idle: [UnsafeContinuation<Void, Never>] = []
            if work.isEmpty {
                state.isWriting = false
                swap(&idle, &state.idle)
            }
            return ((work, state.target, idle), old)
        }
        old?.close()
        return taken
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

    /// Writes the bytes to the target.
    /// - Returns: false if a part could not be written: the daemon ends and the reader of the pipe does not read, or
    ///   the file takes no more.
    private func write(_ bytes: [UInt8], to target: Target) -> Bool {
        let descriptor = target.descriptor
        guard descriptor >= 0 else { return true }
        return bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                if target.mayBlock, !waitForRoom(descriptor) { return false }
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let most = target.mayBlock ? Self.pieceLength(rest) : rest.count
                let count = Glibc.write(descriptor, rest.baseAddress, most)
                if count > 0 {
                    written += count
                } else if count == 0 || errno != EAGAIN && errno != EINTR {
                    return false
                }
            }
            return true
        }
    }

    /// The number of bytes that the next write to a pipe may have. A ready pipe takes PIPE_BUF bytes as one piece
    /// without blocking. The piece ends with a line, so that lines of the daemon's own log in the same pipe come
    /// between lines; only a line longer than PIPE_BUF is cut.
    static func pieceLength(_ bytes: UnsafeRawBufferPointer) -> Int {
        let most = Int(PIPE_BUF)
        guard bytes.count > most, let start = bytes.baseAddress else { return bytes.count }
        // The index stays below `most`, so every read is within the buffer.
        var end = most
        while end > 0, start.load(fromByteOffset: end &- 1, as: UInt8.self) != 0x0A { end &-= 1 }
        return end > 0 ? end : most
    }

    /// Waits until the pipe has room.
    /// - Returns: false if its reader reads nothing, and the daemon ends.
    private func waitForRoom(_ descriptor: Int32) -> Bool {
        var waits = 0
        while true {
            var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let count = poll(&wait, 1, 500)
            if count > 0 || count < 0 && errno != EINTR { return true }
            let isOver = state.withLock { state in
                guard state.isEnding else { return false }
                waits += 1
                if waits >= lastWaits { state.isGivenUp = true }
                return state.isGivenUp
            }
            if isOver { return false }
        }
    }

    private static func open(_ destination: AccessLogSettings.Destination) throws(SystemError) -> Target {
        switch destination {
        case .off: return Target(descriptor: -1)
        case .stdout: return Target(descriptor: STDOUT_FILENO, mayBlock: mayBlock(STDOUT_FILENO))
        case .stderr: return Target(descriptor: STDERR_FILENO, mayBlock: mayBlock(STDERR_FILENO))
        case .file(let path):
            // The open is non-blocking: opening a named pipe without a reader fails then, instead of waiting forever.
            let descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o640)
            guard descriptor >= 0 else { throw SystemError("open the access log \(path)") }
            return Target(descriptor: descriptor, path: path, mayBlock: mayBlock(descriptor))
        }
    }

    private static func mayBlock(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
    }
}

/// The access log of one loop: writes a line as soon as its answer is complete. Loop-bound.
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
        // The timer is this object's own and ends with it, so the reference is unowned; a weak one would slow down
        // every use.
        timer = LoopTimer(on: loop) { [unowned self] in flush() }
    }

    /// True if lines are logged.
    var isOn: Bool { sink.format != nil }

    /// True if the format has User-Agent and Referer.
    var needsAgent: Bool { sink.format == .combined || sink.format == .json }

    /// True if the format has the request id and the host.
    var needsID: Bool { sink.format == .json }

    /// True if request ids are forwarded to origins.
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
