// The cheapest way of sending a large body in memory to a client on this machine: copied, or by `sendfile` from memory
// that is also a file. Processors differ.

import CLinux
import Glibc
import Synchronization

/// The nanoseconds of CPU time, of both ends, for sending a body of ``length`` bytes over a loopback connection.
///
/// `sendfile` passes pages, whose reference counts both ends change; a copy changes none. The cheaper way depends on
/// the distance of the two cores, so it is measured. For a client on another machine the network card reads the pages,
/// so there `sendfile` always saves the copy.
package struct LoopbackSending: Sendable, Equatable {
    /// The length of the body in one measurement, in bytes.
    package static let length = 256 << 10
    /// The number of measurements of each kind; the first eight are for the caches and the clock of the processor.
    private static let rounds = 72

    package let copied: UInt64
    package let sentAsFile: UInt64

    package init(copied: UInt64, sentAsFile: UInt64) {
        self.copied = copied
        self.sentAsFile = sentAsFile
    }

    /// Whether copies are cheaper. A difference of less than a twentieth may be chance, and changes nothing.
    package var prefersCopies: Bool { copied + copied / 20 < sentAsFile }

    /// Measures both ways; blocks for some milliseconds, and for ten seconds at most.
    /// - Throws: `SystemError` if there is no loopback, or no file in memory.
    package static func measure() throws(SystemError) -> LoopbackSending {
        guard let file = MemoryFile(count: length) else { throw SystemError("make a file in memory") }
        let (near, far) = try connectedPair()
        defer { close(near) }
        let body = UnsafeRawBufferPointer(start: file.base, count: length)
        // The thread ends with the connection, and closes its end.
        DetachedThread.run { receive(from: far) }
        var times: (copied: [UInt64], sentAsFile: [UInt64]) = ([], [])
        var received: UInt64 = 0
        for round in 0..<2 * rounds {
            // Each kind is measured twice in turn: the second measurement finds the caches as the first one of its kind
            // left them.
            let isCopied = round / 2 % 2 == 0
            let began = threadTime()
            try isCopied ? copy(body, to: near) : send(file, to: near)
            let total = try confirmation(on: near)
            let took = threadTime() - began + (total - received)
            received = total
            if round < 16 { continue }
            if isCopied { times.copied.append(took) } else { times.sentAsFile.append(took) }
        }
        return LoopbackSending(copied: median(times.copied), sentAsFile: median(times.sentAsFile))
    }

    private static func median(_ times: [UInt64]) -> UInt64 { times.sorted()[times.count / 2] }

    /// Two ends of a connection over 127.0.0.1, both blocking for a limited time.
    private static func connectedPair() throws(SystemError) -> (near: Int32, far: Int32) {
        guard let any = SocketAddress(numericHost: "127.0.0.1", port: 0) else {
            throw SystemError("127.0.0.1", code: EINVAL)
        }
        let listening = try ListeningSocket.bind(any, backlog: 1)
        defer { listening.discard() }
        let far = try Socket.connect(to: listening.address)
        var ready = pollfd(fd: listening.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, 1000)
        var (peer, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        let near = c_linux_accept(listening.descriptor, &peer, &length)
        guard near >= 0 else {
            let error = SystemError("accept on \(listening.address)")
            close(far)
            throw error
        }
        for descriptor in [near, far] {
            _ = fcntl(descriptor, F_SETFL, 0)
            c_linux_bound_waits(descriptor, 1)
            Socket.setNoDelay(descriptor)
        }
        return (near, far)
    }

    private static func copy(_ body: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
        var left = body
        while !left.isEmpty {
            let count = Glibc.send(descriptor, left.baseAddress, left.count, Int32(MSG_NOSIGNAL))
            guard count > 0 else { throw SystemError("send over loopback") }
            left = UnsafeRawBufferPointer(rebasing: left[count...])
        }
    }

    private static func send(_ file: MemoryFile, to descriptor: Int32) throws(SystemError) {
        var position: off_t = 0
        while position < length {
            guard sendfile(descriptor, file.descriptor, &position, length - Int(position)) > 0 else {
                throw SystemError("sendfile over loopback")
            }
        }
    }

    /// The CPU time of the other end's thread so far, which it sends after it has received a whole body.
    private static func confirmation(on descriptor: Int32) throws(SystemError) -> UInt64 {
        var total: UInt64 = 0
        guard recv(descriptor, &total, 8, Int32(MSG_WAITALL)) == 8 else { throw SystemError("receive over loopback") }
        return total
    }

    private static func receive(from descriptor: Int32) {
        defer { close(descriptor) }
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            var have = 0
            while case .bytes(let count) = Socket.read(descriptor, into: buffer) {
                have += count
                guard have >= length else { continue }
                have -= length
                var total = threadTime()
                guard Glibc.send(descriptor, &total, 8, Int32(MSG_NOSIGNAL)) == 8 else { return }
            }
        }
    }

    /// The CPU time of this thread in nanoseconds.
    private static func threadTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

// MARK: - Memory that is also a file

/// Memory that is also a file, so that `sendfile` sends its bytes without a copy: an anonymous file (memfd_create(2)),
/// mapped as a whole, and unmapped and closed with its last reference.
///
/// Sendable: its members are constant. The user of its bytes has to protect them.
package final class MemoryFile: Sendable {
    package let descriptor: Int32
    /// The mapped memory, which has as many bytes as the file; valid as long as the file is held, and never moved.
    package nonisolated(unsafe) let base: UnsafeMutableRawPointer
    private let count: Int

    private static let open = Atomic<Int>(0)

    /// The most files at the same time: a quarter of the descriptors that the process may have (RLIMIT_NOFILE); the
    /// rest is for connections.
    package static let limit = DescriptorLimit.current.memoryFiles

    /// Makes a file; nil if the limit is reached, or the kernel refuses: the caller then uses heap memory.
    package init?(count: Int, limit: Int = MemoryFile.limit) {
        guard count > 0 else { return nil }
        guard Self.open.add(1, ordering: .relaxed).oldValue < limit else {
            Self.open.subtract(1, ordering: .relaxed)
            return nil
        }
        let descriptor = c_linux_memory_file(count)
        // All pages are mapped at once: a page fault for each would cost more than the saved copy.
        let base =
            descriptor < 0
            ? MAP_FAILED : mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0)
        guard let base, base != MAP_FAILED else {
            if descriptor >= 0 { close(descriptor) }
            Self.open.subtract(1, ordering: .relaxed)
            return nil
        }
        self.descriptor = descriptor
        self.base = base
        self.count = count
    }

    /// The offset in the file at which the bytes begin.
    package func offset(of bytes: UnsafeRawBufferPointer) -> Int64 {
        bytes.baseAddress.map { Int64($0 - UnsafeRawPointer(base)) } ?? 0
    }

    deinit {
        munmap(base, count)
        close(descriptor)
        Self.open.subtract(1, ordering: .relaxed)
    }
}
