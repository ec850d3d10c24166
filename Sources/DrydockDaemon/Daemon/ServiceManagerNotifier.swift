// The notifications to systemd (sd_notify(3)), without libsystemd.

import EventLoop
import Glibc

/// Sends the daemon's state to the service manager; does nothing if there is none.
struct ServiceManagerNotifier: Sendable {
    /// Seconds for which a message waits for room at the service manager.
    private static let patience = 1

    private let address: String?
    /// Nanoseconds within which the service manager expects a sign of life (`WatchdogSec=`); nil if it expects none
    /// from this process.
    let watchdog: UInt64?

    /// - Parameter environment: `NOTIFY_SOCKET` names a unix datagram socket; a leading `@` means the abstract
    ///   namespace. `WATCHDOG_USEC` and `WATCHDOG_PID` are as sd_watchdog_enabled(3) has them.
    init(environment: [String: String]) {
        address = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        let isMeant = environment["WATCHDOG_PID"].map { pid_t($0) == getpid() } ?? true
        let wanted = environment["WATCHDOG_USEC"].flatMap { UInt64($0) } ?? 0
        watchdog =
            address != nil && isMeant && wanted > 0 ? wanted.multipliedReportingOverflow(by: 1000).partialValue : nil
    }

    /// Tells that all is well; if that is not told within ``watchdog``, the service manager restarts the daemon.
    func alive() { send("WATCHDOG=1") }

    /// Tells that the sockets listen, or that a reload has ended.
    func ready(_ status: String) { send("READY=1\nSTATUS=\(status)") }

    /// Tells that a reload has begun; the time lets systemd tell it from an older one.
    func reloading() { send("RELOADING=1\nMONOTONIC_USEC=\(Monotonic.now() / 1000)") }

    /// Replaces the status line.
    func status(_ status: String) { send("STATUS=\(status)") }

    func stopping() { send("STOPPING=1\nSTATUS=finishing the answers under way") }

    /// Stores a copy of a descriptor with the service manager, which passes it to the next process of the service.
    func store(_ descriptor: Int32, as name: String) { send("FDSTORE=1\nFDNAME=\(name)", with: [descriptor]) }

    /// Has the service manager close what it stores under this name.
    func forget(_ name: String) { send("FDSTOREREMOVE=1\nFDNAME=\(name)") }

    /// Sends a message, and ignores a failure: a service manager that does not listen is no reason to stop.
    private func send(_ message: String, with descriptors: [Int32] = []) {
        guard let address else { return }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        var path = Array(address.utf8)
        guard path.count < MemoryLayout.size(ofValue: target.sun_path) else { return }
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        PassedFiles.boundWaits(of: descriptor, seconds: Self.patience)
        let isConnected = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) == 0 }
        }
        if isConnected { try? PassedFiles.send(Array(message.utf8), with: descriptors, to: descriptor) }
    }
}
