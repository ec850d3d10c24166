// What the disk tier's order of eviction finds on the same requests as S3-FIFO as published: within one point, and more
// than LRU.

import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct FileHitRatioTests {
    /// Every request counts, those too that fill the room.
    private func ratio(_ requests: [Int], _ ask: (Int) -> Bool) -> Double {
        Double(requests.count(where: ask)) / Double(requests.count)
    }

    private func expectClose(_ found: Double, _ reference: Double, _ name: String) {
        #expect(found > reference - 0.01, "\(name): \(found), and the reference finds \(reference)")
    }

    @Test(arguments: RequestStream.all)
    func `the order of files finds within one point of what the reference finds, and more than LRU`(
        _ stream: RequestStream
    ) {
        let requests = stream.requests()
        var reference = ReferenceOrder(stream.room)
        var least = LeastRecentlyUsed(stream.room)
        var files = FileThings(stream.room)
        let best = ratio(requests) { reference.ask($0) }
        let leastFound = ratio(requests) { least.ask($0) }
        let found = ratio(requests) { files.ask($0) }
        expectClose(found, best, "the disk tier's order")
        #expect(found > leastFound, "LRU finds \(leastFound)")
    }

    @Test func `after a restart the disk tier's order goes on with what the index knows`() {
        let stream = RequestStream(objects: 20_000, skew: 0.9, room: 1000, count: 150_000, kind: .scanning)
        let requests = stream.requests()
        let (before, after) = (Array(requests[..<80_000]), Array(requests[80_000...]))
        var reference = ReferenceOrder(stream.room)
        var files = FileThings(stream.room)
        for thing in before {
            _ = reference.ask(thing)
            _ = files.ask(thing)
        }
        files.restart()
        let best = ratio(after) { reference.ask($0) }
        expectClose(ratio(after) { files.ask($0) }, best, "the order after a restart")
    }
}

/// The table of the disk tier with room for so many files of one page.
struct FileThings {
    private var table = DiskTable()
    private var now: UInt32 = 1_000_000
    /// What the index has of each file.
    private var rows: [StoredFileName: DiskTable.Slot] = [:]
    private let room: Int

    init(_ room: Int) { self.room = room }

    /// Whether it was there.
    mutating func ask(_ thing: Int) -> Bool {
        now += 1
        let hash = hash(thing)
        let name = StoredFileName(high: hash, low: hash)
        if table.find(hash, name) != nil {
            if let news = table.use(hash, name, now) { rows[name] = news }
            return true
        }
        // The tier makes room first.
        while table.count >= room, let victim = table.evict() { rows[victim.name] = nil }
        let slot = DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: UInt64(thing),
            bodyLength: 1,
            size: 4096,
            storedAt: Int64(now),
            lastUse: now,
            isSeen: true
        )
        table.insert(slot)
        rows[name] = slot
        return false
    }

    /// Another process has the rows of the index alone, in the order of their names.
    mutating func restart() {
        table = DiskTable()
        for row in rows.values.sorted(by: { $0.name.high < $1.name.high }) {
            var slot = row
            slot.isSeen = false
            table.insert(slot)
        }
    }
}

private func hash(_ thing: Int) -> UInt64 {
    var random = SeededRandom(state: UInt64(thing))
    return random.next()
}
