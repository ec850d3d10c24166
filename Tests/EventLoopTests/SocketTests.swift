// Listening, accepting, connecting, and the questions that rules ask of an address.

import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct SocketTests {
    @Test func `connections are accepted until none is left, and can be read`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 0))
        let listening = try ListeningSocket.bind(address)
        let accepted = await loop.accept(on: listening, connections: 50)
        #expect(accepted == 50)
    }

    @Test func `a second listener on one address is refused, with the address in the error`() throws {
        let first = try ListeningSocket.bind(#require(SocketAddress(numericHost: "127.0.0.1", port: 0)))
        defer { Socket.close(first.descriptor) }
        let error = #expect(throws: SystemError.self) { try ListeningSocket.bind(first.address) }
        #expect(error?.code == EADDRINUSE)
        #expect(error?.operation == "listen on 127.0.0.1:\(first.address.port)")
    }

    @Test func `a stale unix socket is replaced, a live one is not`() throws {
        let path = "/tmp/drydock-socket-\(getpid()).sock"
        let first = try ListeningSocket.bind(unixPath: path, mode: 0o600)
        #expect(throws: SystemError("listen on unix:\(path)", code: EADDRINUSE)) {
            try ListeningSocket.bind(unixPath: path, mode: 0o600)
        }
        Socket.close(first.descriptor)
        let second = try ListeningSocket.bind(unixPath: path, mode: 0o660)
        var information = stat()
        #expect(stat(path, &information) == 0 && information.st_mode & 0o777 == 0o660)
        Socket.close(second.descriptor)
        unlink(path)
    }

    @Test func `of many that begin at once on one unix socket, one has it, whatever was there before`() async throws {
        // Nobody else takes the lock of this folder.
        let folder = try TemporaryFolder("drydock-many")
        let path = folder.file("a.sock")
        for _ in 0..<50 {
            // Nobody listens on it any more: each finds a file that it may replace.
            Socket.close(try ListeningSocket.bind(unixPath: path, mode: 0o600).descriptor)
            let bound = await withTaskGroup(of: ListeningSocket?.self) { group in
                for _ in 0..<8 { group.addTask { try? ListeningSocket.bind(unixPath: path, mode: 0o600) } }
                return await group.reduce(into: [ListeningSocket]()) { all, socket in
                    if let socket { all.append(socket) }
                }
            }
            #expect(bound.count == 1)
            for socket in bound { Socket.close(socket.descriptor) }
        }
    }

    @Test func `somebody who holds the folder's lock keeps nobody from a unix socket`() throws {
        let folder = "/tmp/drydock-held-\(getpid())"
        #expect(mkdir(folder, 0o700) == 0)
        let held = open(folder, O_RDONLY | O_DIRECTORY)
        #expect(flock(held, LOCK_EX) == 0)
        let path = "\(folder)/a.sock"
        Socket.close(try ListeningSocket.bind(unixPath: path, mode: 0o600).descriptor)
        close(held)
        unlink(path)
        rmdir(folder)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.9.9.9", true), ("10.1.2.3", true), ("172.16.0.1", true), ("172.32.0.1", false),
        ("192.168.1.1", true), ("169.254.169.254", true), ("100.64.0.1", true), ("8.8.8.8", false), ("0.0.0.0", true),
        ("224.0.0.1", true), ("::1", true), ("::", true), ("fe80::1", true), ("fd00::1", true), ("ff02::1", true),
        ("::ffff:10.0.0.1", true), ("::ffff:8.8.8.8", false), ("2606:4700::1", false), ("64:ff9b::a00:1", true),
        ("2002:7f00:1::", true), ("::2", true), ("::127.0.0.1", true), ("::10.0.0.1", true), ("::8.8.8.8", true),
        ("::ffff:0:127.0.0.1", true), ("::ffff:0:a00:1", true), ("::ffff:1:a00:1", false), ("::1:0:0:1", false),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", true), ("2001::1", true), ("2001:1::1", false),
        ("2001:4860:4860::8888", false), ("2003::1", false),
    ])
    func `internal addresses are known`(host: String, isInternal: Bool) throws {
        let address = try #require(SocketAddress(numericHost: host, port: 80))
        #expect(address.isInternal == isInternal)
        #expect(address.port == 80)
    }
}

extension EventLoop {
    fileprivate func accept(on listening: ListeningSocket, connections wanted: Int) async -> Int {
        let acceptor = Acceptor()
        return await withCheckedContinuation { continuation in
            acceptor.start(on: self, listening, wanted, continuation)
        }
    }
}

private final class Acceptor {
    private var count = 0
    private var listener: Listener?
    private var clients: [Int32] = []

    func start(
        on loop: isolated EventLoop,
        _ listening: ListeningSocket,
        _ wanted: Int,
        _ done: CheckedContinuation<Int, Never>
    ) {
        listener = Listener(on: loop, socket: listening) { [self] descriptor, peer in
            count += peer.isLoopback ? 1 : 0
            Socket.close(descriptor)
            if count == wanted {
                listener?.close()
                listener = nil
                for client in clients { Socket.close(client) }
                done.resume(returning: count)
            }
        } failed: { _ in
        }
        for _ in 0..<wanted {
            if let client = try? Socket.connect(to: listening.address) { clients.append(client) }
        }
    }
}
