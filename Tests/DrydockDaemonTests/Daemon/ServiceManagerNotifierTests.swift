// What the daemon tells the service manager: messages, and a service manager that hears nothing.

import EventLoop
import Glibc
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct ServiceManagerNotifierTests {
    @Test("a service manager that takes no messages holds nothing up, and later ones reach it")
    func deaf() throws {
        let folder = try TemporaryFolder()
        let address = try #require(SocketAddress(unixPath: folder.file("notify")))
        let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let (manager, filler) = (socket(AF_UNIX, kind, 0), socket(AF_UNIX, kind, 0))
        defer {
            close(manager)
            close(filler)
        }
        try #require(address.withPointer { bind(manager, $0, $1) } == 0)
        try #require(address.withPointer { connect(filler, $0, $1) } == 0)
        // As many as the kernel keeps.
        while send(filler, "x", 1, 0) == 1 {}
        #expect(errno == EAGAIN)
        let notifier = ServiceManagerNotifier(environment: ["NOTIFY_SOCKET": folder.file("notify")])
        notifier.stopping()
        var bytes = [UInt8](repeating: 0, count: 100)
        while recv(manager, &bytes, bytes.count, 0) == 1 {}
        #expect(errno == EAGAIN, "the message found no room")
        notifier.forget("proxy.1")
        let count = recv(manager, &bytes, bytes.count, 0)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "FDSTOREREMOVE=1\nFDNAME=proxy.1")
    }
}
