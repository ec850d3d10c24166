// Threads for blocking work, which must not run on a loop: a few for file I/O and name resolution, and one for a single
// piece of work.

import CLinux
import Glibc
import Synchronization

/// Runs closures on a fixed number of threads, in order of submission.
///
/// Sendable: all state is under a pthread mutex, whose condition the threads wait on.
package final class IOPool: Sendable {
    private final class State: @unchecked Sendable {  // protected by `mutex`, which `condition` releases while it waits
        var mutex = pthread_mutex_t()
        var condition = pthread_cond_t()
        /// The queued work; nil at positions from which a thread has taken it.
        var work: [(@Sendable () -> Void)?] = []
        var first = 0
        var isStopping = false
        var threads: [pthread_t] = []
        /// The kernel's numbers of the running threads.
        var numbers: [Int32] = []
        let finished = Atomic<Int>(0)
        let name: String

        init(name: String) {
            self.name = name
            pthread_mutex_init(&mutex, nil)
            pthread_cond_init(&condition, nil)
        }

        deinit {
            pthread_cond_destroy(&condition)
            pthread_mutex_destroy(&mutex)
        }

        func enter() {
            pthread_mutex_lock(&mutex)
            numbers.append(c_linux_thread_number())
            pthread_mutex_unlock(&mutex)
        }

        /// Takes the next work out, so that the caller has the only reference to it: the objects that the work holds
        /// are released without the mutex, since that may submit more.
        func next() -> (@Sendable () -> Void)? {
            pthread_mutex_lock(&mutex)
            defer { pthread_mutex_unlock(&mutex) }
            while first == work.count {
                if isStopping { return nil }
                pthread_cond_wait(&condition, &mutex)
            }
            var item: (@Sendable () -> Void)?
            swap(&item, &work[first])
            first += 1
            if first == work.count || first > 1024 {
                work.removeFirst(first)
                first = 0
            }
            return item
        }
    }

    private let state: State

    /// The name of the threads in ps.
    package var name: String { state.name }

    /// The number of pieces of work that have been done; any thread.
    package var finished: Int { state.finished.load(ordering: .relaxed) }

    /// Whether a thread computes, or waits for a disk, rather than for another thread or for work; any thread. It reads
    /// files in /proc.
    package var isAtWork: Bool {
        pthread_mutex_lock(&state.mutex)
        let numbers = state.numbers
        pthread_mutex_unlock(&state.mutex)
        return numbers.contains { [.running, .disk].contains(ThreadState.of($0)) }
    }

    /// - Parameters:
    ///   - threads: the number of threads; at least one.
    ///   - name: the name of the threads in ps.
    /// - Throws: `SystemError` if a thread cannot be made.
    package init(threads: Int = 4, name: String = "io") throws(SystemError) {
        state = State(name: name)
        for _ in 0..<max(1, threads) {
            var handle = pthread_t()
            let context = Unmanaged.passRetained(state).toOpaque()
            let result = pthread_create(
                &handle,
                nil,
                { context in
                    guard let context else { return nil }
                    let state = Unmanaged<State>.fromOpaque(context).takeRetainedValue()
                    c_linux_name_thread(state.name)
                    state.enter()
                    while let work = state.next() {
                        work()
                        state.finished.wrappingAdd(1, ordering: .relaxed)
                    }
                    return nil
                },
                context
            )
            guard result == 0 else {
                Unmanaged<State>.fromOpaque(context).release()
                throw SystemError("pthread_create for \(name)", code: result)
            }
            state.threads.append(handle)
        }
    }

    /// Queues work; any thread.
    /// - Returns: false after ``stop()``: the work is dropped.
    @discardableResult
    package func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
        pthread_mutex_lock(&state.mutex)
        let isTaken = !state.isStopping
        if isTaken { state.work.append(work) }
        pthread_mutex_unlock(&state.mutex)
        pthread_cond_signal(&state.condition)
        return isTaken
    }

    /// Runs `work` on the pool and suspends the caller until it is done.
    /// - Throws: the error of `work`; `CancellationError` after ``stop()``.
    package func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let outcome = Outcome<Value>()
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let isTaken = submit {
                outcome.set(Result { try work() })
                continuation.resume()
            }
            if !isTaken { continuation.resume() }
        }
        return try outcome.take()
    }

    /// Finishes the submitted jobs, then ends the threads and waits for them; called on one of them, it waits for the
    /// others.
    package func stop() {
        pthread_mutex_lock(&state.mutex)
        state.isStopping = true
        let threads = state.threads
        state.threads = []
        pthread_mutex_unlock(&state.mutex)
        pthread_cond_broadcast(&state.condition)
        for thread in threads {
            // The owner of the pool may be released on a thread of the pool, which cannot wait for itself.
            if pthread_equal(thread, pthread_self()) != 0 { pthread_detach(thread) } else { pthread_join(thread, nil) }
        }
    }
}

/// Carries a result from a thread to the task that waits for it.
///
/// Sendable: the result is under a mutex, so that race detectors see the hand-over, too: they do not see it in
/// continuations.
private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    func set(_ result: Result<Value, any Error>) { self.result.withLock { $0 = result } }

    /// Takes the result.
    /// - Throws: the error of the work; `CancellationError` if it was not done.
    func take() throws -> Value {
        guard let result = result.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }
}

// MARK: - A thread of its own

/// A thread for one piece of blocking work that must not run on a loop or in the pool of tasks.
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

    /// Runs `work` on a thread of its own and waits for its result.
    /// - Throws: the error of `work`.
    package static func result<Value: Sendable>(of work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let outcome = Outcome<Value>()
        await wait { outcome.set(Result { try work() }) }
        return try outcome.take()
    }

    /// Runs `work` on a detached thread; on the caller's if no thread can be made.
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

// MARK: - What a thread does

/// The state of a thread, from /proc/self/task/NUMBER/stat.
package enum ThreadState: Sendable, Equatable {
    /// The thread computes, or waits for a processor.
    case running
    /// The thread waits for a disk and cannot be interrupted.
    case disk
    /// The thread waits for anything else: for a lock, a socket, a pipe, a time.
    case waiting

    /// The state of the thread; nil if there is no such thread, or /proc cannot be read. No disk access.
    package static func of(_ number: Int32) -> ThreadState? {
        let file = open("/proc/self/task/\(number)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        // The format is NUMBER (NAME) STATE: the name may have parentheses, the state has none.
        guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else { return nil }
        switch bytes[end + 2] {
        case UInt8(ascii: "R"): return .running
        case UInt8(ascii: "D"): return .disk
        default: return .waiting
        }
    }
}
