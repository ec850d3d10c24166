// The pool: what its work holds is let go of without its lock, and what it does can be told from standing still.

import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct IOPoolTests {
    /// Submits when it goes, as the file of a body does that was not stored.
    private final class Farewell: Sendable {
        private let pool: IOPool
        private let count: Atomic<Int>.Box

        init(_ pool: IOPool, _ count: Atomic<Int>.Box) {
            self.pool = pool
            self.count = count
        }

        deinit { pool.submit { [count] in count.value.wrappingAdd(1, ordering: .relaxed) } }
    }

    @Test func `work may submit more when what it holds is let go of`() async throws {
        let pool = try IOPool(threads: 4)
        let count = Atomic<Int>.Box()
        // As many as make the pool move its list again and again.
        for _ in 0..<5000 {
            let farewell = Farewell(pool, count)
            pool.submit { withExtendedLifetime(farewell) {} }
        }
        #expect(await eventually { count.value.load(ordering: .relaxed) == 5000 })
        pool.stop()
        #expect(pool.finished == 10_000)
    }

    @Test func `nobody waits for a pool that has stopped`() async throws {
        let pool = try IOPool(threads: 1)
        pool.stop()
        #expect(pool.submit {} == false)
        await #expect(throws: CancellationError.self) { try await pool.run { 1 } }
    }

    @Test func `a pool that waits for a lock is not at work, and one that computes is`() async throws {
        let pool = try IOPool(threads: 2)
        let gate = Gate()
        for _ in 0..<2 { pool.submit { gate.pass() } }
        #expect(await eventually { gate.waiting == 2 })
        #expect(await eventually { !pool.isAtWork })
        #expect(pool.finished == 0)
        gate.open()
        let isDone = Atomic<Int>.Box()
        pool.submit { while isDone.value.load(ordering: .relaxed) == 0 {} }
        #expect(await eventually { pool.isAtWork })
        isDone.value.store(1, ordering: .relaxed)
        pool.stop()
        #expect(pool.finished == 3)
    }

    @Test func `the kernel says what a thread does`() {
        #expect(ThreadState.of(Int32(getpid())) != nil)
        #expect(ThreadState.of(0) == nil)
    }
}

extension Atomic where Value == Int {
    /// A number that several closures share.
    fileprivate final class Box: Sendable {
        let value = Atomic<Int>(0)
    }
}

/// Holds threads until it is opened.
///
/// Sendable: atomics; the wait is a semaphore's.
private final class Gate: Sendable {
    // Made before any thread has it, destroyed with the object.
    nonisolated(unsafe) private let semaphore: UnsafeMutablePointer<sem_t>
    private let passing = Atomic<Int>(0)

    init() {
        semaphore = .allocate(capacity: 1)
        semaphore.initialize(to: sem_t())
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    var waiting: Int { passing.load(ordering: .acquiring) }

    func pass() {
        passing.wrappingAdd(1, ordering: .releasing)
        while sem_wait(semaphore) != 0, errno == EINTR {}
        sem_post(semaphore)
    }

    func open() { sem_post(semaphore) }
}
