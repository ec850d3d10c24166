// The journal: entries there and back, the ring that bounds them, and those who read and follow it.

import TestSupport
import Testing

@testable import ProxyServer

/// An entry of a time, with a body of a length.
private func entry(_ number: Int, body: Int = 0) -> JournalEntry {
    var entry = JournalEntry(time: UInt64(number), method: "POST", target: "/a/\(number)?b=c%20d&e", status: 201)
    (entry.service, entry.endpoint, entry.source) = ("shop", "order", "demo")
    entry.fields = [.init(name: "Host", value: "a"), .init(name: "X-Ümlaut", value: "")]
    entry.body = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: body)
    (entry.cacheStatus, entry.demo) = ("drydock; hit", "endpoint=order; status=201; draw=7f3a")
    entry.violations = "body/sku is missing"
    (entry.duration, entry.isBodyCut, entry.isAborted) = (17, number % 2 == 0, number % 3 == 0)
    return entry
}

@Suite struct JournalTests {
    @Test func anEntryIsTheSameAgain() {
        for number in 0..<12 {
            let entry = entry(number, body: number)
            #expect(JournalEntry(bytes: entry.bytes[...]) == entry)
            #expect(JournalEntry.time(of: entry.bytes[...]) == UInt64(number))
        }
        let bytes = entry(1, body: 3).bytes
        // What ends within a value is no entry, but for one that lacks whole fields.
        #expect((0..<80).allSatisfy { JournalEntry(bytes: bytes[..<$0]) == nil })
        let read = entry(5)
        #expect(read.path == "/a/5" && read.query.map(\.name) == ["b", "e"] && read.query.map(\.value) == ["c d", ""])
        #expect(read.demoParameter("draw") == "7f3a" && read.demoParameter("dra") == nil)
    }

    @Test(arguments: [10, 64, 1000, 65_536, 200_000])
    func theRingHoldsTheYoungest(_ capacity: Int) throws {
        var ring = JournalRing(capacity: capacity)
        #expect(ring.capacity <= capacity && ring.capacity > capacity - 65_536)
        var (held, dropped): ([[UInt8]], [[UInt8]]) = ([], [])
        var numbers = SystemRandomNumberGenerator.seeded(capacity)
        for step in 0..<2000 {
            let record = [UInt8](
                repeating: UInt8(truncatingIfNeeded: step),
                count: numbers.next(below: 3 * capacity / 10)
            )
            let fits = ring.append(record) { dropped.append(Array($0)) }
            #expect(fits == (record.count + 4 <= ring.capacity))
            if fits { held.append(record) }
            #expect(ring.size <= ring.capacity && ring.count == held.count - dropped.count)
        }
        #expect(dropped == Array(held.prefix(dropped.count)))
        var position = ring.first
        for expected in held.dropFirst(dropped.count) {
            let (content, next) = try #require(ring.record(at: position))
            #expect(Array(content) == expected)
            position = next
        }
        #expect(position == ring.end && ring.record(at: position) == nil)
        ring.removeAll()
        #expect(ring.count == 0 && ring.size == 0 && ring.record(at: ring.first) == nil)
    }

    private func all(_ journal: Journal) -> [NumberedEntry] {
        var cursor = journal.start
        var entries: [NumberedEntry] = []
        while case let page = journal.page(&cursor), !page.isEmpty { entries += page }
        return entries
    }

    @Test func entriesHaveNumbersAndTheOldestGo() {
        let journal = Journal(JournalSettings(size: 256 << 10))
        #expect(journal.isOn)
        for number in 1...1000 { journal.record(entry(number, body: 1000)) }
        let extent = journal.extent
        #expect(extent.bytes <= extent.limit && extent.limit == 256 << 10)
        #expect(extent.entries + Int(extent.dropped) == 1000 && extent.dropped > 0)
        #expect(extent.droppedUntil == extent.dropped)
        let entries = all(journal)
        #expect(entries.map(\.number) == Array(extent.dropped + 1...1000))
        #expect(entries.allSatisfy { $0.entry == entry(Int($0.number), body: 1000) })
        #expect(journal.clear() == entries.count && journal.extent.dropped == 0 && all(journal).isEmpty)
        journal.record(entry(7))
        #expect(all(journal).map(\.number) == [1001])
        // One that is longer than the whole journal.
        journal.record(entry(8, body: 300 << 10))
        #expect(journal.extent.dropped == 1 && journal.extent.droppedUntil == 8 && all(journal).count == 1)
    }

    @Test func aReloadKeepsTheYoungest() {
        let journal = Journal(JournalSettings(size: 512 << 10))
        for number in 1...400 { journal.record(entry(number, body: 1000)) }
        #expect(journal.extent.dropped == 0)
        journal.update(JournalSettings(size: 512 << 10, bodies: 7), now: 1)
        #expect(journal.settings.bodies == 7 && all(journal).count == 400)
        journal.update(JournalSettings(size: 256 << 10), now: 2)
        let left = all(journal)
        #expect(left.last?.number == 400 && left.count < 400 && journal.extent.dropped == UInt64(400 - left.count))
        #expect(left.map(\.entry.time) == left.map(\.number))
        var behind = journal.end
        journal.update(.off, now: 3)
        #expect(!journal.isOn && all(journal).isEmpty)
        journal.record(entry(1))
        journal.update(JournalSettings(size: 256 << 10), now: 2)
        #expect(journal.extent.offUntil == 2)
        journal.record(entry(2))
        #expect(journal.page(&behind).map(\.number) == [401] && behind.missed == 0)
    }

    @Test func clearingForgetsThatItWasOff() {
        let journal = Journal()
        journal.update(JournalSettings(size: 256 << 10), now: 5)
        #expect(journal.extent.offUntil == 5)
        _ = journal.clear()
        #expect(journal.extent.offUntil == 0)
    }

    @Test func aReaderThatIsTooSlowIsToldWhatItMissed() {
        let journal = Journal(JournalSettings(size: 256 << 10))
        var cursor = journal.start
        for number in 1...1000 { journal.record(entry(number, body: 1000)) }
        let page = journal.page(&cursor)
        #expect(cursor.missed == journal.extent.dropped && page.first?.number == cursor.missed + 1)
    }

    @Test func whoFollowsGetsWhatComes() async throws {
        let journal = Journal(JournalSettings(size: 256 << 10))
        journal.record(entry(1))
        let reader = try #require(journal.follow(from: journal.start))
        #expect(await reader.next()?.map(\.number) == [1])
        async let next = reader.next()
        journal.record(entry(2))
        #expect(await next?.map(\.number) == [2])
        let cancelled = Task { await reader.next() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        let others = (1..<Journal.maximumReaders).map { _ in journal.follow(from: journal.end) }
        #expect(others.allSatisfy { $0 != nil } && journal.follow(from: journal.end) == nil)
        async let last = reader.next()
        journal.stop()
        #expect(await last == nil)
        #expect(await others[0]?.next() == nil)
        reader.close()
        #expect(journal.readerCount == Journal.maximumReaders - 1 && journal.follow(from: journal.end) == nil)
    }
}

/// Numbers that are the same in each run.
private struct SeededNumbers {
    var state: UInt64

    mutating func next(below bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return bound > 0 ? Int((state >> 33) % UInt64(bound)) : 0
    }
}

extension SystemRandomNumberGenerator {
    fileprivate static func seeded(_ seed: Int) -> SeededNumbers { SeededNumbers(state: UInt64(seed)) }
}
