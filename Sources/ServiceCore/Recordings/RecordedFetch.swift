// A fetch whose answer is recorded when it is complete.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Policies
import Upstream

/// Passes one answer on, and collects it for a recording. Loop-bound.
///
/// States: waiting for the head → passing (recorded or not) → saving (the end waits for the files) → ended; waiting →
/// replaying (the origin has failed, and a recording stands in).
final class RecordedFetch: PassingFetch {
    private enum State { case waiting, passing, saving, replaying, ended }

    var handle: (any FetchHandle)?
    private var state = State.waiting
    private(set) var sink: (any FetchSink)?
    /// The request as the client made it, which a recording that stands in is made to answer.
    private let request: RequestHead
    private let key: RecordingKey
    private let plan: RecordingPlan
    private let expectation: SeedExpectation?
    private let clock: WallClock
    private let standIn: OpenRecording?
    private let loop: EventLoop
    /// The content so far; nil if the answer is not recorded.
    private var content: RecordingContent?
    private var head: ResponseHead?
    private var framing = BodyFraming.none
    /// True if the head is held back, since nothing follows it.
    private var isHeadHeld = false
    /// The last bytes of the content, which are held back.
    private var rest: [UInt8] = []
    /// True while the file of the recording has not taken all bytes that have come.
    private var isFileBehind = false
    private var isSinkPaused = false
    private var trailers = Fields()
    private var stand: ReplayedFetch?
    /// The task that waits for the end of the answer; kept until then.
    var task: Task<Void, Never>?
    private var waiter: UnsafeContinuation<RecordingDraft?, Never>?
    private(set) var isEndProven = true

    /// - Parameters:
    ///   - expectation: an answer that does not meet it is not recorded; nil records any.
    ///   - standIn: the recording that answers if the origin fails; nil for none.
    init(
        _ request: RequestHead,
        _ key: RecordingKey,
        _ plan: RecordingPlan,
        _ expectation: SeedExpectation?,
        _ clock: WallClock,
        _ budget: BodyBudget,
        standIn: OpenRecording?,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) {
        self.request = request
        self.key = key
        self.plan = plan
        self.expectation = expectation
        self.clock = clock
        self.standIn = standIn
        self.sink = sink
        self.loop = loop
        // An answer that the request itself has chosen by its demo field is not recorded: it is for this request only.
        guard request.method != .head, request.method.hasJudgedAnswers,
            !request.fields.contains(DemoOverride.fieldName)
        else { return }
        content = RecordingContent(
            in: plan.folder,
            atMost: plan.rules.maximumSize,
            budget: budget,
            hasRoom: { [weak self] in self?.fileHasRoom() },
            failed: { [weak self] in self?.fileFailed() },
            on: loop
        )
    }

    // MARK: - FetchHandle

    func resume() {
        isSinkPaused = false
        if let stand { return stand.resume() }
        if !isFileBehind { handle?.resume() }
    }

    func pause() {
        isSinkPaused = true
        if let stand { stand.pause() } else { handle?.pause() }
    }

    var hasContent: Bool { stand == nil && handle?.hasContent ?? false }
    var isAtHand: Bool { stand != nil }

    func cancel() {
        let (handle, stand) = (handle, stand)
        end()
        handle?.cancel()
        stand?.cancel()
    }

    // MARK: - FetchSink

    // The bytes are kept here, so they are neither spliced nor taken within another call.
    var acceptsReentrantBytes: Bool { false }
    var supportsSplice: Bool { false }
    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? { nil }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        if head.status >= 500, replayInstead() { return }
        state = .passing
        var head = head
        // The field that marks a recording is removed: the answer is not one.
        head.fields.remove(ReplayedFetch.fieldName)
        // A 304 or a 206 is not the whole representation, a server error is not an answer worth keeping, and a 429 must
        // not be stored (RFC 6585 section 4).
        if head.status == 304 || head.status == 206 || head.status == 429 || head.status >= 500 { content = nil }
        if case .length(let length) = framing, length > UInt64(plan.rules.maximumSize) { giveUp() }
        self.head = head
        self.framing = framing
        isHeadHeld = isLast
        if !isHeadHeld { sink?.received(head, framing: framing) }
    }

    /// True if nothing follows the bytes so far, and the client can tell: the rest is held back until the recording is
    /// written. An answer without a length ends by itself later.
    private var isLast: Bool {
        guard let content else { return false }
        switch framing {
        case .none: return true
        case .length(let length): return UInt64(content.count) >= length
        default: return false
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard let content else { return sink?.received(bytes) ?? .continue }
        if content.count + bytes.count > plan.rules.maximumSize {
            giveUp()
            return sink?.received(bytes) ?? .continue
        }
        isFileBehind = content.append(bytes) == .pause
        if isLast {
            rest = Array(bytes)
            return .continue
        }
        isSinkPaused = sink?.received(bytes) == .pause
        return isSinkPaused || isFileBehind ? .pause : .continue
    }

    private func fileHasRoom() {
        guard isFileBehind else { return }
        isFileBehind = false
        if !isSinkPaused { handle?.resume() }
    }

    /// Gives the recording up, since its file failed; the answer goes on.
    private func fileFailed() {
        guard content != nil, state == .passing else { return }
        content = nil
        plan.folder.tell(
            "the answer to '\(key.request)' is not recorded: its content cannot be written below \(plan.folder.path); "
                + "make room, or the folder writable"
        )
        fileHasRoom()
    }

    /// Sends the head or the bytes that were held back.
    private func sendRest() {
        guard let head else { return }
        if isHeadHeld { sink?.received(head, framing: framing) }
        if !rest.isEmpty { _ = rest.withUnsafeBytes { sink?.received($0) } }
    }

    func finished(trailers: Fields) {
        guard state == .passing else { return }
        isEndProven = handle?.isEndProven ?? true
        guard content != nil, isEndProven, let head else {
            sendRest()
            return end { $0.finished(trailers: trailers) }
        }
        state = .saving
        self.trailers = trailers
        wake(RecordingDraft(key, head, asked: request.fields, now: clock.now(), plan, expectation))
    }

    /// Waits for the whole answer, writes it, and ends the fetch: a client that has the answer finds the recording.
    func save(on loop: isolated EventLoop) async {
        guard state != .ended else { return }
        guard let draft = await withUnsafeContinuation({ waiter = $0 }) else {
            await stand?.run(on: loop)
            return
        }
        await content?.save(draft)
        sendRest()
        end { $0.finished(trailers: trailers) }
    }

    /// Resumes the task that writes.
    /// - Parameter draft: nil if there is no recording.
    private func wake(_ draft: RecordingDraft?) {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume(returning: draft)
    }

    func failed(_ error: FetchError) {
        if state == .waiting, error.isOriginFailure, replayInstead() { return }
        end { $0.failed(error) }
    }

    /// Lets a recording answer in place of the origin.
    /// - Returns: false if there is none.
    private func replayInstead() -> Bool {
        guard let standIn, let sink, state == .waiting else { return false }
        state = .replaying
        content = nil
        let handle = handle
        let stand = ReplayedFetch(standIn, request, now: clock.now(), sink: sink, on: loop)
        if isSinkPaused { stand.pause() }
        self.stand = stand
        self.handle = nil
        handle?.cancel()
        wake(nil)
        return true
    }

    private func giveUp() {
        guard content != nil else { return }
        content = nil
        plan.folder.tell(
            "the answer to '\(key.request)' has more than \(plan.rules.maximumSize) bytes and is not recorded; "
                + "raise 'recordings.max_size'"
        )
    }

    private func end(_ tell: (any FetchSink) -> Void = { _ in }) {
        guard state != .ended else { return }
        state = .ended
        let sink = sink
        self.sink = nil
        handle = nil
        task = nil
        content = nil
        wake(nil)
        if let sink { tell(sink) }
    }
}

@available(*, unavailable) extension RecordedFetch: Sendable {}
