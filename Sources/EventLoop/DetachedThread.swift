// A thread for one piece of work that blocks and must not run on a loop or in the pool of tasks.

import Glibc

package enum DetachedThread {
    private final class Work: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs `work` on a thread of its own and waits for it.
    package static func wait(_ work: @escaping @Sendable () -> Void) async {
        await withUnsafeContinuation { (done: UnsafeContinuation<Void, Never>) in
            run {
                work()
                done.resume()
            }
        }
    }

    /// Runs `work` on a detached thread; on the caller's where no thread can be made.
    package static func run(_ work: @escaping @Sendable () -> Void) {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Work(work)).toOpaque()
        let result = pthread_create(
            &handle,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context
        )
        if result == 0 {
            pthread_detach(handle)
        } else {
            Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
        }
    }
}
