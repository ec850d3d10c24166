// An origin inside the test: it counts what it is asked, and answers step by step, held back by
// valves where the test says so.

import DownloadCore
import EventLoop
import HTTPWire
import Synchronization
import Upstream

/// Closed until a test opens it; any thread.
final class Valve: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    var isOpen: Bool { state.withLock { $0.isOpen } }
    /// Somebody waits until it is open.
    var isAwaited: Bool { state.withLock { !$0.waiting.isEmpty } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for action in waiting { action() }
    }

    /// - Returns: false where the valve is open already and `action` will not be called.
    func whenOpen(_ action: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if state.isOpen { return false }
            state.waiting.append(action)
            return true
        }
    }
}

/// What the origin was asked.
struct Asked: Sendable {
    let method: Method
    let path: String
    let fields: Fields
    let clientHost: String?
    /// The request's body, as far as it was there at once.
    var content = ""
    /// Counted from 1, over all loops.
    let number: Int
}

/// One answer of the origin.
struct Reply: Sendable {
    enum Step: Sendable {
        case interim(Int)
        case head(ResponseHead, BodyFraming)
        case bytes([UInt8])
        case valve(Valve)
        case end(Fields)
        /// The same, but it may be a cut for all that anybody knows.
        case unprovenEnd
        case fail(FetchError)
    }

    var steps: [Step] = []
    /// The source throws this instead of starting.
    var refusal: FetchError?

    /// A whole answer, with Content-Length where it has a body.
    static func whole(
        _ status: Int = 200,
        _ fields: [(String, String)] = [("Cache-Control", "max-age=6000")],
        _ body: [UInt8] = Array("hello".utf8),
        head valve: Valve? = nil
    ) -> Reply {
        let isEmpty = status == 204 || status == 304
        let length = isEmpty ? [] : [("Content-Length", "\(body.count)")]
        let head = ResponseHead(status: status, reason: "R", fields: Fields(fields + length))
        var steps: [Step] = valve.map { [.valve($0)] } ?? []
        steps.append(.head(head, isEmpty ? .none : .length(UInt64(body.count))))
        if !isEmpty, !body.isEmpty { steps.append(.bytes(body)) }
        return Reply(steps: steps + [.end(Fields())])
    }

    /// The answer to HEAD.
    static func headOnly(_ status: Int = 200, _ fields: [(String, String)]) -> Reply {
        Reply(steps: [.head(ResponseHead(status: status, reason: "R", fields: Fields(fields)), .none), .end(Fields())])
    }

    /// An answer in pieces, of a declared length or chunked.
    static func pieces(
        _ fields: [(String, String)] = [("Cache-Control", "max-age=6000")],
        length: Int? = nil,
        _ steps: [Step]
    ) -> Reply {
        var all = Fields(fields)
        if let length { all.set(.contentLength, "\(length)") }
        let framing = length.map { BodyFraming.length(UInt64($0)) } ?? .chunked
        return Reply(steps: [.head(ResponseHead(status: 200, reason: "R", fields: all), framing)] + steps)
    }

    /// An answer that stops behind `count` bytes of its body until a valve is open.
    static func halting(
        _ body: [UInt8],
        after count: Int,
        _ valve: Valve,
        fields: [(String, String)] = [("Cache-Control", "max-age=6000")],
        isLengthKnown: Bool = true
    ) -> Reply {
        .pieces(fields, length: isLengthKnown ? body.count : nil, halves(body, count, valve))
    }

    /// A 206 with the first bytes of a body of `length` bytes, which stops in the same way.
    static func haltingPart(_ part: [UInt8], of length: Int, after count: Int, _ valve: Valve) -> Reply {
        let fields = [
            ("Cache-Control", "max-age=6000"), ("ETag", "\"1\""),
            ("Content-Range", "bytes 0-\(part.count - 1)/\(length)"), ("Content-Length", "\(part.count)"),
        ]
        let head = ResponseHead(status: 206, reason: "R", fields: Fields(fields))
        return Reply(steps: [.head(head, .length(UInt64(part.count)))] + halves(part, count, valve))
    }

    private static func halves(_ body: [UInt8], _ count: Int, _ valve: Valve) -> [Step] {
        [.bytes(Array(body[..<count])), .valve(valve), .bytes(Array(body[count...])), .end(Fields())]
    }

    static let down = Reply(steps: [.fail(.upstream(UpstreamError(.connectionRefused, detail: "refused")))])
}

/// Sendable: its state is under its mutex.
final class Origin: Sendable {
    struct State {
        var log: [Asked] = []
        /// Fetches that have neither ended nor been cancelled.
        var active = 0
        var cancelled = 0
        var reply: @Sendable (Asked) -> Reply = { _ in .whole() }
    }

    private let state = Mutex(State())

    func answers(_ reply: @escaping @Sendable (Asked) -> Reply) { state.withLock { $0.reply = reply } }

    var log: [Asked] { state.withLock { $0.log } }
    var count: Int { state.withLock { $0.log.count } }
    var active: Int { state.withLock { $0.active } }
    var cancelled: Int { state.withLock { $0.cancelled } }
    /// Such as `GET GET HEAD`.
    var methods: String { log.map(\.method.name).joined(separator: " ") }

    fileprivate func asked(_ request: FetchRequest) -> Reply {
        let content = request.body.map(Self.read) ?? ""
        let (asked, reply) = state.withLock { state in
            let asked = Asked(
                method: request.method,
                path: request.path,
                fields: request.fields,
                clientHost: request.clientHost,
                content: content,
                number: state.log.count + 1
            )
            state.log.append(asked)
            return (asked, state.reply)
        }
        return reply(asked)
    }

    private static func read(_ body: any RequestBodySource) -> String {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
        defer { buffer.deallocate() }
        var bytes: [UInt8] = []
        while bytes.count < 1 << 20, case .bytes(let count) = body.read(into: buffer) { bytes += buffer[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    fileprivate func began() { state.withLock { $0.active += 1 } }

    fileprivate func ended(isCancelled: Bool) {
        state.withLock { state in
            state.active -= 1
            if isCancelled { state.cancelled += 1 }
        }
    }
}

/// Loop-bound.
final class ScriptedSource: FetchSource {
    private let origin: Origin
    let opensSockets: Bool

    init(_ origin: Origin, opensSockets: Bool = true) {
        self.origin = origin
        self.opensSockets = opensSockets
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let reply = origin.asked(request)
        if let refusal = reply.refusal { throw refusal }
        let fetch = ScriptedFetch(origin, reply.steps, sink, loop)
        fetch.later()
        return fetch
    }
}

@available(*, unavailable) extension ScriptedSource: Sendable {}

/// Loop-bound; keeps itself until it ends, as a transfer is kept by its client.
final class ScriptedFetch: EndHandle {
    private final class Box: @unchecked Sendable {  // `fetch` is touched on its loop only
        var fetch: ScriptedFetch?
    }

    private let origin: Origin
    private var steps: ArraySlice<Reply.Step>
    private var sink: (any FetchSink)?
    private let loop: EventLoop
    private var isPaused = false
    private(set) var isEndProven = true
    private let box = Box()

    init(_ origin: Origin, _ steps: [Reply.Step], _ sink: any FetchSink, _ loop: EventLoop) {
        self.origin = origin
        self.steps = steps[...]
        self.sink = sink
        self.loop = loop
        box.fetch = self
        origin.began()
    }

    func later() { loop.submit { [box] _ in box.fetch?.advance() } }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        later()
    }

    func bodyAvailable() {}

    func cancel() {
        guard sink != nil else { return }
        sink = nil
        origin.ended(isCancelled: true)
        box.fetch = nil
    }

    private func advance() {
        while !isPaused, let sink, let step = steps.first {
            if case .valve(let valve) = step {
                if valve.whenOpen({ [box, loop] in loop.submit { _ in box.fetch?.advance() } }) { return }
            }
            steps.removeFirst()
            switch step {
            case .interim(let status): sink.received(interim: ResponseHead(status: status))
            case .head(let head, let framing): sink.received(head, framing: framing)
            case .bytes(let bytes): isPaused = bytes.withUnsafeBytes { sink.received($0) } == .pause
            case .valve: break
            case .end(let trailers): end { sink.finished(trailers: trailers) }
            case .unprovenEnd:
                isEndProven = false
                end { sink.finished(trailers: Fields()) }
            case .fail(let error): end { sink.failed(error) }
            }
        }
    }

    private func end(_ tell: () -> Void) {
        sink = nil
        origin.ended(isCancelled: false)
        tell()
        box.fetch = nil
    }
}

@available(*, unavailable) extension ScriptedFetch: Sendable {}
