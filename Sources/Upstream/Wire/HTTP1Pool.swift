// The HTTP/1.1 connections of one loop to origins: the idle ones, their limits, and the transfers that wait.

import EventLoop
import TLS

/// The key of a connection: no connection is used for another origin, or through another proxy.
struct ConnectionsKey: Hashable {
    let host: String
    let port: UInt16
    let proxy: UpstreamProxy?

    init(_ origin: Origin) {
        (host, port, proxy) = (origin.url.host, origin.url.port, origin.proxy)
    }
}

/// The connections to one host and port; loop-bound.
final class OriginConnections {
    let key: ConnectionsKey
    /// The idle connections, the newest last. Unchecked, since a check would be paid for with every request: only the
    /// pool adds and removes connections, one at a time, and closes or hands over one only after it is removed.
    @exclusivity(unchecked) fileprivate(set) var idle: [HTTP1Connection] = []
    /// The number of connections that are open or being opened.
    fileprivate var count = 0
    /// The transfers that wait for one of the limited connections, and the addresses that each may go to.
    fileprivate var waiting: [(transfer: Transfer, addresses: [SocketAddress], isFresh: Bool)] = []

    init(_ key: ConnectionsKey) { self.key = key }

    fileprivate var isEmpty: Bool { count == 0 && waiting.isEmpty }
}

/// The connections of one loop; loop-bound. The client and every connection hold it, until `close()` releases the idle
/// connections.
final class HTTP1Pool {
    /// The longest idle time of a connection, in nanoseconds, the same as libcurl's default. If the origin announces a
    /// shorter time, that time less a margin counts.
    static let longestIdle: UInt64 = 118_000_000_000

    let loop: EventLoop
    private let limits: UpstreamLimits
    /// What the TLS sessions of upgrades share.
    private(set) lazy var room = TLSRoom()
    /// The read buffer that all connections share; its bytes are not used after a callback. Owned by this object; used
    /// within one callback at a time.
    let buffer: UnsafeMutableRawBufferPointer
    // Unchecked, since a check would be paid for with every request: a buffer is taken or given back in one step, which
    // makes no other call.
    @exclusivity(unchecked) private var spare: [SendBuffer] = []
    private var groups: [ConnectionsKey: OriginConnections] = [:]
    private var pruneAt = 64
    private var idleCount = 0
    private var isClosed = false
    /// The number of open sockets.
    var socketCount = 0
    private var sweep: LoopTimer?
    private var isSweeping = false
    // Unowned: the client clears it when it ends. A weak reference would slow down every event.
    unowned var client: (any TransferClient)?

    init(on loop: EventLoop, limits: UpstreamLimits) {
        self.loop = loop
        self.limits = limits
        buffer = .allocate(byteCount: limits.bufferSize, alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// Runs an event of a connection, and delivers its results at the end.
    func event(_ body: () -> Void) {
        client?.beginEvent()
        body()
        client?.endEvent()
    }

    /// The connections to an origin.
    func connections(to origin: Origin) -> OriginConnections {
        // The client always gives an origin the same carrier, this pool or libcurl, so this object is one of the
        // pool's.
        if let known = origin.carried { return unsafeDowncast(known, to: OriginConnections.self) }
        let new = self.group(ConnectionsKey(origin))
        origin.carried = new
        return new
    }

    /// The connections with this key; the same object as long as one is in use.
    private func group(_ key: ConnectionsKey) -> OriginConnections {
        if let group = groups[key] { return group }
        if groups.count >= pruneAt { prune() }
        let group = OriginConnections(key)
        groups[key] = group
        return group
    }

    /// Drops origins that are no longer in use.
    private func prune() {
        for key in Array(groups.keys) where groups[key]?.isEmpty == true && isKnownUniquelyReferenced(&groups[key]) {
            groups[key] = nil
        }
        pruneAt = max(64, 2 * groups.count)
    }

    // MARK: - A connection for a transfer

    /// Has the transfer carried by an idle connection to one of the addresses, or by a new one, or later.
    /// - Parameter isFresh: whether not to use an idle one.
    func carry(_ transfer: Transfer, to group: OriginConnections, at addresses: [SocketAddress], isFresh: Bool) {
        if !isFresh, let connection = takeIdle(group, addresses) {
            return connection.carry(transfer, isReused: true)
        }
        let connection = transfer.carrier as? HTTP1Connection ?? HTTP1Connection(self, group)
        transfer.attach(to: connection)
        transfer.deadlines.enter(.connecting, now: Monotonic.now())
        transfer.armTimer()
        guard makeRoom(group) else {
            group.waiting.append((transfer, addresses, isFresh))
            return connection.wait()
        }
        group.count += 1
        connection.open(addresses, transfer)
    }

    /// An idle connection to one of the addresses on which nothing has arrived: neither its end, nor bytes that no
    /// request asked for and that would pass as the answer to the next one.
    private func takeIdle(_ group: OriginConnections, _ addresses: [SocketAddress]) -> HTTP1Connection? {
        let now = Monotonic.coarse()
        var position = group.idle.count
        while position > 0 {
            position -= 1
            let connection = group.idle[position]
            // The addresses are those that the rules of this transfer allow.
            guard let remote = connection.remote, addresses.contains(remote) else { continue }
            group.idle.remove(at: position)
            idleCount -= 1
            if now < connection.idleUntil, connection.hasNoPendingInput { return connection }
            drop(connection)
        }
        return nil
    }

    private func makeRoom(_ group: OriginConnections) -> Bool {
        if limits.connectionsPerHost == 0 || group.count < limits.connectionsPerHost { return true }
        guard !group.idle.isEmpty else { return false }
        idleCount -= 1
        drop(group.idle.removeFirst())
        return true
    }

    /// Closes a connection that is in no list; waiting transfers are not told.
    private func drop(_ connection: HTTP1Connection) {
        connection.close()
        connection.group.count -= 1
    }

    /// Starts waiting transfers as long as there is room.
    private func serveWaiting(_ group: OriginConnections) {
        while !group.waiting.isEmpty, !isClosed,
            group.count < limits.connectionsPerHost || !group.idle.isEmpty
        {
            let next = group.waiting.removeFirst()
            carry(next.transfer, to: group, at: next.addresses, isFresh: next.isFresh)
        }
    }

    /// Removes the transfer of a waiting connection, which has ended.
    func stopWaiting(_ connection: HTTP1Connection) {
        connection.group.waiting.removeAll { $0.transfer.carrier == nil || $0.transfer.carrier === connection }
    }

    /// Counts a connection that was closed, or could not be opened.
    func left(_ connection: HTTP1Connection) {
        connection.group.count -= 1
        serveWaiting(connection.group)
    }

    // MARK: - Idle connections

    /// Keeps an idle connection. False if it has to be closed instead.
    func keep(_ connection: HTTP1Connection) -> Bool {
        guard !isClosed else { return false }
        let group = connection.group
        group.idle.append(connection)
        idleCount += 1
        if idleCount > max(1, limits.idleConnections) { dropOldest() }
        startSweep()
        if !group.waiting.isEmpty { serveWaiting(group) }
        return true
    }

    /// Drops an idle connection on which something arrived: its end, or bytes that no request asked for.
    func dropIdle(_ connection: HTTP1Connection) {
        let group = connection.group
        guard let position = group.idle.lastIndex(where: { $0 === connection }) else { return }
        group.idle.remove(at: position)
        idleCount -= 1
        connection.close()
        left(connection)
    }

    private func dropOldest() {
        let oldest = groups.values.compactMap(\.idle.first).min { $0.idleSince < $1.idleSince }
        if let oldest { dropIdle(oldest) }
    }

    /// Starts the timer that closes connections that have been idle for too long.
    private func startSweep() {
        guard !isSweeping else { return }
        isSweeping = true
        // Unowned: this object owns the timer, which ends with it.
        let timer = sweep ?? LoopTimer(onThreadOf: loop) { [unowned self] in sweepOut() }
        sweep = timer
        timer.start(after: Self.longestIdle)
    }

    private func sweepOut() {
        isSweeping = false
        let now = Monotonic.coarse()
        for group in groups.values {
            for connection in group.idle where now >= connection.idleUntil { dropIdle(connection) }
        }
        if idleCount > 0 { startSweep() }
    }

    // MARK: - Buffers

    func takeBuffer() -> SendBuffer { spare.popLast() ?? SendBuffer() }

    func giveBack(_ buffer: SendBuffer) {
        guard spare.count < 8, buffer.capacity <= 1 << 17 else { return }
        buffer.removeAll()
        spare.append(buffer)
    }

    // MARK: - Teardown

    /// Closes every idle connection; the caller has ended every transfer.
    func close() {
        isClosed = true
        sweep?.cancel()
        for group in groups.values {
            let idle = group.idle
            group.idle = []
            for connection in idle { drop(connection) }
        }
        idleCount = 0
        groups = [:]
    }
}

@available(*, unavailable) extension HTTP1Pool: Sendable {}
