// Generations and rules: what a token still holds for, what a rule invalidates, and that a restart forgets none of them.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import Testing

@testable import CacheStore

private func key(_ path: String, service: String = "s") -> CacheKey {
    CacheKey(service: service, url: "http://origin.test\(path)")
}

private func rule(_ name: String, _ path: String = "/a") -> InvalidationRule { .group(name, of: key(path)) }

extension Generations {
    /// The verdict about a response that was fetched at a moment.
    fileprivate func verdict(_ rules: [InvalidationRule], _ token: GenerationToken) -> RuleVerdict {
        var head = storedHead()
        head.number = token.number
        return verdict(head, token.key, rules)
    }
}

@Suite struct GenerationTests {
    @Test func `a token holds until its key or one of its rules is invalidated`() {
        let generations = Generations()
        let token = generations.note(key("/a")).concerned(by: [rule("g")])
        generations.invalidate([rule("h")])
        #expect(generations.isUnchanged(token))
        generations.invalidate([rule("g")])
        #expect(!generations.isUnchanged(token))
        #expect(generations.isUnchanged(generations.note(key("/a")).concerned(by: [rule("g")])))
        let other = generations.note(key("/a"))
        generations.bump(key("/a"))
        #expect(!generations.isUnchanged(other))
        var hasRun = false
        #expect(!generations.ifUnchanged(token) { hasRun = true } && !hasRun)
    }

    @Test func `a rule invalidates what was fetched before it, of its origin and service`() {
        let generations = Generations()
        let before = generations.note(key("/a"))
        generations.invalidate([rule("g")])
        let after = generations.note(key("/a"))
        #expect(generations.verdict([rule("g")], before) == .gone)
        #expect(generations.verdict([rule("g")], after) == .valid)
        for other in [
            rule("G"), .group("g", of: key("/a", service: "t")),
            .group("g", of: CacheKey(service: "s", url: "https://origin.test/a")),
        ] {
            #expect(generations.verdict([other], before) == .valid)
        }
        #expect(generations.verdict([], before) == .valid)
        #expect(generations.verdict([rule("x"), rule("g", "/other")], before) == .gone)
        generations.invalidate([rule("g")])
        #expect(generations.verdict([rule("g")], after) == .gone)
    }

    @Test func `numbers grow, whoever draws them`() {
        let generations = Generations()
        let numbers = (0..<100).map { $0 % 2 == 0 ? generations.nextNumber() : generations.note(key("/a")).number }
        #expect(numbers == numbers.sorted() && Set(numbers).count == 100)
        generations.advance(past: numbers[99] + 1_000_000_000_000_000_000)
        #expect(generations.nextNumber() == numbers[99] + 1_000_000_000_000_000_001)
    }

    // A bound that made every group of every origin and service one rule flushed them all for one busy origin.
    @Test
    func `past the bound the groups of an origin become one rule for its members, and nothing comes back to life`() {
        let generations = Generations()
        let early = generations.note(key("/a"))
        let elsewhere = generations.note(key("/a", service: "t"))
        var tokens: [GenerationToken] = []
        for number in 0...RuleSet.mostNames {
            tokens.append(generations.note(key("/a")))
            generations.invalidate([rule("\(number)")])
        }
        #expect(generations.ruleCount < 10)
        for number in stride(from: 0, through: RuleSet.mostNames, by: 97) {
            #expect(generations.verdict([rule("\(number)")], tokens[number]) == .gone)
        }
        // One that no rule names, but that could have been meant by those that are gone.
        #expect(generations.verdict([rule("never")], early) == .gone)
        #expect(generations.verdict([rule("never")], generations.note(key("/a"))) == .valid)
        #expect(generations.verdict([], early) == .valid, "it is of no group")
        #expect(generations.verdict([.keyed(key("/a"))], early) == .valid, "it is of no group, either")
        let other = InvalidationRule.group("never", of: key("/a", service: "t"))
        #expect(generations.verdict([other], elsewhere) == .valid, "it is of another service")
        let late = generations.note(key("/a"))
        let long = String(repeating: "x", count: RuleSet.mostBytes / 4)
        for number in 0..<8 { generations.invalidate([rule("\(number)\(long)")]) }
        #expect(generations.ruleCount < 10)
        #expect(generations.verdict([rule("0\(long)")], late) == .gone)
    }

    @Test func `rules outlive the process, and a torn end costs nothing but itself`() throws {
        let folder = Folder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        func open() -> Generations { Generations(path: "\(folder.path)/rules", pins: Pins(), pool: pool) }
        let first = open()
        let early = first.note(key("/a"))
        first.invalidate([rule("g"), rule("h")])
        let middle = first.note(key("/a"))
        first.invalidate([rule("g")])
        first.close()
        let second = open()
        #expect(second.ruleCount == 2)
        #expect(second.verdict([rule("g")], middle) == .gone && second.verdict([rule("h")], middle) == .valid)
        #expect(second.verdict([rule("h")], early) == .gone)
        // What was made by an earlier process is older than every fill of this one.
        #expect(second.isUnchanged(second.note(key("/a")).concerned(by: [rule("g")])))
        second.close()
        let size = try #require(folder.size(of: "rules"))
        truncate("\(folder.path)/rules", off_t(size - 1))
        let third = open()
        #expect(third.ruleCount == 1)
        let late = third.note(key("/a"))
        third.invalidate([rule("i")])
        third.close()
        let fourth = open()
        #expect(fourth.ruleCount == 2 && fourth.verdict([rule("i")], late) == .gone)
        fourth.close()
    }

    @Test func `what is kept is in the file when that returns, and the file stays short however often rules are made`()
        async throws
    {
        let folder = Folder()
        try await withPool { pool, _ in
            let path = "\(folder.path)/rules"
            let generations = Generations(path: path, pins: Pins(), pool: pool)
            var last = generations.note(key("/a"))
            for round in 0..<(3 * RuleLog.least) {
                last = generations.note(key("/a"))
                let number = generations.invalidate([rule("g")])
                try await generations.keep([rule("g")], number: number)
                guard round % 1000 == 0 else { continue }
                // As a killed process leaves it.
                #expect(RuleRecord.decode(contents(path)).last?.mark.number == number)
                #expect(try #require(folder.size(of: "rules")) <= RuleLog.least * 64)
            }
            // Somebody removes the file: what was in it is written again with what comes next.
            #expect(unlink(path) == 0)
            let number = generations.invalidate([rule("h")])
            try await generations.keep([rule("h")], number: number)
            #expect(RuleRecord.decode(contents(path)).count == 2)
            generations.close()
            let size = try #require(folder.size(of: "rules"))
            #expect(size < 200)
            let again = Generations(path: path, pins: Pins(), pool: pool)
            #expect(again.ruleCount == 2)
            #expect(again.verdict([rule("g")], last) == .gone)
            again.close()
        }
    }

    @Test func `what cannot be written says so, and what comes next writes it, too`() async throws {
        let folder = Folder()
        try await withPool { pool, _ in
            let path = "\(folder.path)/absent/rules"
            let generations = Generations(path: path, pins: Pins(), pool: pool)
            let first = generations.invalidate([rule("g")])
            await #expect(throws: SystemError.self) { try await generations.keep([rule("g")], number: first) }
            #expect(mkdir("\(folder.path)/absent", 0o700) == 0)
            let second = generations.invalidate([rule("h")])
            try await generations.keep([rule("h")], number: second)
            #expect(RuleRecord.decode(contents(path)).map(\.mark.number).sorted() == [first, second])
            generations.close()
        }
    }
}

@Suite struct ReaderPlaceTests {
    @Test func `a cancellation that comes late does not stop the reader that has the place by then`() {
        var state = FillState(window: 1024, spills: false, keepsStart: true)
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
