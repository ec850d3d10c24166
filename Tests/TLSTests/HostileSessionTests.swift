// Peers that spoil what is on the wire.

import CLibssl
import TestSupport
import Testing

@testable import TLS

@Suite struct HostileSessionTests {
    /// A generator whose numbers repeat with its seed (xorshift64*).
    struct Random: RandomNumberGenerator {
        var state: UInt64

        init(seed: Int) { state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1 }

        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 0x2545_F491_4F6C_DD1D
        }
    }

    /// Bytes are changed, cut and repeated on their way, and the wire is split anywhere: what is read is always the
    /// beginning of what was sent, and only a close_notify is an end.
    @Test func `what is read of a spoiled wire is the beginning of what was sent`() throws {
        let world = try SessionTests.world()
        var outcomes: [String: Int] = [:]
        for seed in 1...Thoroughness.attempts(1_200) {
            var random = Random(seed: seed)
            let pair = try Pair(world.serving, world.asking, piece: Int.random(in: 1...400, using: &random))
            let sent = (0..<Int.random(in: 1...40_000, using: &random)).map {
                UInt8(truncatingIfNeeded: $0 &* 7 &+ seed)
            }
            var (isWritten, read) = (false, [UInt8]())
            var (client, server) = (SessionStep.wantsInput, SessionStep.wantsInput)
            var end: TLSReadResult?
            var left = Int.random(in: 0...3, using: &random)
            for _ in 0..<3_000 where end == nil {
                if client == .wantsInput { client = pair.client.handshake() }
                if client == .finished, !isWritten {
                    isWritten = true
                    #expect(sent.withUnsafeBytes { pair.client.write($0) } == nil)
                    pair.client.finishWriting()
                }
                pair.carry()
                if left > 0, Int.random(in: 0..<4, using: &random) == 0 {
                    left -= 1
                    let wire = Bool.random(using: &random) ? pair.toServer : pair.toClient
                    if let index = wire.bytes.indices.randomElement(using: &random) {
                        switch Int.random(in: 0..<4, using: &random) {
                        case 0: wire.bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                        case 1: wire.bytes.removeSubrange(index...)
                        case 2: wire.bytes.insert(contentsOf: wire.bytes.prefix(index), at: index)
                        default: wire.hasEnded = true
                        }
                    }
                }
                if server == .wantsInput { server = pair.server.handshake() }
                if server == .finished {
                    let result = pair.read(pair.server)
                    read += result.bytes
                    if result.end != .wouldBlock { end = result.end }
                } else if case .failed = server {
                    end = .truncated
                }
                // Nothing moves any more: the connection ends.
                if pair.toServer.bytes.isEmpty, pair.toClient.bytes.isEmpty {
                    (pair.toServer.hasEnded, pair.toClient.hasEnded) = (true, true)
                }
                pair.carry()
            }
            #expect(read.elementsEqual(sent.prefix(read.count)), "seed \(seed)")
            if end == .end { #expect(read == sent, "seed \(seed)") }
            switch end {
            case .end: outcomes["end", default: 0] += 1
            case .truncated: outcomes["truncated", default: 0] += 1
            case .failed: outcomes["failed", default: 0] += 1
            default: Issue.record("seed \(seed) did not come to an end")
            }
        }
        // Each has happened: the test sees what it is about.
        #expect(outcomes.keys.sorted() == ["end", "failed", "truncated"])
    }

    /// libcurl uses OpenSSL on the same thread, and leaves errors of its sessions in the thread's queue.
    @Test func `an error that somebody else has left on the thread fails no session`() throws {
        let world = try SessionTests.world()
        let pair = try Pair(world.serving, world.asking)
        _ = pair.handshake()
        leaveError()
        #expect(pair.read(pair.server).end == .wouldBlock)
        leaveError()
        #expect(try pair.exchange([1, 2, 3], from: pair.client, to: pair.server) == [1, 2, 3])
        leaveError()
        pair.client.finishWriting()
        pair.carry()
        #expect(pair.read(pair.server).end == .end)
    }

    private func leaveError() {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        #expect(BIO_write(bio, "none", 4) == 4)
        #expect(bio.flatMap(c_pem_read_x509) == nil)
        #expect(ERR_peek_error() != 0)
    }
}
