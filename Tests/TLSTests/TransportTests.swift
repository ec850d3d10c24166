// The TLS transport over another one that takes and gives what it likes.

import CLibssl
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import TLS

/// One end of a connection in memory: what one end writes, the other reads.
private final class MemoryTransport: ByteTransport {
    weak var peer: MemoryTransport?
    var incoming: [UInt8] = []
    /// How many bytes the next writes take: each has its own, and the last one stays.
    var takes: () -> Int = { .max }
    private(set) var writes = 0
    /// How many of them were said to be followed at once by more.
    private(set) var followed = 0
    private(set) var reads = 0
    private(set) var begins = 0
    private(set) var watched: IOReadiness = []
    private(set) var hasFinishedWriting = false
    private(set) var wasReset: Bool?

    var handshake: (any TransportHandshake)? { nil }
    func begin(on loop: isolated EventLoop, _ handler: any IOHandler) { begins += 1 }
    func watch(_ wanted: IOReadiness) { watched = wanted }
    func stop() {}

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        reads += 1
        guard !incoming.isEmpty else { return peer?.hasFinishedWriting != false ? .end : .wouldBlock }
        let count = min(incoming.count, buffer.count)
        buffer.copyBytes(from: incoming.prefix(count))
        incoming.removeFirst(count)
        return .bytes(count)
    }

    var readsAhead: Bool { false }
    var hasPending: Bool { false }

    func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        writes += 1
        let count = min(takes(), bytes.count)
        guard count > 0 else { return .wouldBlock }
        peer?.incoming += bytes.prefix(count)
        return .bytes(count)
    }

    func write(_ vectors: UnsafeMutablePointer<iovec>, count: Int, isFollowed: Bool) -> IOResult {
        followed += isFollowed ? 1 : 0
        return count == 1
            ? write(UnsafeRawBufferPointer(start: vectors.pointee.iov_base, count: vectors.pointee.iov_len))
            : .failed(EOPNOTSUPP)
    }
    func sendFile(_ file: Int32, offset: Int64, count: Int) -> IOResult { .failed(EOPNOTSUPP) }
    var copiesMemory: Bool { false }
    var takesPipes: Bool { true }
    func empty(_ pipe: SocketPipe, count: Int) -> IOResult { .failed(EOPNOTSUPP) }
    var isHungUp: Bool { false }
    func askWhetherAnybodyIsThere() {}
    func finishWriting() { hasFinishedWriting = true }

    func close(resets: Bool) {
        wasReset = resets
        hasFinishedWriting = true
    }
}

/// A client and a server, each over its end of a connection.
private struct Line {
    let client: TLSTransport
    let server: TLSTransport
    let clientEnd = MemoryTransport()
    let serverEnd = MemoryTransport()

    init() throws {
        let world = try SessionTests.world()
        (clientEnd.peer, serverEnd.peer) = (serverEnd, clientEnd)
        client = try TLSTransport(asking: world.asking, for: .name("api.example.com"), over: clientEnd, in: TLSRoom())
        server = try TLSTransport(serving: world.serving, over: serverEnd, in: TLSRoom())
    }

    /// Shakes hands; what each side has come to.
    func handshake() -> (client: HandshakeStep?, server: HandshakeStep?) {
        var steps: (client: HandshakeStep?, server: HandshakeStep?)
        for _ in 0..<10 {
            if let hands = client.handshake { steps.client = hands.step() }
            if let hands = server.handshake { steps.server = hands.step() }
        }
        return steps
    }
}

private final class Told: IOHandler {
    private(set) var told: [IOReadiness] = []
    func ready(_ readiness: IOReadiness) { told.append(readiness) }
}

/// All that a transport gives now, and what comes then.
private func everything(_ transport: TLSTransport) -> (bytes: [UInt8], end: IOResult) {
    var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
    while true {
        let result = buffer.withUnsafeMutableBytes { transport.read(into: $0) }
        guard case .bytes(let count) = result else { return (all, result) }
        all += buffer.prefix(count)
    }
}

private func write(_ transport: TLSTransport, _ parts: [[UInt8]], isFollowed: Bool = false) -> IOResult {
    // The parts, one after the other in memory that lasts as long as the call.
    var memory = parts.flatMap { $0 }
    return memory.withUnsafeMutableBytes { all in
        var (vectors, start) = ([iovec](), 0)
        for part in parts {
            vectors.append(
                iovec(iov_base: part.isEmpty ? nil : all.baseAddress.map { $0 + start }, iov_len: part.count)
            )
            start += part.count
        }
        return vectors.withUnsafeMutableBufferPointer { vectors in
            vectors.baseAddress.map { transport.write($0, count: vectors.count, isFollowed: isFollowed) } ?? .bytes(0)
        }
    }
}

@Suite struct TransportTests {
    @Test func `a handshake is a part of the transport until it is done`() throws {
        let line = try Line()
        #expect(line.client.handshake != nil)
        let steps = line.handshake()
        #expect(steps.client == .done(protocol: "http/1.1"))
        #expect(steps.server == .done(protocol: "http/1.1"))
        #expect(line.client.handshake == nil)
        #expect(line.server.handshake == nil)
    }

    @Test func `a head leaves with its body in one record and one write`() throws {
        let line = try Line()
        _ = line.handshake()
        _ = everything(line.server)
        let before = line.serverEnd.writes
        #expect(write(line.server, [[1, 2], [], [3, 4, 5]]) == .bytes(5))
        #expect(line.serverEnd.writes == before + 1)
        // 5 bytes, a content type, a tag of 16 bytes, and a head of 5.
        #expect(line.clientEnd.incoming.count == 27)
        #expect(everything(line.client).bytes == [1, 2, 3, 4, 5])
    }

    @Test func `the last bytes leave together with the end`() throws {
        let line = try Line()
        _ = line.handshake()
        #expect(write(line.server, [[1, 2, 3]]) == .bytes(3))
        #expect(line.serverEnd.followed == 0)
        #expect(write(line.server, [[4, 5]], isFollowed: true) == .bytes(2))
        line.server.finishWriting()
        #expect(line.serverEnd.followed == 1)
        let read = everything(line.client)
        #expect(read.bytes == [1, 2, 3, 4, 5] && read.end == .end)
    }

    @Test func `what came as a whole is not asked for again`() throws {
        let line = try Line()
        #expect(line.client.step() == .waits(.read))
        #expect(line.server.step() == .waits(.read))
        #expect(line.serverEnd.reads == 1)
        // The next call asks again.
        #expect(line.server.step() == .waits(.read))
        #expect(line.serverEnd.reads == 2)
    }

    @Test func `the next handler takes over what is watched`() async throws {
        let loops = try LoopGroup.start(count: 1)
        await Self.takeOver(on: loops.loops[0])
        loops.stop()
    }

    private static func takeOver(on loop: isolated EventLoop) async {
        guard let line = try? Line() else {
            Issue.record("no line")
            return
        }
        let (first, second) = (Told(), Told())
        let end = line.serverEnd
        line.server.begin(on: loop, first)
        line.server.watch(.read)
        line.server.ready(.read)
        line.server.begin(on: loop, second)
        #expect(end.begins == 1 && end.watched == .read && first.told == [.read])
        // It has not said what it wants: nothing more is told of until it does.
        line.server.ready(.read)
        #expect(end.watched == [] && second.told == [])
        line.server.watch(.read)
        line.server.ready(.read)
        #expect(end.watched == .read && second.told == [.read] && first.told == [.read])
        line.server.stop()
        line.server.begin(on: loop, first)
        #expect(end.begins == 2 && end.watched == [])
    }

    /// The peer takes any number of bytes at a time, and none at times; the caller comes back with what was not written.
    @Test func `bytes arrive once and in order, whatever the peer takes`() throws {
        for seed in 1...Thoroughness.attempts(200) {
            let line = try Line()
            _ = line.handshake()
            var random = HostileSessionTests.Random(seed: seed)
            var hold = random
            line.serverEnd.takes = { Bool.random(using: &hold) ? 0 : Int.random(in: 1...60_000, using: &hold) }
            let sent = (0..<Int.random(in: 1...300_000, using: &random)).map {
                UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 8)
            }
            var (rest, received, turns) = (sent[...], [UInt8](), 0)
            while !rest.isEmpty, turns < 10_000 {
                turns += 1
                // The same bytes come again, cut in other positions.
                var parts: [[UInt8]] = []
                var left = rest
                for _ in 0..<Int.random(in: 1...4, using: &random) where !left.isEmpty {
                    let part = left.prefix(Int.random(in: 1...100_000, using: &random))
                    parts.append(Array(part))
                    left = left.dropFirst(part.count)
                }
                switch write(line.server, parts) {
                case .bytes(let count): rest = rest.dropFirst(count)
                case .wouldBlock:
                    // The owner is called when the peer takes something again.
                    #expect(line.serverEnd.watched.contains(.write))
                default:
                    Issue.record("seed \(seed): it failed")
                    return
                }
                received += everything(line.client).bytes
            }
            #expect(rest.isEmpty)
            #expect(received == sent, "seed \(seed)")
        }
    }

    @Test func `a peer that takes nothing costs one batch`() throws {
        let line = try Line()
        _ = line.handshake()
        line.serverEnd.takes = { 0 }
        let bytes = [UInt8](repeating: 1, count: 1 << 20)
        #expect(write(line.server, [bytes]) == .wouldBlock)
        #expect(line.serverEnd.watched == .write)
        // It is not encrypted a second time.
        #expect(write(line.server, [bytes]) == .wouldBlock)
        line.serverEnd.takes = { .max }
        #expect(write(line.server, [bytes]) == .bytes(64 << 10))
        #expect(line.serverEnd.watched == [])
        #expect(everything(line.client).bytes.count == 64 << 10)
        // Then the batches are of one record, until the peer takes one at once.
        #expect(write(line.server, [bytes]) == .bytes(16 << 10))
        #expect(write(line.server, [bytes]) == .bytes(64 << 10))
    }

    @Test func `a file is sent from where it is asked for, to its end`() throws {
        let line = try Line()
        _ = line.handshake()
        let file = memfd(of: (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        defer { close(file) }
        var offset: Int64 = 10
        while case .bytes(let count) = line.server.sendFile(file, offset: offset, count: 1 << 20) {
            offset += Int64(count)
        }
        #expect(offset == 100_000)
        #expect(line.server.sendFile(file, offset: offset, count: 10) == .end)
        #expect(everything(line.client).bytes == (10..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
    }

    private func memfd(of bytes: [UInt8]) -> Int32 {
        var path = Array("/tmp/drydock-tls-XXXXXX".utf8CString)
        let file = mkstemp(&path)
        unlink(path)
        #expect(bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) } == bytes.count)
        return file
    }

    @Test func `the end is in order after finishWriting and close, and truncated after a reset`() throws {
        for how in 0..<3 {
            let line = try Line()
            _ = line.handshake()
            #expect(write(line.server, [[1, 2, 3]]) == .bytes(3))
            switch how {
            case 0: line.server.finishWriting()
            case 1: line.server.close(resets: false)
            default: line.server.close(resets: true)
            }
            let read = everything(line.client)
            #expect(read.bytes == [1, 2, 3])
            #expect(read.end == (how == 2 ? .truncated : .end))
            #expect(line.serverEnd.wasReset == [nil, false, true][how])
        }
    }

    @Test func `the end of the sending side waits for what is unsent`() throws {
        let line = try Line()
        _ = line.handshake()
        line.serverEnd.takes = { 0 }
        line.server.finishWriting()
        #expect(!line.serverEnd.hasFinishedWriting)
        line.serverEnd.takes = { .max }
        line.server.ready(.write)
        #expect(line.serverEnd.hasFinishedWriting)
        #expect(everything(line.client).end == .end)
    }

    @Test func `a failed handshake says why, and its alert is out`() throws {
        let world = try SessionTests.world(asking: ["h2"])
        let (clientEnd, serverEnd) = (MemoryTransport(), MemoryTransport())
        (clientEnd.peer, serverEnd.peer) = (serverEnd, clientEnd)
        let client = try TLSTransport(asking: world.asking, for: .name("a.example"), over: clientEnd, in: TLSRoom())
        let server = try TLSTransport(serving: world.serving, over: serverEnd, in: TLSRoom())
        #expect(client.step() == .waits(.read))
        let reason = "it asks for none of the application protocols that are spoken here"
        #expect(server.step() == .failed(reason))
        #expect(server.failure == TLSFailure(.protocols, reason))
        #expect(client.step() == .failed("it ended the session with the alert no_application_protocol"))
    }

    /// Each request to renew the keys (RFC 8446, section 4.6.3) has an answer, which waits in memory.
    @Test func `a peer that asks for answers and reads none is given up`() throws {
        let line = try Line()
        #expect(line.handshake().server == .done(protocol: "http/1.1"))
        line.serverEnd.takes = { 0 }
        var end = IOResult.wouldBlock
        var asked = 0
        while end == .wouldBlock, asked < 50_000 {
            asked += 1
            #expect(SSL_key_update(line.client.session.handle, SSL_KEY_UPDATE_REQUESTED) == 1)
            #expect(write(line.client, [[1]]) == .bytes(1))
            end = everything(line.server).end
        }
        #expect(end == .failed(EPROTO))
        #expect(line.server.failure?.kind == .malformed)
        #expect(asked < 10_000)
    }
}
