// The daemon's process as a new one of the same program, with the sockets that it has had.

import Glibc
import ProxyServer

/// What a daemon leaves to a new program in its process. No thread of the daemon runs any more.
package struct ProcessAgain: Sendable {
    let sockets: [(role: ListenerRole, descriptor: Int32)]
    let ticketKeys: [UInt8]

    /// Becomes the same program with the same arguments but `--take-over`. The sockets are passed to it as a service manager
    /// does (sd_listen_fds(3)).
    /// - Returns: why that has failed; it returns for no other reason.
    package func begin(_ arguments: [String] = CommandLine.arguments) -> String {
        var passed = sockets.map(\.descriptor)
        var names: [String] = []
        for (role, _) in sockets { names.append(KeptSocket.name(role, names.count + 1)) }
        if let file = TicketKeyFile() {
            file.write(ticketKeys)
            passed.append(file.descriptor)
            names.append(TicketKeyFile.name)
        }
        // Out of the way first of the numbers that they get.
        let end = Int32(3 + passed.count)
        let copies = passed.map { fcntl($0, F_DUPFD_CLOEXEC, end) }
        guard copies.allSatisfy({ $0 >= 0 }) else {
            return "its sockets cannot be copied: \(String(cString: strerror(errno)))"
        }
        for (index, copy) in copies.enumerated() where dup2(copy, 3 + Int32(index)) < 0 {
            return "its sockets cannot be passed: \(String(cString: strerror(errno)))"
        }
        setenv("LISTEN_PID", "\(getpid())", 1)
        setenv("LISTEN_FDS", "\(passed.count)", 1)
        setenv("LISTEN_FDNAMES", names.joined(separator: ":"), 1)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.filter { $0 != "--take-over" }.map { strdup($0) }
        words.append(nil)
        execv("/proc/self/exe", words)
        return "its program cannot be started again: \(String(cString: strerror(errno)))"
    }
}
