// A Unix signal as an event on a loop.

import CLibevent
import Glibc

/// Watches one signal; loop-bound. One loop of the process watches signals.
package final class SignalWatch {
    private let storage: UnsafeMutablePointer<event>
    private let handler: () -> Void

    /// - Parameter handler: called on the loop for each delivery.
    package init(on loop: isolated EventLoop, signal: Int32, handler: @escaping () -> Void) {
        self.handler = handler
        storage = .allocate(capacity: 1)
        storage.initialize(to: event())
        event_assign(
            storage,
            loop.base.raw,
            signal,
            Int16(EV_SIGNAL | EV_PERSIST),
            { _, _, context in
                // Unretained: `deinit` removes the event before the object goes.
                guard let context else { return }
                Unmanaged<SignalWatch>.fromOpaque(context).takeUnretainedValue().handler()
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        event_add(storage, nil)
    }

    deinit {
        event_del(storage)
        storage.deallocate()
    }

    /// A write to a peer that has gone is an error of the call, not the end of the process; unless the program has a
    /// handler of its own for it.
    package static func ignoreBrokenPipes() {
        var current = sigaction()
        guard sigaction(SIGPIPE, nil, &current) == 0, current.__sigaction_handler.sa_handler == nil else { return }
        signal(SIGPIPE, SIG_IGN)
    }
}

@available(*, unavailable) extension SignalWatch: Sendable {}
