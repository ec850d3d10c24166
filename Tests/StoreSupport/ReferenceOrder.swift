// What the orders of eviction are compared with: S3-FIFO as published, LRU, and streams that are the same every time.

import Glibc

/// S3-FIFO (Yang and others, SOSP 2023) with the parameters of its authors' simulator: a small queue of a tenth, a main
/// queue of nine tenths, as many ghosts as the main queue has room for, two uses to move on, counters up to three.
/// While the room fills, what the small queue has no room for goes to the main queue.
package struct ReferenceOrder {
    private enum Residence { case small, main, ghost }
    private struct Queue {
        var things: [Int] = []
        var first = 0
        var count: Int { things.count - first }
        mutating func popFirst() -> Int {
            first += 1
            return things[first - 1]
        }
    }

    private let room: Int
    private var small = Queue()
    private var main = Queue()
    /// Those that were asked for since stay in the queue, under a number that is not theirs any more.
    private var ghosts = Queue()
    private var ghostCount = 0
    private var ghostNumbers: [Int: Int] = [:]
    private var residences: [Int: Residence] = [:]
    private var uses: [Int: Int] = [:]
    private var hasEvicted = false

    package init(_ room: Int) { self.room = room }

    private var smallRoom: Int { room / 10 }

    /// Whether it was there.
    package mutating func ask(_ thing: Int) -> Bool {
        let residence = residences[thing]
        if residence == .small || residence == .main {
            uses[thing, default: 0] += 1
            return true
        }
        if residence == .ghost {
            ghostNumbers[thing] = nil
            ghostCount -= 1
        }
        while small.count + main.count >= room { evict() }
        uses[thing] = 0
        if residence == .ghost || !hasEvicted && small.count >= smallRoom {
            main.things.append(thing)
            residences[thing] = .main
        } else {
            small.things.append(thing)
            residences[thing] = .small
        }
        return false
    }

    private mutating func evict() {
        hasEvicted = true
        if main.count > room - smallRoom || small.count == 0 {
            while true {
                let thing = main.popFirst()
                let counted = min(uses[thing] ?? 0, 3)
                if counted == 0 {
                    residences[thing] = nil
                    uses[thing] = nil
                    return
                }
                uses[thing] = counted - 1
                main.things.append(thing)
            }
        }
        while small.count > 0 {
            let thing = small.popFirst()
            if uses[thing] ?? 0 >= 2 {
                uses[thing] = 0
                residences[thing] = .main
                main.things.append(thing)
            } else {
                uses[thing] = nil
                haunt(thing)
                return
            }
        }
    }

    private mutating func haunt(_ thing: Int) {
        residences[thing] = .ghost
        ghostNumbers[thing] = ghosts.things.count
        ghosts.things.append(thing)
        ghostCount += 1
        while ghostCount > room - smallRoom {
            let number = ghosts.first
            let oldest = ghosts.popFirst()
            guard ghostNumbers[oldest] == number else { continue }
            ghostNumbers[oldest] = nil
            residences[oldest] = nil
            ghostCount -= 1
        }
    }
}

/// Keeps what was used last.
package struct LeastRecentlyUsed {
    private let room: Int
    private var times: [Int: Int] = [:]
    private var uses: [(thing: Int, time: Int)] = []
    private var first = 0

    package init(_ room: Int) { self.room = room }

    /// Whether it was there.
    package mutating func ask(_ thing: Int) -> Bool {
        let isHit = times[thing] != nil
        times[thing] = uses.count
        uses.append((thing, uses.count))
        while times.count > room {
            let (oldest, time) = uses[first]
            first += 1
            if times[oldest] == time { times[oldest] = nil }
        }
        return isHit
    }
}

/// Requests whose popularity falls with the rank (Zipf).
package struct RequestStream: Sendable, CustomStringConvertible {
    package enum Kind: Sendable { case steady, scanning, shifting }

    private let objects: Int
    private let skew: Double
    /// Things that an order has room for.
    package let room: Int
    private let count: Int
    private let kind: Kind

    package init(objects: Int, skew: Double, room: Int, count: Int, kind: Kind = .steady) {
        (self.objects, self.skew, self.room, self.count, self.kind) = (objects, skew, room, count, kind)
    }

    /// What every order is tried with.
    package static let all: [RequestStream] = [
        RequestStream(objects: 200_000, skew: 0.9, room: 10_000, count: 200_000),
        RequestStream(objects: 20_000, skew: 0.7, room: 1000, count: 100_000),
        RequestStream(objects: 20_000, skew: 0.9, room: 200, count: 100_000),
        RequestStream(objects: 20_000, skew: 1.0, room: 4000, count: 100_000),
        RequestStream(objects: 20_000, skew: 1.2, room: 1000, count: 100_000),
        RequestStream(objects: 20_000, skew: 0.9, room: 1000, count: 100_000, kind: .scanning),
        RequestStream(objects: 20_000, skew: 0.9, room: 4000, count: 100_000, kind: .scanning),
        RequestStream(objects: 20_000, skew: 0.8, room: 200, count: 100_000, kind: .shifting),
        RequestStream(objects: 20_000, skew: 0.9, room: 2000, count: 100_000, kind: .shifting),
    ]

    package var description: String { "room for \(room) of \(objects), Zipf \(skew), \(kind), \(count) requests" }

    /// A fifth of a scanning stream asks once for things that nobody else asks for. Of a shifting one, a tenth of the
    /// ranks goes to other objects every `objects` requests.
    package func requests() -> [Int] {
        var random = SeededRandom(state: 11)
        var sums: [Double] = []
        sums.reserveCapacity(objects)
        var sum = 0.0
        for rank in 1...objects {
            sum += pow(Double(rank), -skew)
            sums.append(sum)
        }
        var names = Array(0..<objects)
        var scanned = objects
        var requests: [Int] = []
        requests.reserveCapacity(count)
        for position in 0..<count {
            if kind == .shifting, position % objects == objects - 1 {
                for rank in 0..<(objects / 10) {
                    names.swapAt(rank, Int(truncatingIfNeeded: random.next() >> 1) % objects)
                }
            }
            if kind == .scanning, position % objects >= objects / 5 * 4 {
                scanned += 1
                requests.append(scanned)
                continue
            }
            let draw = Double(random.next() >> 11) / 9_007_199_254_740_992 * sum
            var (low, high) = (0, objects - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] > draw { high = middle } else { low = middle + 1 }
            }
            requests.append(names[low])
        }
        return requests
    }
}

/// SplitMix64: the same sequence every time.
package struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    package init(state: UInt64) { self.state = state }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
