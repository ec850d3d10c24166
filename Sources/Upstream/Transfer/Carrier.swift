// What carries a transfer to its origin and back: a connection of Drydock's own, or a handle of libcurl's.

internal import EventLoop
internal import HTTPWire

/// Carries one transfer after another; loop-bound. `WireConnection` speaks HTTP/1.1 over TCP, `EasyHandle` is libcurl's.
class Carrier {
    /// How much may wait to be handed on before nothing more is read.
    static let mostBuffered = 1 << 18

    /// Whose it is now.
    final var transfer: Transfer?
    /// What has come of that one's response.
    final let reader = ResponseReader()
    private final var timer: LoopTimer?
    /// When the timer will fire; nil: it does not run.
    private final var timerAt: UInt64?

    init(on loop: EventLoop) {
        // Unowned: the timer is this object's own and ends with it.
        timer = loop.makeTimer { [unowned self] in
            timerAt = nil
            transfer?.timerFired()
        }
    }

    /// Has the transfer's timer fire at `time` or before: it runs on from one transfer to the next, which looks again when
    /// it fires too early.
    final func wake(at time: UInt64) {
        if let timerAt, timerAt <= time { return }
        timerAt = time
        let now = Monotonic.now()
        timer?.start(after: time > now ? time - now : 0)
    }

    /// The origin's address of the connection in use, such as `127.0.0.1:8080`; nil before there is one.
    var remoteAddress: String? { nil }

    /// The delegate wants bytes again, or the source has some.
    func goOn(receive: Bool, send: Bool) {}

    /// The transfer ends: what is not fit for another one is closed.
    func release() {}
}

@available(*, unavailable) extension Carrier: Sendable {}

/// `@unchecked Sendable`: the value does not leave the loop's thread.
private struct OnThread<Value>: @unchecked Sendable {  // protected as the comment above says
    let value: Value
}

extension EventLoop {
    /// A timer of this loop; on the loop's own thread only, which is checked.
    nonisolated func makeTimer(_ handler: @escaping () -> Void) -> LoopTimer {
        // Called on this thread alone.
        nonisolated(unsafe) let handler = handler
        return assumeIsolated { OnThread(value: LoopTimer(on: $0, handler: handler)) }.value
    }

    /// An event of this loop; on the loop's own thread only, which is checked.
    nonisolated func makeEvent(_ descriptor: Int32, _ handler: any IOHandler) -> IOEvent {
        // Called on this thread alone.
        nonisolated(unsafe) let handler = handler
        return assumeIsolated { OnThread(value: IOEvent(on: $0, descriptor: descriptor, handler: handler)) }.value
    }
}
