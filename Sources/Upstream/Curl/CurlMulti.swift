// The multi handle on its loop: sockets and timers that libcurl wants watched, the idle connections, and the functions
// that libcurl calls.

import CLibcurl
import EventLoop
import Glibc

/// One libcurl multi handle, and the context of its callbacks; loop-bound.
///
/// It outlives the handle: `curl_multi_cleanup` still calls back while it closes idle connections.
final class CurlMulti {
    let loop: EventLoop
    let certificates = CertificateWatch()
    // The handle; freed by `close()`, which sets it to nil.
    private(set) var raw: UnsafeMutableRawPointer?
    private var sockets: [Int32: SocketWatch] = [:]
    private var idle: [ConnectionName: Int32] = [:]
    private let timer: LoopTimer
    private let timerTarget: TimerTarget
    /// The time when libcurl wants to be called, and the time when the timer fires, which is no later, so that the
    /// timer need not be set anew for each transfer. Monotonic nanoseconds.
    private var wantedAt: UInt64?
    private var timerAt: UInt64?
    /// True while libcurl is on the stack: none of its functions may be called.
    private(set) var isInside = false
    /// True if libcurl's timer is due.
    private(set) var isDue = false
    private var running: Int32 = 0
    /// The TLS sessions whose close_notify is watched, and whether it arrived; the addresses are compared and never
    /// read.
    private var tlsEnds: [UnsafeRawPointer: Bool] = [:]

    /// - Parameter settle: called after every event, outside libcurl.
    init?(on loop: isolated EventLoop, limits: UpstreamLimits, settle: @escaping () -> Void) {
        guard let raw = curl_multi_init() else { return nil }
        self.loop = loop
        self.raw = raw
        let target = TimerTarget(settle: settle)
        timerTarget = target
        // Unowned: this object holds the target as long as it holds the timer.
        timer = LoopTimer(on: loop) { [unowned target] in target.fired() }
        target.multi = self
        c_curl_multi_set_socket_function(raw) { _, descriptor, what, context, _ in
            // Unretained here and below: the client holds this object until the multi handle is freed.
            guard let context else { return 0 }
            Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().watch(descriptor, what)
            return 0
        }
        c_curl_multi_set_timer_function(raw) { _, milliseconds, context in
            guard let context else { return 0 }
            Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().schedule(milliseconds)
            return 0
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        c_curl_multi_set_pointer(raw, CURLMOPT_SOCKETDATA, context)
        c_curl_multi_set_pointer(raw, CURLMOPT_TIMERDATA, context)
        c_curl_multi_set_long(raw, CURLMOPT_PIPELINING, 0)
        c_curl_multi_set_long(raw, CURLMOPT_MAX_HOST_CONNECTIONS, limits.connectionsPerHost)
        c_curl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, max(1, limits.idleConnections))
    }

    deinit { timerTarget.multi = nil }

    // MARK: - Into libcurl

    /// Calls libcurl; every call that can call back goes through here. Nil if libcurl is on the stack already, or the
    /// handle is freed.
    func enter<R>(_ body: (UnsafeMutableRawPointer) -> R) -> R? {
        guard let raw, !isInside else { return nil }
        isInside = true
        defer { isInside = false }
        return body(raw)
    }

    /// Runs the work that libcurl's timer is due for.
    func runDue() {
        isDue = false
        _ = enter { curl_multi_socket_action($0, CURL_SOCKET_BAD, 0, &running) }
    }

    /// The next transfer that ended: its handle and result; nil if there is none.
    func nextFinished() -> (easy: UnsafeMutableRawPointer, result: CURLcode)? {
        guard let raw else { return nil }
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            return (easy, c_curl_message_result(message))
        }
        return nil
    }

    fileprivate func socketReady(_ descriptor: Int32, _ readiness: IOReadiness) {
        let flags = readiness == .read ? CURL_CSELECT_IN : CURL_CSELECT_OUT
        _ = enter { curl_multi_socket_action($0, descriptor, flags, &running) }
        timerTarget.settle()
    }

    fileprivate func timerFired() {
        timerAt = nil
        guard let wantedAt else { return }
        if wantedAt <= Monotonic.now() { isDue = true } else { startTimer(wantedAt) }
    }

    private func startTimer(_ time: UInt64) {
        if let timerAt, timerAt <= time { return }
        timerAt = time
        let now = Monotonic.now()
        timer.start(after: time > now ? time - now : 0)
    }

    // MARK: - What libcurl wants watched

    private func schedule(_ milliseconds: Int) {
        wantedAt = nil
        switch milliseconds {
        case ..<0: isDue = false
        case 0: isDue = true
        default:
            let time = Monotonic.now() &+ UInt64(milliseconds) * 1_000_000
            wantedAt = time
            startTimer(time)
        }
    }

    private func watch(_ descriptor: Int32, _ what: Int32) {
        if what == CURL_POLL_REMOVE {
            // The socket stays in epoll, so that the next transfer on this connection needs no system call.
            sockets[descriptor]?.wanted = nil
            return
        }
        let watch = sockets[descriptor] ?? makeWatch(descriptor)
        let wanted = IOReadiness(read: what & CURL_POLL_IN != 0, write: what & CURL_POLL_OUT != 0)
        watch.wanted = wanted
        watch.event?.watch(wanted)
    }

    private func makeWatch(_ descriptor: Int32) -> SocketWatch {
        let watch = SocketWatch(descriptor: descriptor, multi: self)
        watch.event = IOEvent(onThreadOf: loop, descriptor: descriptor, handler: watch)
        sockets[descriptor] = watch
        return watch
    }

    // MARK: - Connections

    func openSocket(_ address: curl_sockaddr) -> Int32 {
        let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
        // libcurl closes a socket that never connected without a callback, so a record of this descriptor is out of
        // date.
        if descriptor >= 0 { forget(descriptor) }
        return descriptor
    }

    func closeSocket(_ descriptor: Int32) -> Int32 {
        forget(descriptor)
        return Glibc.close(descriptor)
    }

    private func forget(_ descriptor: Int32) {
        guard let watch = sockets.removeValue(forKey: descriptor) else { return }
        watch.event?.cancel()
        if let name = watch.name, idle[name] == descriptor { idle[name] = nil }
    }

    /// Called when a transfer has left its connection in libcurl's cache.
    /// - Parameter longestIdle: for how long it may be reused, in nanoseconds; nil if the origin has not said.
    func becameIdle(_ descriptor: Int32, name: ConnectionName, longestIdle: UInt64?) {
        guard let watch = sockets[descriptor] else { return }
        watch.name = name
        watch.idleUntil = longestIdle.map { Monotonic.coarse() &+ $0 } ?? .max
        watch.isIdle = true
        idle[name] = descriptor
        watch.event?.watch(.read)
    }

    /// Whether an idle connection must not be reused: the origin's time limit for it is over, or it is readable, which
    /// means that it has ended or has bytes that belong to no request.
    func isSpent(_ name: ConnectionName) -> Bool {
        guard let descriptor = idle[name] else { return false }
        if let watch = sockets[descriptor], watch.idleUntil <= Monotonic.coarse() { return true }
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) > 0
    }

    /// Records that a transfer sends its request on this connection now. libcurl may not report it until much later: a
    /// transfer that is held back at its first bytes never had its socket watched.
    func noLongerIdle(_ name: ConnectionName) {
        guard let descriptor = idle.removeValue(forKey: name) else { return }
        sockets[descriptor]?.isIdle = false
    }

    // MARK: - The ends of TLS

    /// Watches for close_notify on the connection of a handle; within libcurl.
    /// - Returns: the session to query later; nil if it cannot be watched.
    func hearEnd(of easy: UnsafeMutableRawPointer) -> UnsafeRawPointer? {
        let context = Unmanaged.passUnretained(self).toOpaque()
        let session = c_curl_hear_tls(
            easy,
            { isSent, _, type, bytes, length, session, context in
                // This is an alert (RFC 8446 section 6): its level, which is ignored, and its description.
                guard isSent == 0, type == 21, length == 2, let bytes, let session, let context else { return }
                guard bytes.load(fromByteOffset: 1, as: UInt8.self) == CurlMulti.closeNotify else { return }
                // Unretained: sessions last no longer than the multi handle, which this object outlives.
                Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().heardEnd(UnsafeRawPointer(session))
            },
            context
        )
        if let session { tlsEnds[session] = false }
        return session
    }

    /// Whether close_notify has arrived; the session is not watched any more.
    func takeEnd(_ session: UnsafeRawPointer) -> Bool { tlsEnds.removeValue(forKey: session) ?? false }

    private func heardEnd(_ session: UnsafeRawPointer) { if tlsEnds[session] != nil { tlsEnds[session] = true } }

    private static let closeNotify: UInt8 = 0

    /// The number of descriptors that libcurl uses, idle connections included.
    var socketCount: Int { sockets.count }

    // MARK: - Teardown

    /// Frees the multi handle; the caller has freed every easy handle.
    func close() {
        guard let handle = raw else { return }
        timer.cancel()
        c_curl_multi_set_socket_function(handle, nil)
        c_curl_multi_set_timer_function(handle, nil)
        isInside = true
        // This call closes the idle connections through `closeSocket`.
        curl_multi_cleanup(handle)
        isInside = false
        raw = nil
        for watch in sockets.values { watch.event?.cancel() }
        sockets.removeAll()
        idle.removeAll()
    }
}

@available(*, unavailable) extension CurlMulti: Sendable {}

/// The identity of a connection by its addresses: libcurl gives these before each request, and the descriptor only
/// afterwards.
struct ConnectionName: Hashable {
    let local: String
    let localPort: Int32
    let remote: String
    let remotePort: Int32

    /// Hashes the local port only, which differs between most connections.
    func hash(into hasher: inout Hasher) { hasher.combine(localPort) }
}

/// One descriptor of libcurl's; loop-bound, held by `CurlMulti`.
private final class SocketWatch: IOHandler {
    let descriptor: Int32
    var event: IOEvent?
    /// The readiness that a transfer waits for; nil if none does.
    var wanted: IOReadiness?
    /// Whether the connection is idle in libcurl's cache.
    var isIdle = false
    /// The time until which the connection may be used again, in coarse monotonic nanoseconds.
    var idleUntil = UInt64.max
    var name: ConnectionName?
    private unowned let multi: CurlMulti

    init(descriptor: Int32, multi: CurlMulti) {
        self.descriptor = descriptor
        self.multi = multi
    }

    func ready(_ readiness: IOReadiness) {
        guard wanted == nil else { return multi.socketReady(descriptor, readiness) }
        event?.watch([])
        // An idle connection has its end, or bytes beyond a response: libcurl finds it dead before it would use it
        // again.
        if isIdle { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
}

/// The target of the timer: the multi's initializer needs the timer before the multi is whole.
private final class TimerTarget {
    // Unowned: the multi holds this object, and clears the reference when it ends.
    unowned var multi: CurlMulti?
    let settle: () -> Void

    init(settle: @escaping () -> Void) { self.settle = settle }

    func fired() {
        multi?.timerFired()
        settle()
    }
}

// MARK: - The functions that libcurl calls

/// The functions that libcurl calls: each recovers its handle and calls one method.
enum CurlCallbacks {
    static func install(on raw: UnsafeMutableRawPointer, context: UnsafeMutableRawPointer, multi: CurlMulti) {
        c_curl_set_pointer(raw, CURLOPT_PRIVATE, context)
        c_curl_set_data_function(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), let bytes else { return 0 }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return handle.received(line: line) ? line.count : 0
        }
        c_curl_set_pointer(raw, CURLOPT_HEADERDATA, context)
        c_curl_set_data_function(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), let bytes else { return 0 }
            let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return switch handle.received(body: body) {
            case .taken: body.count
            case .pause: Int(CURL_WRITEFUNC_PAUSE)
            // Any other number than the one given fails the transfer; if there are no bytes, one does.
            case .refused: body.isEmpty ? 1 : 0
            }
        }
        c_curl_set_pointer(raw, CURLOPT_WRITEDATA, context)
        c_curl_set_data_function(raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
            guard let handle = EasyHandle.of(context), !handle.wantsNoMore, let transfer = handle.transfer, let bytes
            else { return Int(CURL_READFUNC_ABORT) }
            return switch transfer.readBody(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) {
            case .bytes(let count): count
            case .wait: Int(CURL_READFUNC_PAUSE)
            case .end: 0
            case .failed: Int(CURL_READFUNC_ABORT)
            }
        }
        c_curl_set_pointer(raw, CURLOPT_READDATA, context)
        installConnectionCallbacks(on: raw, context: context, multi: multi)
    }

    private static func installConnectionCallbacks(
        on raw: UnsafeMutableRawPointer,
        context: UnsafeMutableRawPointer,
        multi: CurlMulti
    ) {
        c_curl_set_prereq_function(raw) { context, remote, local, remotePort, localPort in
            guard let handle = EasyHandle.of(context), let remote, let local else {
                return CURL_PREREQFUNC_ABORT
            }
            let name = ConnectionName(
                local: String(cString: local),
                localPort: localPort,
                remote: String(cString: remote),
                remotePort: remotePort
            )
            return handle.mayRequest(on: name) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        c_curl_set_pointer(raw, CURLOPT_PREREQDATA, context)
        c_curl_set_resolver_start_function(raw) { _, _, context in
            // Zero lets libcurl resolve by itself.
            EasyHandle.of(context)?.mayResolve() == true ? 0 : 1
        }
        c_curl_set_pointer(raw, CURLOPT_RESOLVER_START_DATA, context)
        c_curl_set_open_socket_function(raw) { context, _, address in
            guard let handle = EasyHandle.of(context), let address else { return CURL_SOCKET_BAD }
            return handle.mayConnect(to: address) ? handle.multi.openSocket(address.pointee) : CURL_SOCKET_BAD
        }
        c_curl_set_pointer(raw, CURLOPT_OPENSOCKETDATA, context)
        c_curl_set_close_socket_function(raw) { context, descriptor in
            // The context is the multi's, since connections outlive the handles that opened them.
            guard let context else { return Glibc.close(descriptor) }
            return Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
        }
        c_curl_set_pointer(raw, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(multi).toOpaque())
        c_curl_set_debug_function(raw) { _, kind, text, count, context in
            guard kind == CURLINFO_TEXT, let text, let handle = EasyHandle.of(context) else { return 0 }
            handle.logged(UnsafeRawBufferPointer(start: text, count: count))
            return 0
        }
        c_curl_set_pointer(raw, CURLOPT_DEBUGDATA, context)
    }
}
