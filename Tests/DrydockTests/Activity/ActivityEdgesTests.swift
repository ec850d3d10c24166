// When an indicator is shown and when it goes: each transition of the value that decides it.

import Testing

@testable import Drydock

@Suite struct ActivityEdgesTests {
    private var edges = ActivityEdges(minimum: .seconds(3))

    private mutating func look(_ isBusy: Bool, _ beginnings: UInt64, at seconds: Int) -> ActivityEdges.Step {
        edges.look(isBusy: isBusy, beginnings: beginnings, now: .seconds(seconds))
    }

    @Test mutating func itBeginsWithWhatIs() {
        #expect(look(false, 0, at: 0) == .tell(isBusy: false))
        edges = ActivityEdges(minimum: .seconds(3))
        #expect(look(true, 5, at: 0) == .tell(isBusy: true))
    }

    @Test mutating func whatWasBeforeTheFirstLookIsNotTold() {
        #expect(look(false, 7, at: 0) == .tell(isBusy: false))
        #expect(look(false, 7, at: 1) == .wait(until: nil))
    }

    @Test mutating func busyIsToldAtOnceAndIdleAfterTheMinimum() {
        _ = look(false, 0, at: 0)
        #expect(look(true, 1, at: 10) == .tell(isBusy: true))
        #expect(look(true, 1, at: 11) == .wait(until: nil))
        #expect(look(false, 1, at: 12) == .wait(until: .seconds(13)))
        #expect(look(false, 1, at: 13) == .tell(isBusy: false))
        #expect(look(false, 1, at: 14) == .wait(until: nil))
    }

    @Test mutating func idleIsToldAtOnceWhereTheMinimumIsOver() {
        _ = look(true, 1, at: 0)
        #expect(look(false, 1, at: 9) == .tell(isBusy: false))
    }

    @Test mutating func workThatBeginsWithinTheMinimumLetsBusyGoOn() {
        _ = look(true, 1, at: 0)
        #expect(look(false, 1, at: 1) == .wait(until: .seconds(3)))
        #expect(look(true, 2, at: 2) == .wait(until: nil))
        #expect(look(true, 2, at: 3) == .wait(until: nil))
        #expect(look(false, 2, at: 4) == .tell(isBusy: false))
    }

    @Test mutating func whatBeganAndEndedBetweenTwoLooksIsTold() {
        _ = look(false, 0, at: 0)
        #expect(look(false, 1, at: 5) == .tell(isBusy: true))
        #expect(look(false, 1, at: 5) == .wait(until: .seconds(8)))
        #expect(look(false, 1, at: 8) == .tell(isBusy: false))
    }

    @Test mutating func withoutAMinimumEachChangeIsTold() {
        edges = ActivityEdges(minimum: .zero)
        _ = look(false, 0, at: 0)
        #expect(look(true, 1, at: 0) == .tell(isBusy: true))
        #expect(look(false, 1, at: 0) == .tell(isBusy: false))
    }
}
