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

@Suite struct GenerationTests {
    @Test func `a token holds until its key or one of its rules is invalidated`() {
        let generations = Generations()
        let token = generations.note(key("/a")).concerned(by: [rule("g")])
        generations.invalidate([rule("h")], now: 100)
        #expect(generations.isUnchanged(token))
        generations.invalidate([rule("g")], now: 100)
        #expect(!generations.isUnchanged(token))
        #expect(generations.isUnchanged(generations.note(key("/a")).concerned(by: [rule("g")])))
        let other = generations.note(key("/a"))
        generations.bump(key("/a"))
        #expect(!generations.isUnchanged(other))
        var hasRun = false
        #expect(!generations.ifUnchanged(token) { hasRun = true } && !hasRun)
    }

    @Test func `a rule invalidates what was valid up to its second, of its origin and service`() {
        let generations = Generations()
        generations.invalidate([rule("g")], now: 100)
        #expect(generations.isInvalid([rule("g")], validatedAt: 100))
        #expect(!generations.isInvalid([rule("g")], validatedAt: 101))
        #expect(!generations.isInvalid([rule("G")], validatedAt: 50))
        #expect(!generations.isInvalid([.group("g", of: key("/a", service: "t"))], validatedAt: 50))
        #expect(
            !generations.isInvalid(
                [.group("g", of: CacheKey(service: "s", url: "https://origin.test/a"))],
                validatedAt: 50
            )
        )
        #expect(!generations.isInvalid([], validatedAt: 50))
        #expect(generations.isInvalid([rule("x"), rule("g", "/other")], validatedAt: 50))
        #expect(generations.date([rule("g")], 90) == 101 && generations.date([rule("x")], 90) == 90)
    }

    @Test func `what is invalidated twice within a second, or while the clock goes back, is invalid each time`() {
        let generations = Generations()
        generations.invalidate([rule("g")], now: 100)
        let first = generations.date([rule("g"), rule("h")], 100)
        #expect(!generations.isInvalid([rule("g"), rule("h")], validatedAt: first))
        generations.invalidate([rule("g")], now: 100)
        #expect(generations.isInvalid([rule("g"), rule("h")], validatedAt: first))
        let second = generations.date([rule("g"), rule("h")], 50)
        #expect(!generations.isInvalid([rule("g"), rule("h")], validatedAt: second))
        generations.invalidate([rule("h")], now: 20)
        #expect(generations.isInvalid([rule("g"), rule("h")], validatedAt: second))
    }

    @Test func `numbers grow, whoever draws them`() {
        let generations = Generations()
        let numbers = (0..<100).map { $0 % 2 == 0 ? generations.nextNumber() : generations.note(key("/a")).number }
        #expect(numbers == numbers.sorted() && Set(numbers).count == 100)
        generations.advance(past: numbers[99] + 1_000_000_000_000_000_000)
        #expect(generations.nextNumber() == numbers[99] + 1_000_000_000_000_000_001)
    }

    @Test func `past the bound the older half becomes one rule for all members, and nothing comes back to life`() {
        let generations = Generations()
        for number in 0...Generations.mostRules { generations.invalidate([rule("\(number)")], now: Int64(number)) }
        #expect(generations.ruleCount <= Generations.mostRules / 2 + 2)
        for number in stride(from: 0, through: Generations.mostRules, by: 97) {
            #expect(generations.isInvalid([rule("\(number)")], validatedAt: Int64(number)))
        }
        // One that no rule names, but that could have been meant by those that are gone.
        #expect(generations.isInvalid([rule("never")], validatedAt: 10))
        #expect(!generations.isInvalid([rule("never")], validatedAt: Int64(Generations.mostRules)))
        let long = String(repeating: "x", count: Generations.mostBytes / 4)
        for number in 0..<8 { generations.invalidate([rule("\(number)\(long)")], now: 1_000_000) }
        #expect(generations.ruleCount < Generations.mostRules / 2 + 6)
        #expect(generations.isInvalid([rule("0\(long)")], validatedAt: 1_000_000))
    }

    @Test func `rules outlive the process, and a torn end costs nothing but itself`() throws {
        let folder = Folder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let path = "\(folder.path)/invalidations"
        let first = Generations(path: path, pool: pool)
        first.invalidate([rule("g"), rule("h")], now: 100)
        first.invalidate([rule("g")], now: 200)
        first.close()
        let second = Generations(path: path, pool: pool)
        #expect(second.ruleCount == 2)
        #expect(second.isInvalid([rule("g")], validatedAt: 200) && !second.isInvalid([rule("h")], validatedAt: 101))
        // What was made by an earlier process is older than every fill of this one.
        #expect(second.isUnchanged(second.note(key("/a")).concerned(by: [rule("g")])))
        second.close()
        let size = try #require(folder.size(of: "invalidations"))
        truncate(path, off_t(size - 1))
        let third = Generations(path: path, pool: pool)
        #expect(third.ruleCount == 1)
        third.invalidate([rule("i")], now: 300)
        third.close()
        let fourth = Generations(path: path, pool: pool)
        #expect(fourth.ruleCount == 2 && fourth.isInvalid([rule("i")], validatedAt: 300))
        fourth.close()
    }

    @Test func `the file stays short however often rules are made`() throws {
        let folder = Folder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let path = "\(folder.path)/invalidations"
        let generations = Generations(path: path, pool: pool)
        for number in 0..<(3 * Generations.mostRules) { generations.invalidate([rule("g")], now: Int64(number)) }
        generations.close()
        let size = try #require(folder.size(of: "invalidations"))
        #expect(size < 3 * Generations.mostRules * 40)
        let again = Generations(path: path, pool: pool)
        #expect(again.ruleCount == 1)
        #expect(again.isInvalid([rule("g")], validatedAt: Int64(3 * Generations.mostRules - 1)))
        again.close()
    }

    @Test func `records of any bytes are read up to the first that is damaged, whatever stands there`() {
        var bytes: [UInt8] = []
        let records = (0..<5).map { InvalidationRecord(rule: rule("\($0)"), time: Int64($0) - 2) }
        for record in records { record.encode(into: &bytes) }
        #expect(InvalidationRecord.decode(bytes) == records)
        for length in 0..<bytes.count {
            let decoded = InvalidationRecord.decode(Array(bytes[..<length]))
            #expect(decoded.count < 5 && decoded == Array(records.prefix(decoded.count)))
        }
        for position in bytes.indices {
            var damaged = bytes
            damaged[position] ^= 0x55
            #expect(InvalidationRecord.decode(damaged) == Array(records.prefix(position * 5 / bytes.count)))
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
