// The moments of a shared tier: what its store had been told when something began, and never more.

import Testing

@testable import CacheStore

struct TierMomentTests {
    @Test("what began before anything was told knows nothing; what began later knows the last that was told")
    func last() {
        let (invalidations, moments) = (Invalidations(), TierMoments())
        let early = invalidations.nextNumber()
        let first = moments.note(5, invalidations)
        let between = invalidations.nextNumber()
        let second = moments.note(9, invalidations)
        #expect(moments.last(before: early) == 0)
        #expect(moments.last(before: first) == 5)
        #expect(moments.last(before: between) == 5)
        #expect(moments.last(before: second) == 9)
        #expect(moments.last(before: .max) == 9)
        #expect(early < first && first < between && between < second)
    }

    @Test("an answer that others have overtaken takes nothing back")
    func overtaken() {
        let (invalidations, moments) = (Invalidations(), TierMoments())
        _ = moments.note(9, invalidations)
        let late = moments.note(5, invalidations)
        #expect(moments.last(before: late) == 9)
    }

    @Test("of very many moments some are forgotten: then an earlier one is named, never a later one")
    func bounded() {
        let (invalidations, moments) = (Invalidations(), TierMoments())
        var noted: [(number: UInt64, moment: UInt64)] = []
        for moment in 1...20_000 as ClosedRange<UInt64> { noted.append((moments.note(moment, invalidations), moment)) }
        for (number, moment) in noted { #expect(moments.last(before: number) <= moment) }
        #expect(moments.last(before: .max) == 20_000)
        let recent = noted[19_900]
        #expect(recent.moment - moments.last(before: recent.number) < 1024)
    }
}
