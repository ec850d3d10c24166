// Which members of a group begin, and when it has ended: each transition of its machine.

import Drydock
import Testing

@testable import DrydockServices

@Suite struct GroupMachineTests {
    @Test(arguments: [true, false], [true, false])
    func anEmptyGroupHasEndedAtOnce(isInOrder: Bool, stops: Bool) {
        var machine = GroupMachine(inOrder: isInOrder, stopsOnFailure: stops)
        #expect(machine.begin(0) == [.finish])
        #expect(machine.state == .done && machine.isOver)
        #expect(machine.add() == nil && machine.cancel() == [])
    }

    @Test func membersOfASerialGroupBeginOneAfterTheOther() {
        var machine = GroupMachine(inOrder: true, stopsOnFailure: true)
        #expect(machine.begin(3) == [.submit(0)])
        #expect(machine.ended(0, hasFailed: false) == [.submit(1)])
        #expect(machine.ended(1, hasFailed: false) == [.submit(2)])
        #expect(machine.state == .running)
        #expect(machine.ended(2, hasFailed: false) == [.finish])
        #expect(machine.state == .done && machine.firstFailure == nil)
    }

    @Test func theFirstErrorEndsASerialGroup() {
        var machine = GroupMachine(inOrder: true, stopsOnFailure: true)
        _ = machine.begin(3)
        #expect(machine.ended(0, hasFailed: true) == [.finish])
        #expect(machine.state == .failed && machine.firstFailure == 0)
    }

    @Test func aSerialGroupMayGoOn() {
        var machine = GroupMachine(inOrder: true, stopsOnFailure: false)
        _ = machine.begin(2)
        #expect(machine.ended(0, hasFailed: true) == [.submit(1)])
        #expect(machine.state == .failed && !machine.isOver)
        #expect(machine.ended(1, hasFailed: true) == [.finish])
        #expect(machine.state == .failed && machine.firstFailure == 0)
    }

    @Test func membersOfAConcurrentGroupBeginAtOnce() {
        var machine = GroupMachine(inOrder: false, stopsOnFailure: true)
        #expect(machine.begin(3) == [.submit(0), .submit(1), .submit(2)])
        #expect(machine.ended(1, hasFailed: false) == [])
        #expect(machine.ended(0, hasFailed: false) == [])
        #expect(machine.ended(2, hasFailed: false) == [.finish])
        #expect(machine.state == .done)
    }

    @Test func theFirstErrorCancelsTheRestOfAConcurrentGroup() {
        var machine = GroupMachine(inOrder: false, stopsOnFailure: true)
        _ = machine.begin(3)
        _ = machine.ended(0, hasFailed: false)
        #expect(machine.ended(2, hasFailed: true) == [.cancel(1)])
        #expect(machine.state == .failed && machine.isEnding && !machine.isOver)
        #expect(machine.add() == nil && machine.cancel() == [])
        // What it says then is no other first error.
        #expect(machine.ended(1, hasFailed: true) == [.finish])
        #expect(machine.state == .failed && machine.firstFailure == 2)
    }

    @Test func aConcurrentGroupMayGoOn() {
        var machine = GroupMachine(inOrder: false, stopsOnFailure: false)
        _ = machine.begin(2)
        #expect(machine.ended(1, hasFailed: true) == [])
        #expect(machine.ended(0, hasFailed: false) == [.finish])
        #expect(machine.state == .failed && machine.firstFailure == 1)
    }

    @Test func membersMayBeAddedWhileItRuns() {
        var serial = GroupMachine(inOrder: true, stopsOnFailure: true)
        _ = serial.begin(1)
        #expect(serial.add() == [] && serial.count == 2)
        #expect(serial.ended(0, hasFailed: false) == [.submit(1)])
        #expect(serial.ended(1, hasFailed: false) == [.finish])
        #expect(serial.add() == nil && serial.count == 2)
        var concurrent = GroupMachine(inOrder: false, stopsOnFailure: true)
        _ = concurrent.begin(1)
        #expect(concurrent.add() == [.submit(1)])
        #expect(concurrent.ended(0, hasFailed: false) == [])
        #expect(concurrent.ended(1, hasFailed: false) == [.finish])
    }

    @Test(arguments: [true, false]) func cancellingEndsIt(stops: Bool) {
        var serial = GroupMachine(inOrder: true, stopsOnFailure: stops)
        _ = serial.begin(3)
        #expect(serial.cancel() == [.cancel(0)])
        #expect(serial.state == .cancelled && serial.cancel() == [])
        #expect(serial.ended(0, hasFailed: true) == [.finish])
        #expect(serial.state == .cancelled && serial.isOver)
        var concurrent = GroupMachine(inOrder: false, stopsOnFailure: stops)
        _ = concurrent.begin(3)
        _ = concurrent.ended(1, hasFailed: false)
        #expect(concurrent.cancel() == [.cancel(0), .cancel(2)])
        #expect(concurrent.ended(0, hasFailed: true) == [])
        #expect(concurrent.ended(2, hasFailed: false) == [.finish])
        #expect(concurrent.state == .cancelled)
    }

    @Test func whatIsToldTwiceChangesNothing() {
        var machine = GroupMachine(inOrder: false, stopsOnFailure: false)
        _ = machine.begin(2)
        _ = machine.ended(0, hasFailed: false)
        #expect(machine.ended(0, hasFailed: true) == [])
        #expect(machine.state == .running && machine.firstFailure == nil)
    }
}
