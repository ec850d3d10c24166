// A source inside the test that answers as a script says, and what a sink hears of it through another source.

import DownloadCore
import EventLoop
import HTTPWire
import LoopSupport
import TestSupport
import Upstream

@testable import ServiceCore

/// What the source answers with, in order, all before anything waits.
struct SourceScript: Sendable {
    var status = 200
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    /// Bytes of the body that come at a time.
    var piece = Int.max
    var framing: BodyFraming?
    /// In the place of the end, or, without a status, of everything.
    var failure: FetchError?
}

/// What became of one fetch.
struct SourceRun: Sendable {
    var asked = Fields()
    var head: ResponseHead?
    var framing = BodyFraming.none
    var body: [UInt8] = []
    var error: FetchError?
    var isOver = false
    var isCancelled = false
    /// Bytes that the source was asked to send at a time, when it sent the first ones.
    var atOnce = Int.max
    /// How often the source was told to hold back.
    var pauses = 0
    /// The most bytes that came without a word of the sink.
    var mostAtOnce = 0

    var status: Int? { head?.status }
    var text: String { String(decoding: body, as: UTF8.self) }
    func field(_ name: String) -> String? { head?.fields.first(name) }
}

/// Loop-bound.
private final class ScriptedSource: FetchSource {
    private let script: SourceScript
    private let run: Monitor<SourceRun>
    var fetch: ScriptedFetch?

    init(_ script: SourceScript, _ run: Monitor<SourceRun>) {
        self.script = script
        self.run = run
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        run.update { $0.asked = request.fields }
        let fetch = ScriptedFetch(script, sink, run)
        self.fetch = fetch
        return fetch
    }
}

@available(*, unavailable) extension ScriptedSource: Sendable {}

/// Loop-bound.
private final class ScriptedFetch: EndHandle {
    private let script: SourceScript
    private let run: Monitor<SourceRun>
    private var sink: (any FetchSink)?

    init(_ script: SourceScript, _ sink: any FetchSink, _ run: Monitor<SourceRun>) {
        self.script = script
        self.sink = sink
        self.run = run
    }

    /// Answers.
    func play() {
        let framing = script.framing ?? .length(UInt64(script.body.count))
        sink?.received(ResponseHead(status: script.status, fields: Fields(script.fields)), framing: framing)
        var rest = script.body[...]
        if let sink { run.update { $0.atOnce = sink.maximumAtOnce } }
        while !rest.isEmpty, let sink {
            let piece = rest.prefix(script.piece)
            rest = rest.dropFirst(piece.count)
            _ = piece.withUnsafeBytes { sink.received($0) }
        }
        if let failure = script.failure { sink?.failed(failure) } else { sink?.finished(trailers: Fields()) }
    }

    func resume() {}
    func pause() { run.update { $0.pauses += 1 } }
    func bodyAvailable() {}
    func cancel() {
        sink = nil
        run.update { $0.isCancelled = true }
    }
}

@available(*, unavailable) extension ScriptedFetch: Sendable {}

/// Loop-bound.
private final class Listener: EndSink {
    private let run: Monitor<SourceRun>
    private let isSlow: Bool

    init(_ run: Monitor<SourceRun>, isSlow: Bool) {
        self.run = run
        self.isSlow = isSlow
    }

    var maximumAtOnce: Int { isSlow ? 1000 : .max }
    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) {
        run.update { ($0.head, $0.framing) = (head, framing) }
    }
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        run.update { $0.body += Array(bytes) }
        return isSlow ? .pause : .continue
    }
    func finished(trailers: Fields) { run.update { $0.isOver = true } }
    func failed(_ error: FetchError) {
        run.update {
            $0.error = error
            $0.isOver = true
        }
    }
}

@available(*, unavailable) extension Listener: Sendable {}

/// Makes one request of a scripted source through the source that `wrap` puts around it.
/// - Parameter isSlow: the sink holds back after each piece, and wants the next one when the source is through.
func play(
    _ script: SourceScript,
    _ method: HTTPWire.Method = .get,
    _ fields: [(String, String)] = [],
    isCheck: Bool = false,
    isSlow: Bool = false,
    through wrap: @escaping @Sendable (any FetchSource) -> any FetchSource
) async throws -> SourceRun {
    let loop = try EventLoop.start()
    defer { loop.stop() }
    let run = Monitor(SourceRun())
    await onLoop(loop) { loop in
        let source = ScriptedSource(script, run)
        var request = FetchRequest(method: method, path: "/a", fields: Fields(fields))
        request.isCheck = isCheck
        do throws(FetchError) {
            let handle = try await wrap(source).start(request, sink: Listener(run, isSlow: isSlow), on: loop)
            if isSlow { handle.pause() }
            source.fetch?.play()
            var shown = 0
            // Bounded: a fetch that lost its end would have none.
            for _ in 0..<100_000 where isSlow {
                let (count, isOver) = run.read { ($0.body.count, $0.isOver || $0.error != nil) }
                run.update { $0.mostAtOnce = max($0.mostAtOnce, count - shown) }
                shown = count
                if isOver { break }
                handle.resume()
            }
            withExtendedLifetime(handle) {}
        } catch {
            run.update { $0.error = error }
        }
    }
    return run.read { $0 }
}
