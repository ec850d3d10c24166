// Two sessions that speak to each other in memory, in pieces of any length.

import EventLoop
import TLS

/// What one side has sent and the other has not read.
final class MemoryWire: TLSWire {
    var bytes: [UInt8] = []
    var hasEnded = false
    /// At most so many bytes a read.
    var piece = Int.max
    private(set) var reads = 0

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        reads += 1
        guard !bytes.isEmpty else { return hasEnded ? .end : .wouldBlock }
        let count = min(bytes.count, buffer.count, piece)
        buffer.copyBytes(from: bytes.prefix(count))
        bytes.removeFirst(count)
        return .bytes(count)
    }
}

/// A client and a server.
final class Pair {
    let client: TLSSession
    let server: TLSSession
    let toServer = MemoryWire()
    let toClient = MemoryWire()

    /// - Parameter address: of the server.
    init(
        _ serving: TLSContext,
        _ asking: TLSContext,
        for host: HostName = .name("api.example.com"),
        at address: HostName? = nil,
        piece: Int = .max
    ) throws {
        client = try TLSSession(asking: asking, for: host, output: TLSOutput())
        server = try TLSSession(serving: serving, at: address, output: TLSOutput())
        (toServer.piece, toClient.piece) = (piece, piece)
        client.wire = toClient
        server.wire = toServer
    }

    /// Carries what is in the outputs.
    func carry() {
        toServer.bytes += client.output.takeAll()
        toClient.bytes += server.output.takeAll()
    }

    /// Shakes hands until both have finished or failed.
    func handshake() -> (client: SessionStep, server: SessionStep) {
        var steps = (client: SessionStep.wantsInput, server: SessionStep.wantsInput)
        for _ in 0..<20_000 {
            if steps.client == .wantsInput { steps.client = client.handshake() }
            carry()
            if steps.server == .wantsInput { steps.server = server.handshake() }
            carry()
            if steps.client != .wantsInput, steps.server != .wantsInput { break }
            // Whoever failed ends the connection.
            if case .failed = steps.client, toServer.bytes.isEmpty { toServer.hasEnded = true }
            if case .failed = steps.server, toClient.bytes.isEmpty { toClient.hasEnded = true }
        }
        return steps
    }

    /// What the other side reads of bytes that one side writes.
    func exchange(_ bytes: [UInt8], from: TLSSession, to: TLSSession) throws -> [UInt8] {
        if let failure = bytes.withUnsafeBytes({ from.write($0) }) { throw failure }
        carry()
        return read(to).bytes
    }

    /// All that can be read now, and how it ended.
    func read(_ session: TLSSession) -> (bytes: [UInt8], end: TLSReadResult) {
        var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 15))
        while true {
            let result = buffer.withUnsafeMutableBytes { session.read(into: $0) }
            guard case .bytes(let count) = result else { return (all, result) }
            all += buffer.prefix(count)
        }
    }
}

/// An authority, and a clock in seconds that a test moves.
let now: Int64 = 1_790_000_000

func authority() throws -> LocalAuthority { try LocalAuthority(name: "Drydock of a test", now: now) }
