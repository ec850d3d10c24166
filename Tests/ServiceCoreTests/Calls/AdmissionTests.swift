// The gate of a service: the urgent first, then first come first served, bounded in number and time, and never one slot more or less.

import DownloadCore
import EventLoop
import LoopSupport
import Policies
import ServiceCore
import Synchronization
import TestSupport
import Testing

private let patient: UInt64 = 600_000_000_000

/// Asks for a slot; nil: it was granted.
private func acquire(
    _ admission: Admission,
    _ urgency: FetchUrgency? = nil,
    on loop: EventLoop
) async -> Task<AdmissionRefusal?, Never> {
    await begin(on: loop) { loop in
        do throws(AdmissionRefusal) {
            try await admission.acquire(urgency, on: loop)
            return nil
        } catch {
            return error
        }
    }
}

private func withLoops(_ count: Int = 1, _ body: ([EventLoop]) async throws -> Void) async throws {
    let loops = try (0..<count).map { try EventLoop.start(index: $0) }
    defer { for loop in loops { loop.stop() } }
    try await body(loops)
}

@Suite(.timeLimit(.minutes(5)))
struct AdmissionTests {
    @Test("without a limit everybody is admitted")
    func unlimited() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(queueLength: 0))
            for _ in 0..<100 { #expect(await acquire(admission, on: loops[0]).value == nil) }
            #expect(admission.running == 100)
            for _ in 0..<100 { admission.release() }
            #expect(admission.running == 0)
        }
    }

    @Test("first come, first served")
    func order() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 10, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let admitted = Mutex<[Int]>([])
            var tasks: [Task<Void, Never>] = []
            for number in 0..<5 {
                tasks.append(
                    await begin(on: loops[0]) { loop in
                        guard (try? await admission.acquire(on: loop)) != nil else { return }
                        admitted.withLock { $0.append(number) }
                        admission.release()
                    }
                )
            }
            #expect(await eventually { admission.waiting == 5 })
            admission.release()
            for task in tasks { await task.value }
            #expect(admitted.withLock { $0 } == [0, 1, 2, 3, 4])
            #expect(admission.running == 0 && admission.waiting == 0)
        }
    }

    @Test("a full queue refuses at once, and says how long it is", arguments: [0, 1, 3])
    func queueBound(_ length: Int) async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: length, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            var waiting: [Task<AdmissionRefusal?, Never>] = []
            for _ in 0..<length { waiting.append(await acquire(admission, on: loops[0])) }
            #expect(await eventually { admission.waiting == length })
            #expect(await acquire(admission, on: loops[0]).value == .queueFull(length: length))
            for task in waiting {
                admission.release()
                #expect(await task.value == nil)
            }
            admission.release()
            #expect(admission.running == 0)
        }
    }

    @Test("where the queue is full, a client takes the place of a prefetch, and a prefetch that of nobody")
    func displacing() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 2, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let check = await acquire(admission, FetchUrgency(.sizeCheck), on: loops[0])
            let prefetch = await acquire(admission, FetchUrgency(.prefetch), on: loops[0])
            #expect(await eventually { admission.waiting == 2 })
            let late = await acquire(admission, FetchUrgency(.prefetch), on: loops[0])
            #expect(await late.value == .queueFull(length: 2))
            let client = await acquire(admission, on: loops[0])
            #expect(await prefetch.value == .queueFull(length: 2))
            #expect(admission.waiting == 2)
            #expect(admission.waiting(of: .client) == 1 && admission.waiting(of: .sizeCheck) == 1)
            admission.release()
            #expect(await client.value == nil)
            admission.release()
            #expect(await check.value == nil)
            admission.release()
            #expect(admission.running == 0)
        }
    }

    @Test("a fetch that becomes urgent while it waits overtakes; one that became so before it came is urgent at once")
    func raising() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 9, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let urgency = FetchUrgency(.prefetch)
            let other = await acquire(admission, FetchUrgency(.revalidation), on: loops[0])
            let raised = await acquire(admission, urgency, on: loops[0])
            #expect(await eventually { admission.waiting == 2 })
            urgency.raise(to: .client)
            #expect(admission.waiting(of: .client) == 1)
            urgency.raise(to: .prefetch)
            #expect(urgency.priority == .client)
            let again = await acquire(admission, urgency, on: loops[0])
            #expect(await eventually { admission.waiting(of: .client) == 2 })
            for task in [raised, again, other] {
                admission.release()
                #expect(await task.value == nil)
            }
            admission.release()
            #expect(admission.running == 0 && admission.waiting == 0)
        }
    }

    @Test("nobody waits longer than said; the slot stays with who has it")
    func waitBound() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 9, wait: 30_000_000))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let start = Monotonic.now()
            #expect(await acquire(admission, on: loops[0]).value == .waitedTooLong(nanoseconds: 30_000_000))
            #expect(Monotonic.now() - start >= 30_000_000)
            #expect(admission.running == 1 && admission.waiting == 0)
            admission.release()
        }
    }

    @Test("whoever leaves gives its slot in the queue free, before and while it waits")
    func cancellation() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 1, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let first = await acquire(admission, on: loops[0])
            first.cancel()
            #expect(await first.value == .cancelled)
            #expect(admission.waiting == 0)
            let early = await begin(on: loops[0]) { loop in
                withUnsafeCurrentTask { $0?.cancel() }
                return (try? await admission.acquire(on: loop)) == nil
            }
            #expect(await early.value)
            let second = await acquire(admission, on: loops[0])
            #expect(await eventually { admission.waiting == 1 })
            admission.release()
            #expect(await second.value == nil)
            admission.release()
            #expect(admission.running == 0)
        }
    }

    @Test("wider limits admit at once, narrower ones wait until fewer run")
    func update() async throws {
        try await withLoops { loops in
            var limits = AdmissionLimits(concurrent: 1, queueLength: 9, wait: patient)
            let admission = Admission(limits)
            var tasks: [Task<AdmissionRefusal?, Never>] = []
            for _ in 0..<5 { tasks.append(await acquire(admission, on: loops[0])) }
            #expect(await eventually { admission.running == 1 && admission.waiting == 4 })
            limits.concurrent = 3
            admission.update(limits)
            #expect(admission.running == 3 && admission.waiting == 2)
            limits.concurrent = 1
            admission.update(limits)
            admission.release()
            admission.release()
            #expect(admission.running == 1 && admission.waiting == 2)
            admission.release()
            #expect(admission.running == 1 && admission.waiting == 1)
            limits.concurrent = nil
            admission.update(limits)
            #expect(admission.running == 2 && admission.waiting == 0)
            for task in tasks { #expect(await task.value == nil) }
            admission.release()
            admission.release()
            #expect(admission.running == 0)
        }
    }

    @Test(
        "random operations against a model: nobody overtakes, no slot leaks",
        arguments: 1...20 as ClosedRange<UInt64>
    )
    func model(_ seed: UInt64) async throws {
        try await withLoops { loops in
            var random = Random(state: seed)
            var limits = AdmissionLimits(concurrent: 2, queueLength: 4, wait: patient)
            let admission = Admission(limits)
            var running = 0
            var queue: [Task<AdmissionRefusal?, Never>] = []
            func admit() async {
                while !queue.isEmpty, running < limits.concurrent ?? .max {
                    running += 1
                    #expect(await queue.removeFirst().value == nil)
                }
            }
            for _ in 0..<200 {
                switch random.below(10) {
                case 0..<5:
                    let task = await acquire(admission, on: loops[0])
                    if queue.isEmpty, running < limits.concurrent ?? .max {
                        running += 1
                        #expect(await task.value == nil)
                    } else if queue.count >= limits.queueLength {
                        #expect(await task.value == .queueFull(length: limits.queueLength))
                    } else {
                        queue.append(task)
                    }
                case 5..<8 where running > 0:
                    admission.release()
                    running -= 1
                    await admit()
                case 8 where !queue.isEmpty:
                    let task = queue.remove(at: random.below(queue.count))
                    task.cancel()
                    #expect(await task.value == .cancelled)
                default:
                    limits.concurrent = [1, 2, 3, 5, nil][random.below(5)]
                    limits.queueLength = random.below(6)
                    admission.update(limits)
                    await admit()
                }
                #expect(admission.running == running)
                #expect(await eventually { admission.waiting == queue.count })
            }
            for _ in 0..<running { admission.release() }
            for task in queue {
                #expect(await task.value == nil)
                admission.release()
            }
            #expect(admission.running == 0 && admission.waiting == 0)
        }
    }

    @Test("many on two loops: never more at once than may be, and all slots come back")
    func contention() async throws {
        try await withLoops(2) { loops in
            let admission = Admission(AdmissionLimits(concurrent: 3, queueLength: 1000, wait: patient))
            let most = Mutex((now: 0, most: 0))
            var tasks: [Task<Void, Never>] = []
            for number in 0..<200 {
                tasks.append(
                    await begin(on: loops[number % 2]) { loop in
                        guard (try? await admission.acquire(on: loop)) != nil else { return }
                        most.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        await Task.yield()
                        most.withLock { $0.now -= 1 }
                        admission.release()
                    }
                )
                if number % 7 == 0 { tasks[number / 2].cancel() }
            }
            for task in tasks { await task.value }
            #expect(most.withLock { $0.most } <= 3)
            #expect(admission.running == 0 && admission.waiting == 0)
        }
    }

    @Test("a slot that comes as its fetch is cancelled is the next one's")
    func cancelledWithASlot() async throws {
        try await withLoops { loops in
            let admission = Admission(AdmissionLimits(concurrent: 1, queueLength: 5, wait: patient))
            #expect(await acquire(admission, on: loops[0]).value == nil)
            let cancelled = await acquire(admission, on: loops[0])
            let next = await acquire(admission, on: loops[0])
            #expect(await eventually { admission.waiting == 2 })
            // In one turn of the loop, so that the one that waits hears of both at once.
            await begin(on: loops[0]) { _ in
                admission.release()
                cancelled.cancel()
            }.value
            #expect(await cancelled.value == .cancelled)
            #expect(await next.value == nil)
            #expect(admission.running == 1)
            admission.release()
            #expect(admission.running == 0)
        }
    }
}

/// Reproducible numbers (splitmix64).
struct Random {
    var state: UInt64

    mutating func below(_ limit: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((value ^ (value >> 31)) % UInt64(limit))
    }
}
