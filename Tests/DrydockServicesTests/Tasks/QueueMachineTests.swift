// Whom a queue starts, and when: each transition of its machine.

import Drydock
import Policies
import Testing

@testable import DrydockServices

@Suite struct QueueMachineTests {
    private func machine(_ limit: Int?, _ ids: UInt64...) -> QueueMachine {
        var machine = QueueMachine(limit: limit)
        for id in ids { _ = machine.add(id, .client) }
        return machine
    }

    @Test func oneThatIsAddedBeginsWhereASlotIsFree() {
        var machine = QueueMachine(limit: 1)
        #expect(machine.add(1, .client) == [1])
        #expect(machine.add(2, .client) == [])
        #expect((machine.count, machine.running, machine.queued) == (2, 1, 1))
        #expect(machine.isRunning(1) && !machine.isRunning(2))
    }

    @Test func withoutALimitAllBegin() {
        var machine = QueueMachine(limit: nil)
        for id in UInt64(1)...50 { #expect(machine.add(id, .prefetch) == [id]) }
        #expect(machine.running == 50)
    }

    @Test func whoLeavesASlotLeavesItToTheNext() {
        var machine = machine(1, 1, 2, 3)
        #expect(machine.leave(1) == [2])
        #expect(machine.leave(2) == [3])
        #expect(machine.leave(3) == [])
        #expect((machine.count, machine.running, machine.queued) == (0, 0, 0))
    }

    @Test func whoLeavesWithoutASlotLeavesNone() {
        var machine = machine(1, 1, 2, 3)
        #expect(machine.leave(2) == [])
        #expect(machine.running == 1)
        #expect(machine.leave(1) == [3])
    }

    @Test func whoWaitsForARetryHasNoSlotAndComesBackToTheEnd() {
        var machine = machine(1, 1, 2, 3)
        #expect(machine.wait(1) == [2])
        #expect((machine.count, machine.running, machine.queued) == (3, 1, 1))
        #expect(machine.due(1) == [])
        #expect(machine.leave(2) == [3])
        #expect(machine.leave(3) == [1])
    }

    @Test func whoIsDueBeginsAtOnceWhereASlotIsFree() {
        var machine = machine(1, 1)
        #expect(machine.wait(1) == [])
        #expect(machine.running == 0)
        #expect(machine.due(1) == [1])
    }

    @Test func whoLeavesWhileItWaitsForItsRetryNeverComesBack() {
        var machine = machine(1, 1)
        _ = machine.wait(1)
        #expect(machine.leave(1) == [])
        #expect(machine.due(1) == [])
        #expect((machine.count, machine.running) == (0, 0))
    }

    @Test func whatIsToldOfOthersChangesNothing() {
        var machine = machine(1, 1, 2)
        #expect(machine.wait(2) == [])
        #expect(machine.due(1) == [] && machine.due(2) == [] && machine.due(9) == [])
        #expect(machine.wait(9) == [] && machine.leave(9) == [])
        #expect((machine.count, machine.running, machine.queued) == (2, 1, 1))
    }

    @Test func theLimitMayChange() {
        var machine = machine(0, 1, 2, 3, 4)
        #expect(machine.running == 0)
        #expect(machine.setLimit(2) == [1, 2])
        #expect(machine.setLimit(1) == [])
        #expect(machine.leave(1) == [])
        #expect(machine.leave(2) == [3])
        #expect(machine.setLimit(nil) == [4])
        #expect(machine.maximum == nil)
    }

    @Test func theUrgentComeFirstAndNobodyStarves() {
        var machine = machine(0)
        for id in UInt64(1)...12 { _ = machine.add(id, id > 10 ? .prefetch : .client) }
        var order: [UInt64] = []
        var starts = machine.setLimit(1)
        while let id = starts.first {
            order.append(id)
            starts = machine.leave(id)
        }
        #expect(order == [1, 2, 3, 4, 11, 5, 6, 7, 8, 12, 9, 10])
    }
}
