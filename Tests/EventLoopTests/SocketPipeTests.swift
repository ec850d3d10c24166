// A pipe between sockets: what one holds goes on to another, and what that does not take can be read.

import EventLoop
import Glibc
import Testing

@Suite struct SocketPipeTests {
    /// Two ends of one connection, which do not wait.
    private static func pair() -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0, &ends)
        return (ends[0], ends[1])
    }

    private static func send(_ socket: Int32, _ bytes: [UInt8]) -> IOResult {
        bytes.withUnsafeBytes { Socket.write(socket, $0) }
    }

    private static func read(_ socket: Int32, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { room, filled in
            if case .bytes(let read) = Socket.read(socket, into: UnsafeMutableRawBufferPointer(room)) { filled = read }
        }
    }

    @Test func `bytes go from one socket to another, as many as are wanted`() throws {
        let ((source, near), (far, sink)) = (Self.pair(), Self.pair())
        defer { for one in [source, near, far, sink] { Socket.close(one) } }
        let pipe = try #require(SocketPipe())
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        #expect(pipe.fill(from: near, count: 10) == .wouldBlock)
        #expect(Self.send(source, bytes) == .bytes(1000))
        #expect(pipe.fill(from: near, count: 600) == .bytes(600))
        #expect(pipe.empty(into: far, count: 600) == .bytes(600))
        #expect(Self.read(sink, 1000) == Array(bytes[..<600]))
        // The rest is where it was.
        #expect(Self.read(near, 1000) == Array(bytes[600...]))
        Socket.finishWriting(source)
        #expect(pipe.fill(from: near, count: 10) == .end)
    }

    @Test func `what a socket does not take is read from the pipe`() throws {
        let ((source, near), (far, sink)) = (Self.pair(), Self.pair())
        defer { for one in [source, near, far, sink] { Socket.close(one) } }
        let pipe = try #require(SocketPipe())
        while case .bytes = Self.send(far, [UInt8](repeating: 0, count: 65_536)) {}
        let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 / 3) }
        #expect(Self.send(source, bytes) == .bytes(5000))
        #expect(pipe.fill(from: near, count: 5000) == .bytes(5000))
        #expect(pipe.empty(into: far, count: 5000) == .wouldBlock)
        #expect(pipe.read(5000) == bytes)
    }

    @Test func `a socket that has gone is told`() throws {
        let ((source, near), (far, sink)) = (Self.pair(), Self.pair())
        defer { for one in [source, near, far] { Socket.close(one) } }
        let pipe = try #require(SocketPipe())
        signal(SIGPIPE, SIG_IGN)
        Socket.close(sink)
        #expect(Self.send(source, [1, 2, 3]) == .bytes(3))
        #expect(pipe.fill(from: near, count: 3) == .bytes(3))
        #expect(pipe.empty(into: far, count: 3) == .failed(EPIPE))
        #expect(pipe.read(3) == [1, 2, 3])
    }

    @Test func `what nothing can be moved out of is to be read`() throws {
        let pipe = try #require(SocketPipe())
        let other = open("/", O_RDONLY | O_DIRECTORY)
        defer { Socket.close(other) }
        #expect(pipe.fill(from: other, count: 10) == nil)
        #expect(pipe.fill(from: other, count: 10) == nil)
    }
}
