// The events of the kernel for a loop: the readiness of descriptors, and Unix signals.

import CLibevent
import Glibc

/// The readiness of a descriptor.
public struct IOReadiness: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let read = IOReadiness(rawValue: 1)
    public static let write = IOReadiness(rawValue: 2)

    /// Compares raw values; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: IOReadiness, right: IOReadiness) -> Bool {
        left.rawValue == right.rawValue
    }

    public init(read: Bool, write: Bool) { rawValue = (read ? 1 : 0) | (write ? 2 : 0) }
}

/// The owner of a descriptor.
package protocol IOHandler: AnyObject {
    /// Handles readiness on the loop's thread, from libevent, outside any task. Level-triggered: called again while it
    /// stays ready.
    func ready(_ readiness: IOReadiness)
}

/// Watches a descriptor; loop-bound. It does not own the descriptor: `cancel()` it before closing that.
package final class IOEvent {
    package let descriptor: Int32
    private let readEvent: UnsafeMutablePointer<event>
    private let writeEvent: UnsafeMutablePointer<event>
    // Unowned and unchecked: the creator of this object keeps the handler alive until `cancel()`, or until it releases
    // this object, which cancels it.
    private unowned(unsafe) let handler: any IOHandler
    private var interest: IOReadiness = []

    package convenience init(on loop: isolated EventLoop, descriptor: Int32, handler: any IOHandler) {
        self.init(base: loop.base, descriptor: descriptor, handler: handler)
    }

    /// Makes an event for objects that are bound to the loop and not isolated to it, such as those that libevent calls:
    /// on another thread than the loop's, this ends the process.
    package convenience init(onThreadOf loop: EventLoop, descriptor: Int32, handler: any IOHandler) {
        loop.checkThread()
        self.init(base: loop.base, descriptor: descriptor, handler: handler)
    }

    /// Makes an event; called on the loop's thread.
    private init(base: LoopBase, descriptor: Int32, handler: any IOHandler) {
        self.descriptor = descriptor
        self.handler = handler
        readEvent = .allocate(capacity: 2)
        readEvent.initialize(repeating: event(), count: 2)
        writeEvent = readEvent + 1
        let context = Unmanaged.passUnretained(self).toOpaque()
        for (pointer, flag) in [(readEvent, EV_READ), (writeEvent, EV_WRITE)] {
            event_assign(
                pointer,
                base.raw,
                descriptor,
                Int16(flag | EV_PERSIST),
                { _, what, context in
                    guard let context else { return }
                    // This call retains the handler, which may release itself and this event.
                    let handler = Unmanaged<IOEvent>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.handler }
                    handler.ready(Int32(what) & EV_READ != 0 ? .read : .write)
                },
                context
            )
        }
    }

    deinit {
        cancel()
        readEvent.deallocate()
    }

    /// Changes the watched events; cheap if they are the same.
    package func watch(_ wanted: IOReadiness) {
        guard wanted != interest else { return }
        update(.read, readEvent, wanted)
        update(.write, writeEvent, wanted)
        interest = wanted
    }

    /// Stops watching.
    package func cancel() { watch([]) }

    private func update(_ flag: IOReadiness, _ pointer: UnsafeMutablePointer<event>, _ wanted: IOReadiness) {
        let isOn = interest.contains(flag)
        if wanted.contains(flag), !isOn {
            event_add(pointer, nil)
        } else if !wanted.contains(flag), isOn {
            event_del(pointer)
        }
    }
}

@available(*, unavailable) extension IOEvent: Sendable {}

// MARK: - Signals

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
                // Unretained: `deinit` removes the event before the object is freed.
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

    /// Makes a write to a closed peer an error of the call rather than the end of the process, unless the program has
    /// its own handler for the signal.
    package static func ignoreBrokenPipes() {
        var current = sigaction()
        guard sigaction(SIGPIPE, nil, &current) == 0, current.__sigaction_handler.sa_handler == nil else { return }
        signal(SIGPIPE, SIG_IGN)
    }
}

@available(*, unavailable) extension SignalWatch: Sendable {}
