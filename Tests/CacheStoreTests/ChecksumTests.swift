// Checksums and digests against published values, and the budget of windows.

import EventLoop
import LoopSupport
import Synchronization
import Testing

@testable import CacheStore

@Suite struct ChecksumTests {
    @Test(
        arguments: [
            ("", 0), ("123456789", 0xE306_9283), ("The quick brown fox jumps over the lazy dog", 0x2262_0404),
        ] as [(String, UInt32)]
    )
    func `CRC32C has its published values, in pieces, too`(text: String, expected: UInt32) {
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes(Checksum.of) == expected)
        for split in 0...bytes.count {
            var sum = Checksum()
            Array(bytes[..<split]).withUnsafeBytes { sum.update($0) }
            Array(bytes[split...]).withUnsafeBytes { sum.update($0) }
            #expect(sum.value == expected)
        }
    }

    @Test func `blocks end every 256 KiB, however the bytes arrive`() {
        let bytes = pattern(600_000)
        var whole = BlockSums()
        bytes.withUnsafeBytes { whole.update($0) }
        #expect(whole.sums.count == 3)
        #expect(whole.sums[1] == Array(bytes[262_144..<524_288]).withUnsafeBytes(Checksum.of))
        var pieces = BlockSums()
        for start in stride(from: 0, to: bytes.count, by: 7001) {
            Array(bytes[start..<min(bytes.count, start + 7001)]).withUnsafeBytes { pieces.update($0) }
        }
        #expect(pieces.sums == whole.sums)
    }

    /// The vectors of the reference implementation of SipHash-2-4 with 128 bits, for the key 00 01 ... 0f.
    @Test(
        arguments: [
            (0, 0xe6a8_25ba_047f_81a3, 0x9302_55c7_1472_f66d),
            (1, 0x44af_996b_d8c1_87da, 0x45fc_229b_1159_7634),
        ] as [(Int, UInt64, UInt64)]
    )
    func `SipHash has its published values`(length: Int, high: UInt64, low: UInt64) {
        let key = DigestKey(low: 0x0706_0504_0302_0100, high: 0x0f0e_0d0c_0b0a_0908)
        let digest = Digest((0..<length).map { UInt8($0) }, key: key)
        #expect(digest.high == high)
        #expect(digest.low == low)
        #expect(Digest(hex: digest.description) == digest)
    }
}

@Suite(.timeLimit(.minutes(5))) struct FillBudgetTests {
    @Test func `the fuller the budget, the smaller the windows, and never below the least`() {
        let budget = FillBudget(limit: 8 << 20)
        #expect(budget.charge(0, window: 1 << 20) == 1 << 20)
        #expect(budget.charge(6 << 20, window: 1 << 20) == 512 << 10)
        #expect(budget.charge(4 << 20, window: 1 << 20) == FillBudget.leastWindow)
        #expect(budget.charge(-10 << 20, window: 1 << 20) == 1 << 20)
        #expect(budget.used == 0)
    }

    @Test func `past the limit fills queue, first come, first served, and a cancelled one leaves the queue`()
        async throws
    {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let budget = FillBudget(limit: 10 * FillBudget.seatSize)
        _ = budget.charge(budget.limit, window: 1)
        let order = Order()
        await onLoop(loop) { loop in
            var tasks: [Task<Void, Never>] = []
            for number in 0..<4 {
                tasks.append(
                    Task.immediate(executorPreference: loop.taskExecutor) {
                        let seat = try? await budget.waitForRoom(on: loop)
                        order.note(seat == nil ? -number : number, seat)
                    }
                )
                #expect(await settled({ budget.queued == number + 1 }, on: loop))
            }
            tasks[1].cancel()
            await tasks[1].value
            #expect(order.numbers == [-1])
            // Room for one, and only one.
            _ = budget.charge(-FillBudget.seatSize, window: 1)
            await tasks[0].value
            #expect(order.numbers == [-1, 0])
            #expect(budget.queued == 2)
            // A seat that is given back goes to the next.
            order.leave()
            await tasks[2].value
            #expect(order.numbers == [-1, 0, 2])
            _ = budget.charge(-9 * FillBudget.seatSize, window: 1)
            await tasks[3].value
            #expect(order.numbers == [-1, 0, 2, 3])
            order.leave()
            #expect(budget.used == 0)
        }
    }
}

/// Sendable: everything is under the mutex.
private final class Order: Sendable {
    private let state = Mutex<(numbers: [Int], seats: [FillSeat])>(([], []))

    var numbers: [Int] { state.withLock { $0.numbers } }

    func note(_ number: Int, _ seat: FillSeat?) {
        state.withLock { state in
            state.numbers.append(number)
            if let seat { state.seats.append(seat) }
        }
    }

    func leave() {
        let seats = state.withLock { state in
            defer { state.seats = [] }
            return state.seats
        }
        _ = consume seats
    }
}
