// Generations and rules: what a token still holds for, what a rule invalidates, and that a
// restart forgets none of them.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore

private func key(_ path: String, service: String = "s") -> CacheKey {
    CacheKey(service: service, url: "http://origin.test\(path)")
}

private func rule(_ name: String, _ path: String = "/a") -> InvalidationRule { .group(name, of: key(path)) }

extension Invalidations {
    /// The verdict about a response that was fetched at a moment.
    fileprivate func verdict(_ rules: [InvalidationRule], _ token: InvalidationToken) -> RuleVerdict {
        var head = storedHead()
        head.number = token.number
        return verdict(head, token.key, rules)
    }
}

@Suite struct GenerationTests {
    @Test func `a token holds until its key or one of its rules is invalidated`() {
        let invalidations = Invalidations()
        let token = invalidations.token(for: key("/a")).concerned(by: [rule("g")])
        invalidations.invalidate([rule("h")])
        #expect(invalidations.isUnchanged(token))
        invalidations.invalidate([rule("g")])
        #expect(!invalidations.isUnchanged(token))
        #expect(invalidations.isUnchanged(invalidations.token(for: key("/a")).concerned(by: [rule("g")])))
        let other = invalidations.token(for: key("/a"))
        invalidations.invalidate(key("/a"))
        #expect(!invalidations.isUnchanged(other))
        var hasRun = false
        #expect(!invalidations.ifUnchanged(token) { hasRun = true } && !hasRun)
    }

    @Test func `a rule invalidates what was fetched before it, of its origin and service`() {
        let invalidations = Invalidations()
        let before = invalidations.token(for: key("/a"))
        invalidations.invalidate([rule("g")])
        let after = invalidations.token(for: key("/a"))
        #expect(invalidations.verdict([rule("g")], before) == .gone)
        #expect(invalidations.verdict([rule("g")], after) == .valid)
        for other in [
            rule("G"), .group("g", of: key("/a", service: "t")),
            .group("g", of: CacheKey(service: "s", url: "https://origin.test/a")),
        ] {
            #expect(invalidations.verdict([other], before) == .valid)
        }
        #expect(invalidations.verdict([], before) == .valid)
        #expect(invalidations.verdict([rule("x"), rule("g", "/other")], before) == .gone)
        invalidations.invalidate([rule("g")])
        #expect(invalidations.verdict([rule("g")], after) == .gone)
    }

    @Test func `numbers grow, whoever draws them`() {
        let invalidations = Invalidations()
        let numbers = (0..<100).map {
            $0 % 2 == 0 ? invalidations.nextNumber() : invalidations.token(for: key("/a")).number
        }
        #expect(numbers == numbers.sorted() && Set(numbers).count == 100)
        invalidations.advance(past: numbers[99] + 1_000_000_000_000_000_000)
        #expect(invalidations.nextNumber() == numbers[99] + 1_000_000_000_000_000_001)
    }

    // A bound that made every group of every origin and service one rule flushed them all for one busy origin.
    @Test
    func `past the bound the groups of an origin become one rule for its members, and nothing comes back to life`() {
        let invalidations = Invalidations()
        let early = invalidations.token(for: key("/a"))
        let elsewhere = invalidations.token(for: key("/a", service: "t"))
        var tokens: [InvalidationToken] = []
        for number in 0...RuleSet.maximumNames {
            tokens.append(invalidations.token(for: key("/a")))
            invalidations.invalidate([rule("\(number)")])
        }
        #expect(invalidations.ruleCount < 10)
        for number in stride(from: 0, through: RuleSet.maximumNames, by: 97) {
            #expect(invalidations.verdict([rule("\(number)")], tokens[number]) == .gone)
        }
        // One that no rule names, but that could have been meant by those that are gone.
        #expect(invalidations.verdict([rule("never")], early) == .gone)
        #expect(invalidations.verdict([rule("never")], invalidations.token(for: key("/a"))) == .valid)
        #expect(invalidations.verdict([], early) == .valid, "it is of no group")
        #expect(invalidations.verdict([.keyed(key("/a"))], early) == .valid, "it is of no group, either")
        let other = InvalidationRule.group("never", of: key("/a", service: "t"))
        #expect(invalidations.verdict([other], elsewhere) == .valid, "it is of another service")
        let late = invalidations.token(for: key("/a"))
        let long = String(repeating: "x", count: RuleSet.maximumBytes / 4)
        for number in 0..<8 { invalidations.invalidate([rule("\(number)\(long)")]) }
        #expect(invalidations.ruleCount < 10)
        #expect(invalidations.verdict([rule("0\(long)")], late) == .gone)
    }

    @Test func `rules outlive the process, and where one is torn, everything from before is stale`() throws {
        let folder = Folder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        func open() -> Invalidations { Invalidations(path: "\(folder.path)/rules", pins: Pins(), pool: pool) }
        let first = open()
        let early = first.token(for: key("/a"))
        first.invalidate([rule("g"), rule("h")])
        let middle = first.token(for: key("/a"))
        first.invalidate([rule("g")])
        first.close()
        let second = open()
        #expect(second.ruleCount == 2 && second.loss == nil)
        #expect(second.verdict([rule("g")], middle) == .gone && second.verdict([rule("h")], middle) == .valid)
        #expect(second.verdict([rule("h")], early) == .gone)
        // What was made by an earlier process is older than every fill of this one.
        #expect(second.isUnchanged(second.token(for: key("/a")).concerned(by: [rule("g")])))
        second.close()
        let size = try #require(folder.size(of: "rules"))
        truncate("\(folder.path)/rules", off_t(size - 1))
        let third = open()
        // One, and that everything is stale.
        #expect(third.ruleCount == 2 && third.loss == "\(folder.path)/rules is damaged")
        #expect(third.verdict([], middle) != .valid && third.verdict([], third.token(for: key("/a"))) == .valid)
        let late = third.token(for: key("/a"))
        third.invalidate([rule("i")])
        third.close()
        let fourth = open()
        #expect(fourth.ruleCount == 3 && fourth.loss == nil && fourth.verdict([rule("i")], late) == .gone)
        fourth.close()
    }

    @Test func `what is kept is in the file when that returns, and the file stays short however often rules are made`()
        async throws
    {
        let folder = Folder()
        try await withPool { pool, _ in
            let path = "\(folder.path)/rules"
            let invalidations = Invalidations(path: path, pins: Pins(), pool: pool)
            var last = invalidations.token(for: key("/a"))
            for round in 0..<(3 * RuleLog.least) {
                last = invalidations.token(for: key("/a"))
                let number = invalidations.invalidate([rule("g")])
                try await invalidations.keep([rule("g")], number: number)
                guard round % 1000 == 0 else { continue }
                // As a killed process leaves it.
                #expect(RuleRecord.decode(contents(path)).records.last?.mark.number == number)
                #expect(try #require(folder.size(of: "rules")) <= RuleLog.least * 64)
            }
            // Somebody removes the file: what was in it is written again with what comes next.
            #expect(unlink(path) == 0)
            let number = invalidations.invalidate([rule("h")])
            try await invalidations.keep([rule("h")], number: number)
            #expect(RuleRecord.decode(contents(path)).records.count == 2)
            invalidations.close()
            let size = try #require(folder.size(of: "rules"))
            #expect(size < 200)
            let again = Invalidations(path: path, pins: Pins(), pool: pool)
            #expect(again.ruleCount == 2)
            #expect(again.verdict([rule("g")], last) == .gone)
            again.close()
        }
    }

    @Test func `what cannot be written says so, and what comes next writes it, too`() async throws {
        let folder = Folder()
        try await withPool { pool, _ in
            let path = "\(folder.path)/absent/rules"
            let invalidations = Invalidations(path: path, pins: Pins(), pool: pool)
            let first = invalidations.invalidate([rule("g")])
            await #expect(throws: SystemError.self) { try await invalidations.keep([rule("g")], number: first) }
            invalidations.repeatFailed()
            #expect(mkdir("\(folder.path)/absent", 0o700) == 0)
            // By itself, too.
            invalidations.repeatFailed()
            #expect(RuleRecord.decode(contents(path)).records.map(\.mark.number) == [first])
            #expect(unlink(path) == 0)
            invalidations.repeatFailed()
            #expect(contents(path).isEmpty, "nothing has failed since")
            let second = invalidations.invalidate([rule("h")])
            try await invalidations.keep([rule("h")], number: second)
            #expect(RuleRecord.decode(contents(path)).records.map(\.mark.number).sorted() == [first, second])
            invalidations.close()
        }
    }
}

@Suite struct ReaderSlotTests {
    @Test func `a cancellation that comes late does not stop the reader that has the place by then`() {
        var state = GrowingBodyState(window: 1024, spills: false, keepsStart: true)
        let first = state.join()
        let serial = state.readers[first].serial
        _ = state.leave(first)
        let second = state.join()
        #expect(second == first && state.readers[second].serial != serial)
        #expect(state.interrupt(first, serial: serial) == nil)
        #expect(!state.isReady(state.readers[second]), "it waits for bytes")
        _ = state.interrupt(second, serial: state.readers[second].serial)
        #expect(state.isReady(state.readers[second]))
    }
}
