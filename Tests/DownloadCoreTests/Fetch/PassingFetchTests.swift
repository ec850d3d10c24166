// A decorator of fetches that changes nothing passes on everything, in both directions.

import HTTPWire
import LoopSupport
import Testing
import Upstream

@testable import DownloadCore
@testable import EventLoop

/// Writes down what it hears, and answers what is no default anywhere; used on the loop only.
private final class Heard: FetchHandle, FetchSink {
    var calls: [String] = []

    func resume() { calls.append("resume") }
    func pause() { calls.append("pause") }
    func bodyAvailable() { calls.append("bodyAvailable") }
    func cancel() { calls.append("cancel") }
    let hasContent = true
    let isAtHand = true
    let isEndProven = false

    let acceptsReentrantBytes = true
    let maximumAtOnce = 7
    let supportsSplice = true
    func received(interim head: ResponseHead) { calls.append("interim \(head.status)") }
    func received(_ head: ResponseHead, framing: BodyFraming) { calls.append("head \(head.status) \(framing)") }
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        calls.append("bytes \(bytes.count)")
        return .pause
    }
    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? {
        calls.append("splice \(count) \(source.socket)")
        return nil
    }
    func finished(trailers: Fields) { calls.append("finished \(trailers.count)") }
    func failed(_ error: FetchError) { calls.append("failed \(error)") }
}

@available(*, unavailable) extension Heard: Sendable {}

/// Changes nothing.
private final class Plain: PassingFetch {
    let handle: (any FetchHandle)?
    let sink: (any FetchSink)?

    init(_ handle: (any FetchHandle)?, _ sink: (any FetchSink)?) {
        self.handle = handle
        self.sink = sink
    }

    func cancel() { handle?.cancel() }
}

@available(*, unavailable) extension Plain: Sendable {}

@Suite struct PassingFetchTests {
    @Test("a handle that changes nothing passes on every member")
    func handle() {
        let heard = Heard()
        let plain: any FetchHandle = Plain(heard, nil)
        plain.resume()
        plain.pause()
        plain.bodyAvailable()
        plain.cancel()
        #expect(heard.calls == ["resume", "pause", "bodyAvailable", "cancel"])
        #expect(plain.hasContent && plain.isAtHand && !plain.isEndProven)
    }

    @Test("a sink that changes nothing passes on every member")
    func sink() {
        let heard = Heard()
        let plain: any FetchSink = Plain(nil, heard)
        plain.received(interim: ResponseHead(status: 103))
        plain.received(ResponseHead(status: 200), framing: .length(3))
        let flow = [1, 2, 3].withUnsafeBytes { plain.received($0) }
        #expect(flow == .pause)
        #expect(plain.splice(9, from: SpliceSource(4)) == nil)
        plain.finished(trailers: Fields([("A", "b")]))
        plain.failed(.cancelled)
        #expect(
            heard.calls == [
                "interim 103", "head 200 length(3)", "bytes 24", "splice 9 4", "finished 1",
                "failed \(FetchError.cancelled)",
            ]
        )
        #expect(plain.acceptsReentrantBytes && plain.maximumAtOnce == 7 && plain.supportsSplice)
    }

    @Test("nobody behind is as nothing at all")
    func nobody() {
        let plain = Plain(nil, nil)
        plain.resume()
        #expect(!plain.hasContent && !plain.isAtHand && plain.isEndProven)
        #expect(!plain.acceptsReentrantBytes && plain.maximumAtOnce == .max && !plain.supportsSplice)
    }
}
