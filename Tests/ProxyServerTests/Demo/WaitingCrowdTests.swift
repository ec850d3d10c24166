// A hundred thousand demo answers that wait at the same moment, over transports that need no descriptor.

import EventLoop
import Glibc
import TestSupport
import Testing

@testable import ProxyServer

/// Who asked, when each answer is due, and what came. Loop-bound.
private final class Crowd {
    struct Result {
        /// First bytes that are not those of a 200.
        var others = 0
        /// Answers that came before their time.
        var early = 0
        /// What each waiting answer took, connection included, in bytes.
        var memory = 0
    }

    static let paths = 100
    /// Answers at `/late/N` come after a second and N times ten milliseconds: the loop answers nobody before all have
    /// asked, however long that takes.
    static func latency(_ path: Int) -> Int { 1000 + path * 10 }

    private var result = Result()
    /// Monotonic nanoseconds; 0 where no answer is awaited.
    private var due: [UInt64]
    private var left: Int
    private let end: Monitor<Result?>

    /// - Parameter end: gets what came when the last answer has begun.
    init(_ count: Int, _ end: Monitor<Result?>) {
        due = Array(repeating: 0, count: count)
        left = count
        self.end = end
    }

    /// The loop answers nobody meanwhile, so that all wait when the last has asked.
    func gather(_ begin: (LoneRequest) -> Void) {
        let before = residentMemory()
        for index in due.indices {
            let request = LoneRequest(self, index)
            begin(request)
            due[index] = Monotonic.now() + UInt64(Self.latency(index % Self.paths)) * 1_000_000
            request.ask()
        }
        result.memory = (residentMemory() - before) / due.count
    }

    func got(_ bytes: UnsafeRawBufferPointer, _ index: Int) {
        guard due[index] > 0 else { return }
        if Monotonic.now() < due[index] { result.early += 1 }
        if !bytes.starts(with: "HTTP/1.1 200".utf8) { result.others += 1 }
        due[index] = 0
        left -= 1
        if left == 0 { end.update { $0 = result } }
    }

    /// Of the process, in bytes.
    private func residentMemory() -> Int {
        let fields = readText("/proc/self/statm").split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * 4096
    }
}

@available(*, unavailable) extension Crowd: Sendable {}

/// A client that asks for one thing and takes every byte.
private final class LoneRequest: ByteTransport {
    private let crowd: Crowd
    private let index: Int
    private var isRead = false
    private weak var handler: (any IOHandler)?

    init(_ crowd: Crowd, _ index: Int) {
        self.crowd = crowd
        self.index = index
    }

    func ask() { handler?.ready(.read) }

    func begin(on loop: isolated EventLoop, _ handler: any IOHandler) { self.handler = handler }
    func watch(_ wanted: IOReadiness) {}
    func stop() { handler = nil }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if isRead { return .wouldBlock }
        isRead = true
        let request = Array("GET /late/\(index % Crowd.paths) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        buffer.copyBytes(from: request)
        return .bytes(request.count)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        crowd.got(bytes, index)
        return .bytes(bytes.count)
    }

    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        let vectors = UnsafeBufferPointer(start: vectors, count: count)
        crowd.got(UnsafeRawBufferPointer(start: vectors[0].iov_base, count: vectors[0].iov_len), index)
        return .bytes(vectors.reduce(0) { $0 + $1.iov_len })
    }

    var handshake: (any TransportHandshake)? { nil }
    var readsAhead: Bool { false }
    var hasPending: Bool { false }
    var copiesMemory: Bool { false }
    func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult { .bytes(count) }
    var takesPipes: Bool { false }
    func empty(_ pipe: SocketPipe, count: Int) -> IOResult { .failed(EOPNOTSUPP) }
    var isHungUp: Bool { false }
    func askWhetherAnybodyIsThere() {}
    func finishWriting() {}
    func close(resets: Bool) { stop() }
}

@available(*, unavailable) extension LoneRequest: Sendable {}

@Suite(.timeLimit(.minutes(5))) struct WaitingCrowdTests {
    @Test func `a hundred thousand answers wait at once, and each comes once and not before its time`() async throws {
        #if DRYDOCK_SANITIZED
            let count = 5000
        #else
            let count = Thoroughness.attempts(100_000)
        #endif
        let rules = (0..<Crowd.paths).map { path in
            "      - { name: late-\(path), path: /\(path), demo: { body: late, latency: \(Crowd.latency(path))ms } }\n"
        }
        let text = """
            services:
              - name: late
                match: { prefix: /late }
                base_url: http://127.0.0.1:1
                demo: { enabled: true }
                endpoints:

            """
        try await HandlerHarness.run(text + rules.joined()) { harness throws in
            let end = Monitor(Crowd.Result?.none)
            harness.server.contexts[0].submit { context, loop in
                guard let address = SocketAddress(numericHost: "127.0.0.1", port: 1)
                else { return }
                Crowd(count, end).gather { request in
                    context.connect(request, from: address, on: loop)
                }
            }
            #expect(end.wait(240) { $0 != nil })
            let result = try #require(end.read { $0 })
            #expect(result.others == 0 && result.early == 0, "\(result)")
            // 3 KB with optimisation, and 42 when each held a task. Other tests of this process have their share in it.
            #if !DRYDOCK_SANITIZED
                #expect(result.memory < 12_000)
            #endif
        }
    }
}
