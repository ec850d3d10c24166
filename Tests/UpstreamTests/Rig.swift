// A loop with an upstream client, and what one transfer came to: what the tests of this module stand on.

import Glibc
import HTTPWire
import TestSupport

@testable import EventLoop
@testable import Upstream

/// Everything a delegate was told.
struct Heard: Sendable {
    var interims: [ResponseHead] = []
    var head: ResponseHead?
    var framing: BodyFraming?
    /// The first mebibyte.
    var body: [UInt8] = []
    var bodyLength = 0
    var bodyIsPattern = true
    var trailers = Fields()
    var error: UpstreamError?
    var isFinished = false
    var isEndProven: Bool?
    /// What came behind a 101; nil: there was none.
    var behind: [UInt8]?
    /// Kinds of calls in order: i, h, b, f (finished), e (failed), s (switched).
    var calls = ""
    var largestPiece = 0
    /// Bytes that the delegate took from the socket itself.
    var moved = 0

    var isOver: Bool { isFinished || error != nil || behind != nil }
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// A delegate that writes down what it hears and answers `.pause` where its script says so; loop-bound.
final class Recorder: TransferDelegate {
    typealias Flow = (_ transfer: Transfer, _ heard: Heard) -> TransferFlow

    let heard: Monitor<Heard>
    var onHead: (Transfer) -> Void = { _ in }
    var onBytes: Flow = { _, _ in .continue }
    var onEnd: (Transfer) -> Void = { _ in }
    /// Takes the socket after a 101; else it is closed.
    var onSwitch: (SwitchedConnection) -> Void = { _ in }
    /// Whether content is taken from the socket this time; nil: never.
    var moves: (() -> Bool)?
    private var room = [UInt8](repeating: 0, count: 1 << 16)

    init(_ heard: Monitor<Heard>) { self.heard = heard }

    func transfer(_ transfer: Transfer, received interim: ResponseHead) {
        heard.update {
            $0.interims.append(interim)
            $0.calls += "i"
        }
    }

    func transfer(_ transfer: Transfer, received head: ResponseHead, framing: BodyFraming) {
        heard.update {
            $0.head = head
            $0.framing = framing
            $0.calls += "h"
        }
        onHead(transfer)
    }

    func transfer(_ transfer: Transfer, received bytes: UnsafeRawBufferPointer) -> TransferFlow {
        let now = heard.update { heard in
            heard.bodyIsPattern = heard.bodyIsPattern && Pattern.matches(bytes, at: heard.bodyLength)
            if heard.body.count < 1 << 20 { heard.body += bytes.prefix((1 << 20) - heard.body.count) }
            heard.bodyLength += bytes.count
            heard.largestPiece = max(heard.largestPiece, bytes.count)
            if heard.calls.last != "b" { heard.calls += "b" }
            var summary = Heard()
            summary.bodyLength = heard.bodyLength
            return summary
        }
        return onBytes(transfer, now)
    }

    var supportsSplice: Bool { moves != nil }

    func transfer(_ transfer: Transfer, moves count: Int, from source: SpliceSource) -> SplicedContent? {
        guard let moves, moves() else { return nil }
        return room.withUnsafeMutableBytes { room in
            let result = Socket.read(source.socket, into: UnsafeMutableRawBufferPointer(rebasing: room.prefix(count)))
            guard case .bytes(let read) = result else { return SplicedContent(result, .continue) }
            heard.update { $0.moved += read }
            let flow = self.transfer(transfer, received: UnsafeRawBufferPointer(rebasing: room[..<read]))
            return SplicedContent(result, flow)
        }
    }

    func transferFinished(_ transfer: Transfer, trailers: Fields) {
        heard.update {
            $0.trailers = trailers
            $0.isFinished = true
            $0.isEndProven = transfer.isEndProven
            $0.calls += "f"
        }
        onEnd(transfer)
    }

    func transfer(_ transfer: Transfer, switched head: ResponseHead, to connection: SwitchedConnection) {
        onSwitch(connection)
        heard.update {
            $0.head = head
            $0.behind = connection.takeReceived()
            $0.calls += "s"
        }
    }

    func transfer(_ transfer: Transfer, failed error: UpstreamError) {
        heard.update {
            $0.error = error
            $0.calls += "e"
        }
        onEnd(transfer)
    }
}

/// What lives on the rig's loop; looked at there only.
final class OnLoop: @unchecked Sendable {  // protected by the loop: only closures that it runs touch the members
    var client: UpstreamClient?
    var transfers: [Int: Transfer] = [:]
}

/// What carries requests to plain http: both have to come to the same.
enum Carriage: CaseIterable, Sendable { case wire, libcurl }

/// Every row once for each carrier.
func overBoth<A: Sendable, B: Sendable>(_ rows: [(A, B)]) -> [(A, B, Carriage)] {
    rows.flatMap { row in Carriage.allCases.map { (row.0, row.1, $0) } }
}

func overBoth<A: Sendable, B: Sendable, C: Sendable>(_ rows: [(A, B, C)]) -> [(A, B, C, Carriage)] {
    rows.flatMap { row in Carriage.allCases.map { (row.0, row.1, row.2, $0) } }
}

/// A loop, a resolver and a client; ended by `close()`.
final class Rig: Sendable {
    let loop: EventLoop
    let pool: IOPool
    let resolver: Resolver
    let inside = OnLoop()
    private let last = Counter()

    /// - Parameters:
    ///   - carriers: nil: as `carriage` says.
    ///   - lifetime: nanoseconds for which what `lookup` says holds.
    init(
        limits: UpstreamLimits = UpstreamLimits(),
        by carriage: Carriage = .wire,
        carriers: UpstreamClient.Carriers? = nil,
        lifetime: UInt64 = 60_000_000_000,
        lookup: @escaping Resolver.Lookup = { SystemResolver.lookup($0, port: $1) }
    ) throws {
        loop = try EventLoop.start()
        pool = try IOPool(threads: 2)
        resolver = Resolver(pool: pool, lifetime: lifetime, lookup: lookup)
        let (inside, resolver) = (inside, resolver)
        sync { loop in
            let carriers = carriers ?? (carriage == .libcurl ? .libcurlAlone : .both)
            inside.client = UpstreamClient(on: loop, resolver: resolver, limits: limits, carriers: carriers)
        }
    }

    /// Runs `body` on the loop and waits for it.
    func sync<Value: Sendable>(_ body: @escaping @Sendable (isolated EventLoop) -> Value) -> Value {
        let result = Monitor<Value?>(nil)
        loop.submit { loop in
            let value = body(loop)
            result.update { $0 = value }
        }
        while true {
            result.wait(120) { $0 != nil }
            if let value = result.read({ $0 }) { return value }
        }
    }

    /// Returns when the loop has turned twice: it has seen what had come to its sockets before.
    func turn() {
        for _ in 0..<2 { sync { _ in } }
    }

    /// Whether a number comes to stand still for some time, in which the loop turns.
    func comesToRest(_ number: () -> Int) -> Bool {
        TestSupport.comesToRest {
            turn()
            return number()
        }
    }

    /// Has a name looked up before a deadline counts that.
    func know(_ host: String, port: Int) {
        let isKnown = Gate()
        _ = resolver.ask(host, port: UInt16(port), rules: .any) { _ in isKnown.open() }
        isKnown.wait()
    }

    /// Starts a transfer; `prepare` sets the delegate's script.
    func start(
        _ request: UpstreamRequest,
        source: @escaping @Sendable () -> (any RequestBodySource)? = { nil },
        prepare: @escaping @Sendable (Recorder) -> Void = { _ in }
    ) -> (heard: Monitor<Heard>, number: Int) {
        let heard = Monitor(Heard())
        last.add()
        let number = last.value
        sync { [inside] _ in
            let recorder = Recorder(heard)
            prepare(recorder)
            inside.transfers[number] = inside.client?.start(request, body: source(), delegate: recorder)
        }
        return (heard, number)
    }

    /// Starts a transfer without a body, with a script for its delegate.
    func watch(
        _ request: UpstreamRequest,
        _ prepare: @escaping @Sendable (Recorder) -> Void
    ) -> (heard: Monitor<Heard>, number: Int) { start(request, prepare: prepare) }

    /// Runs a transfer to its end.
    func run(
        _ request: UpstreamRequest,
        source: @escaping @Sendable () -> (any RequestBodySource)? = { nil },
        prepare: @escaping @Sendable (Recorder) -> Void = { _ in },
        seconds: Double = 120
    ) -> Heard {
        let (heard, number) = start(request, source: source, prepare: prepare)
        heard.wait(seconds) { $0.isOver }
        sync { [inside] _ in inside.transfers[number] = nil }
        return heard.read { $0 }
    }

    func get(_ url: String, fields: [(String, String)] = []) -> Heard {
        run(UpstreamRequest(url: url, fields: Fields(fields)))
    }

    /// Calls into a transfer on its loop.
    func with(_ number: Int, _ body: @escaping @Sendable (Transfer) -> Void) {
        sync { [inside] _ in
            if let transfer = inside.transfers[number] { body(transfer) }
        }
    }

    var connectionCount: Int { sync { [inside] _ in inside.client?.connectionCount ?? -1 } }
    var activeCount: Int { sync { [inside] _ in inside.client?.activeCount ?? -1 } }

    func close() {
        sync { [inside] _ in
            inside.client?.shutdown()
            inside.client = nil
            inside.transfers = [:]
        }
        loop.stop()
        pool.stop()
    }
}

/// A body made of pieces; `nil` is a wait that `bodyAvailable()` ends. Loop-bound.
final class ScriptedSource: RequestBodySource {
    enum Piece { case bytes([UInt8]), wait, end, failed }

    private var pieces: [Piece]
    var onRead: () -> Void = {}

    init(_ pieces: [Piece]) { self.pieces = pieces }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        onRead()
        guard let piece = pieces.first else { return .end }
        switch piece {
        case .bytes(let bytes):
            let count = min(bytes.count, buffer.count)
            buffer.copyBytes(from: bytes.prefix(count))
            pieces[0] = .bytes(Array(bytes.dropFirst(count)))
            if count == bytes.count { pieces.removeFirst() }
            return .bytes(count)
        case .wait:
            pieces.removeFirst()
            return .wait
        case .end: return .end
        case .failed: return .failed
        }
    }
}

/// So many bytes of `Pattern`; loop-bound.
final class PatternSource: RequestBodySource {
    private var sent = 0
    private let count: Int

    init(_ count: Int) { self.count = count }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        if sent == count { return .end }
        let read = Pattern.withPiece(at: sent, count: min(buffer.count, count - sent)) { piece in
            buffer.copyMemory(from: piece)
            return piece.count
        }
        sent += read
        return .bytes(read)
    }
}
