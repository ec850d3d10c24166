// A fetch whose complete answer is written into a recording.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import HTTPWire
import Policies
import Upstream

/// Passes one answer on, and keeps it for a recording. Loop-bound.
///
/// States: waiting for the head → passing (recorded or not) → saving (the end waits for the files) → ended; waiting →
/// replaying (the origin has failed, and a recording stands in).
final class RecordedFetch: FetchHandle, FetchSink {
    private enum State { case waiting, passing, saving, replaying, ended }

    var handle: (any FetchHandle)?
    private var state = State.waiting
    private var sink: (any FetchSink)?
    /// As the client made it, for a recording that stands in.
    private let request: RequestHead
    private let key: RecordingKey
    private let plan: RecordingPlan
    private let expectation: SeedExpectation?
    private let clock: WallClock
    private let standIn: Recording?
    /// The answer is kept up to its end; false for one that is not recorded.
    private var isRecorded: Bool
    private var head: ResponseHead?
    private var framing = BodyFraming.none
    private var content: [UInt8] = []
    /// The first byte of ``content`` that the sink has not had.
    private var sent = 0
    private var trailers = Fields()
    private var stand: ReplayedFetch?
    /// Held until the end.
    var task: Task<Void, Never>?
    private var waiter: UnsafeContinuation<Making?, Never>?
    /// Makes the recording, on an I/O thread; nil: there is none after all.
    private typealias Making = @Sendable () -> Recording?
    private(set) var isEndProven = true

    /// - Parameters:
    ///   - expectation: what is not so is not kept; nil: everything may be.
    ///   - standIn: answers where the origin fails.
    init(
        _ request: RequestHead,
        _ key: RecordingKey,
        _ plan: RecordingPlan,
        _ expectation: SeedExpectation?,
        _ clock: WallClock,
        standIn: Recording?,
        sink: any FetchSink
    ) {
        self.request = request
        self.key = key
        self.plan = plan
        self.expectation = expectation
        self.clock = clock
        // What a request asks of its demo answer is for nobody else.
        isRecorded =
            request.method != .head && request.method.hasJudgedAnswers
            && !request.fields.contains(DemoOverride.fieldName)
        self.standIn = standIn
        self.sink = sink
    }

    // MARK: - FetchHandle

    func resume() { if let stand { stand.resume() } else { handle?.resume() } }
    func pause() { if let stand { stand.pause() } else { handle?.pause() } }
    func bodyAvailable() { handle?.bodyAvailable() }
    var hasContent: Bool { stand == nil && handle?.hasContent ?? false }

    func cancel() {
        let (handle, stand) = (handle, stand)
        end()
        handle?.cancel()
        stand?.cancel()
    }

    // MARK: - FetchSink

    var maximumAtOnce: Int { sink?.maximumAtOnce ?? .max }

    func received(interim head: ResponseHead) { sink?.received(interim: head) }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        if head.status >= 500, replayInstead() { return }
        state = .passing
        var head = head
        // Only a recording says that it is one.
        head.fields.remove(ReplayedFetch.fieldName)
        // Neither says all of what was asked for, a server that fails has no answer to keep, and nobody keeps a 429
        // (RFC 6585 section 4).
        if head.status == 304 || head.status == 206 || head.status == 429 || head.status >= 500 { isRecorded = false }
        if case .length(let length) = framing, length > UInt64(plan.rules.maximumSize) { giveUp() }
        self.head = head
        self.framing = framing
        if !isLast { sink?.received(head, framing: framing) }
    }

    /// Nothing follows what has come, and a client that has all of it knows so: it gets the rest when the recording has
    /// been written. What has no length ends later by itself.
    private var isLast: Bool {
        guard isRecorded else { return false }
        switch framing {
        case .none: return true
        case .length(let length): return UInt64(content.count) >= length
        default: return false
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard isRecorded else { return sink?.received(bytes) ?? .continue }
        if content.count + bytes.count > plan.rules.maximumSize {
            giveUp()
            return sink?.received(bytes) ?? .continue
        }
        content.append(contentsOf: bytes)
        if isLast { return .continue }
        sent = content.count
        return sink?.received(bytes) ?? .continue
    }

    /// Sends what was held back.
    private func sendRest() {
        guard let head else { return }
        if content.isEmpty, isLast { sink?.received(head, framing: framing) }
        if sent < content.count { _ = content[sent...].withUnsafeBytes { sink?.received($0) } }
    }

    func finished(trailers: Fields) {
        guard state == .passing else { return }
        isEndProven = handle?.isEndProven ?? true
        guard isRecorded, isEndProven, let head, let making = making(head) else {
            sendRest()
            return end { $0.finished(trailers: trailers) }
        }
        state = .saving
        self.trailers = trailers
        wake(making)
    }

    /// Waits for the whole answer, writes it, and ends the fetch: whoever has the answer finds the recording.
    func save(on loop: isolated EventLoop) async {
        guard state != .ended else { return }
        guard let making = await withUnsafeContinuation({ waiter = $0 }) else { return }
        await plan.folder.save(making)
        sendRest()
        end { $0.finished(trailers: trailers) }
    }

    /// - Parameter making: nil: there will be no recording.
    private func wake(_ making: Making?) {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume(returning: making)
    }

    func failed(_ error: FetchError) {
        if state == .waiting, error.isOriginFailure, replayInstead() { return }
        end { $0.failed(error) }
    }

    /// Lets a recording answer in the place of the origin.
    /// - Returns: false where there is none.
    private func replayInstead() -> Bool {
        guard let standIn, let sink, state == .waiting else { return false }
        state = .replaying
        wake(nil)
        let handle = handle
        let stand = ReplayedFetch(standIn, request, now: clock.now(), sink: sink)
        self.stand = stand
        self.handle = nil
        handle?.cancel()
        stand.answer()
        return true
    }

    private func giveUp() {
        guard isRecorded else { return }
        isRecorded = false
        content = []
        plan.folder.tell(
            "the answer to '\(key.request)' has more than \(plan.rules.maximumSize) bytes and is not recorded; "
                + "raise 'recordings.max_size'"
        )
    }

    /// What the answer is that its route does not expect, such as `has the status 404`; nil where it is as expected.
    private func unexpected(_ status: Int, _ fields: Fields) -> String? {
        guard let expectation else { return nil }
        let whole = OwnRepresentation(
            ResponseHead(status: status, fields: fields),
            length: Int64(content.count),
            now: clock.now()
        )
        return expectation.mismatch(whole.head, content)
    }

    /// - Returns: nil where the answer is not as its route expects.
    private func making(_ head: ResponseHead) -> Making? {
        let fields = HopByHop.forwardable(head.fields, isRequest: false)
        if let found = unexpected(head.status, fields) {
            plan.folder.tell(
                "the answer to '\(key.request)' is not recorded: it \(found), which its route does not expect"
            )
            return nil
        }
        return { [key, plan, content, asked = request.fields, now = clock.now()] in
            do throws(RedactionRefusal) {
                let kept = try Redaction.apply(to: content, of: fields, plan.rules, plan.secrets)
                return Recording(
                    key: key,
                    vary: plan.rules.matchesVary ? RecordingVary.pairs(kept.fields, asked) : [],
                    recordedAt: now,
                    status: head.status,
                    reason: head.reason,
                    fields: kept.fields,
                    content: kept.content
                )
            } catch {
                plan.folder.tell("the answer to '\(key.request)' is not recorded: it \(error)")
                return nil
            }
        }
    }

    private func end(_ tell: (any FetchSink) -> Void = { _ in }) {
        guard state != .ended else { return }
        state = .ended
        let sink = sink
        self.sink = nil
        handle = nil
        task = nil
        content = []
        wake(nil)
        if let sink { tell(sink) }
    }
}

@available(*, unavailable) extension RecordedFetch: Sendable {}
