// An exchange that waits for a latency: a timer, and neither a task nor a frame of one until the time has come.

import EventLoop

/// Loop-bound; the exchange holds it while it waits.
final class DelayedExchange: SynchronousResponder {
    private let exchange: Exchange
    private let handler: any ExchangeHandler
    private var timer: LoopTimer?

    private init(_ exchange: Exchange, _ handler: any ExchangeHandler) {
        self.exchange = exchange
        self.handler = handler
    }

    /// Leaves the exchange to the handler's waiting path, later. An answer that is made already
    /// (``Exchange/made``) is left to it soon, where the client leaves meanwhile. On the loop's thread.
    /// - Parameter nanoseconds: from now on.
    static func begin(_ exchange: Exchange, after nanoseconds: UInt64, by handler: any ExchangeHandler) {
        let delayed = DelayedExchange(exchange, handler)
        // The timer holds it until it fires or is dropped: the exchange lets go of it when the client leaves.
        let timer = LoopTimer(onThreadOf: exchange.context.loop) { delayed.timeHasCome() }
        delayed.timer = timer
        exchange.responder = delayed
        timer.start(after: nanoseconds)
    }

    private func timeHasCome() {
        exchange.responder = nil
        // A callback of the loop, outside any task: its isolation is entered once, by address.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        exchange.context.loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            // The caller's frame holds it.
            Unmanaged<DelayedExchange>.fromOpaque(pointer).takeUnretainedValue().launch(on: loop)
        }
    }

    private func launch(on loop: isolated EventLoop) {
        exchange.launch(by: handler, on: loop)
        timer = nil
    }

    var beginsTask: Bool { true }

    func roomMade() {}

    func clientLeft() {
        if exchange.made == nil { timer = nil } else { timer?.start(after: 0) }
    }
}

@available(*, unavailable) extension DelayedExchange: Sendable {}
