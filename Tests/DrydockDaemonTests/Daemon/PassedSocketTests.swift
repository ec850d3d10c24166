// What systemd passes: the variables that say so, the names of the sockets, and sockets that are not taken.

import EventLoop
import Glibc
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct PassedSocketTests {
    private func variables(_ count: String, _ names: String? = nil, process: pid_t = getpid()) -> [String: String] {
        var variables = ["LISTEN_PID": "\(process)", "LISTEN_FDS": count]
        variables["LISTEN_FDNAMES"] = names
        return variables
    }

    @Test("each name says what its socket is for; without a name clients connect there")
    func names() throws {
        let names = "proxy:admin:drydock.socket::unknown:admin:metrics"
        let passed = try PassedSocket.all(variables("7", names))
        #expect(passed.map(\.descriptor) == [3, 4, 5, 6, 7, 8, 9])
        #expect(passed.map(\.name) == ["proxy", "admin", "drydock.socket", "", "unknown", "admin", "metrics"])
        #expect(passed.map(\.role) == [.proxy, .admin, .proxy, .proxy, .proxy, .admin, .metrics])
        #expect(try PassedSocket.all(variables("2")).map(\.role) == [.proxy, .proxy])
    }

    @Test("what a daemon before has left is told from the sockets of units, and the keys of its tickets are no socket")
    func kept() throws {
        let names = "proxy.1:admin.12:ticket-keys:metrics.3:proxy-tls"
        let passed = try PassedSocket.all(variables("5", names))
        #expect(passed.map(\.descriptor) == [3, 4, 6, 7])
        #expect(passed.map(\.role) == [.proxy, .admin, .metrics, .proxy])
        #expect(passed.map(\.isKept) == [true, true, true, false])
        for name in ["proxy.", "proxy.x", "other.1", "proxy.1.2", "proxy.99999"] {
            #expect(throws: DaemonError.self) { try PassedSocket.all(variables("1", name)) }
        }
    }

    @Test("a socket of the process before is taken where its address is named again, and by no other address")
    func usedAgain() throws {
        func kept(_ host: String) throws -> ListeningSocket {
            try ListeningSocket.adopt(listening(host))
        }
        let (one, two) = (try kept("127.0.0.1"), try kept("127.0.0.2"))
        defer { for socket in [one, two] { socket.discard() } }
        var candidates = [one, two]
        let bound = try ListeningSet.bind(
            [.tcp(host: "127.0.0.2", port: two.address.port), .tcp(host: "127.0.0.3", port: 0)],
            using: &candidates
        )
        defer { bound.last?.discard() }
        #expect(bound.map(\.descriptor).first == two.descriptor && bound.count == 2)
        #expect(candidates.map(\.descriptor) == [one.descriptor])
        // Where one address cannot be had, those of the process before stay open for it.
        var again = [two]
        #expect(throws: ListeningError.self) {
            try ListeningSet.bind(
                [.tcp(host: "127.0.0.2", port: two.address.port), .tcp(host: "127.0.0.1", port: one.address.port)],
                using: &again
            )
        }
        #expect(again.map(\.descriptor) == [two.descriptor] && ListeningSocket.listens(two.descriptor))
    }

    @Test("nothing is passed to another process, and nothing without a number")
    func nothing() throws {
        #expect(try PassedSocket.all([:]).isEmpty)
        #expect(try PassedSocket.all(["LISTEN_FDS": "1"]).isEmpty)
        #expect(try PassedSocket.all(["LISTEN_PID": "\(getpid())"]).isEmpty)
        #expect(try PassedSocket.all(variables("1", "admin", process: getpid() + 1)).isEmpty)
        #expect(try PassedSocket.all(variables("0", "")).isEmpty)
    }

    @Test(
        "what is not understood is no start",
        arguments: [
            ("2", "proxy:amdin", "under the name 'amdin' (descriptor 4)"),
            (
                "1", "Admin",
                "write FileDescriptorName=proxy, FileDescriptorName=admin or FileDescriptorName=metrics into its socket unit"
            ),
            ("1", "connection", "under the name 'connection'"),
            ("1", "drydock-admin.socket", "write FileDescriptorName=proxy, FileDescriptorName=admin"),
            ("1", "drydock-metrics.socket", "FileDescriptorName=metrics"),
            ("2", "proxy", "LISTEN_FDNAMES has 1 names"),
            ("x", "proxy", "LISTEN_FDS is 'x'"), ("-1", "", "LISTEN_FDS is '-1'"), ("1025", "", "from 0 to 1024"),
        ]
    )
    func refused(_ count: String, _ names: String, _ part: String) {
        let error = #expect(throws: DaemonError.self) { try PassedSocket.all(variables(count, names)) }
        #expect(error?.description.contains(part) == true, "\(String(describing: error))")
    }

    private func listening(_ host: String) throws -> Int32 {
        try ListeningSocket.bind(#require(SocketAddress(numericHost: host, port: 0))).descriptor
    }

    @Test("a socket that listens is taken with its address, and goes to no other program")
    func taken() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("admin.sock")
        let proxy = try listening("0.0.0.0")
        let admin = try ListeningSocket.bind(unixPath: path, mode: 0o600).descriptor
        #expect(fcntl(proxy, F_SETFD, 0) == 0)
        let sockets = try PassedSocket.take([
            PassedSocket(descriptor: proxy, name: "proxy", role: .proxy),
            PassedSocket(descriptor: admin, name: "admin", role: .admin),
        ])
        #expect(sockets.map(\.descriptor) == [proxy, admin])
        #expect(sockets.map(\.address.host) == ["0.0.0.0", path])
        #expect(fcntl(proxy, F_GETFD) & FD_CLOEXEC != 0)
        for socket in sockets { socket.discard() }
        #expect(access(path, F_OK) == 0, "the file is whose who has passed the socket")
    }

    @Test("the admin API is never on an address that other machines reach")
    func openAdmin() throws {
        let descriptors = [try listening("127.0.0.1"), try listening("0.0.0.0")]
        let error = #expect(throws: DaemonError.self) {
            try PassedSocket.take(descriptors.map { PassedSocket(descriptor: $0, name: "admin", role: .admin) })
        }
        #expect(error?.description.contains("listens on 0.0.0.0:") == true, "\(String(describing: error))")
    }

    @Test("metrics are told at any address")
    func openMetrics() throws {
        let sockets = try PassedSocket.take([
            PassedSocket(descriptor: listening("0.0.0.0"), name: "metrics", role: .metrics)
        ])
        #expect(sockets.map(\.address.host) == ["0.0.0.0"])
        for socket in sockets { socket.discard() }
    }

    @Test("what takes no connections is refused: a datagram socket, a connection, a file")
    func notListening() throws {
        let stream = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let datagram = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        for descriptor in [
            socket(AF_INET, datagram, 0), socket(AF_INET, stream, 0), open("/dev/null", O_RDONLY | O_CLOEXEC),
        ] {
            let error = #expect(throws: DaemonError.self) {
                try PassedSocket.take([PassedSocket(descriptor: descriptor, name: "proxy", role: .proxy)])
            }
            #expect(error?.description.contains("takes no connections; write ListenStream=") == true)
        }
    }
}
