// Descriptors that go from process to process, here from one end of a socket to the other.

import EventLoop
import Glibc
import Testing

@Suite struct PassedFilesTests {
    private static func pair() -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends)
        return (ends[0], ends[1])
    }

    private static func number(of descriptor: Int32) -> ino_t {
        var information = stat()
        return fstat(descriptor, &information) == 0 ? information.st_ino : 0
    }

    @Test func `copies arrive with the bytes, closed to other programs, and the sender's stay its own`() throws {
        let (near, far) = Self.pair()
        defer { for one in [near, far] { close(one) } }
        let files = try (0..<3).map { _ in try #require(PassedFiles.memoryFile()) }
        defer { for one in files { close(one) } }
        try PassedFiles.send(Array("hello".utf8), with: files, to: near)
        try PassedFiles.send(Array(" again".utf8), to: near)
        var (bytes, passed): ([UInt8], [Int32]) = ([], [])
        while bytes.count < 11 {
            let next = try PassedFiles.receive(atMost: 4, from: far)
            bytes += next.bytes
            passed += next.files
        }
        #expect(String(decoding: bytes, as: UTF8.self) == "hello again")
        #expect(passed.map(Self.number) == files.map(Self.number))
        for one in passed {
            #expect(fcntl(one, F_GETFD) & FD_CLOEXEC != 0)
            close(one)
        }
        #expect(files.allSatisfy { fcntl($0, F_GETFD) >= 0 })
        shutdown(near, Int32(SHUT_WR))
        let end = try PassedFiles.receive(atMost: 4, from: far)
        #expect(end.bytes.isEmpty && end.files.isEmpty)
    }

    @Test func `as many as the kernel takes go at once, and more are an error`() throws {
        let (near, far) = Self.pair()
        defer { for one in [near, far] { close(one) } }
        let file = try #require(PassedFiles.memoryFile())
        defer { close(file) }
        try PassedFiles.send([1], with: Array(repeating: file, count: PassedFiles.most), to: near)
        let passed = try PassedFiles.receive(atMost: 4, from: far).files
        #expect(passed.count == PassedFiles.most)
        for one in passed { close(one) }
        #expect(throws: SystemError.self) {
            try PassedFiles.send([1], with: Array(repeating: file, count: PassedFiles.most + 1), to: near)
        }
    }

    @Test func `nobody is waited for longer than said`() throws {
        let (near, far) = Self.pair()
        defer { for one in [near, far] { close(one) } }
        PassedFiles.boundWaits(of: far, seconds: 1)
        #expect(throws: SystemError.self) { try PassedFiles.receive(atMost: 4, from: far) }
        shutdown(far, Int32(SHUT_RDWR))
        #expect(throws: SystemError.self, "nobody reads at the other end") { try PassedFiles.send([1], to: near) }
    }
}
