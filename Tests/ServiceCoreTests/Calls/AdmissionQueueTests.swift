// The order of those who wait for a slot, as a value: classes, shares, who gives way, and who is raised.

import Policies
import ServiceCore
import TestSupport
import Testing

/// An expectation of what a mutating function returns, which `#expect` cannot call.
private func same<Value: Equatable>(_ value: Value, _ expected: Value, at location: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: location)
}

@Suite struct AdmissionQueueTests {
    private static func drain(_ queue: inout AdmissionQueue<Int>) -> [Int] {
        var order: [Int] = []
        while let next = queue.popFirst() { order.append(next) }
        return order
    }

    @Test("the more urgent class is served first, but four in a row at most while lower ones wait")
    func shares() {
        var queue = AdmissionQueue<Int>()
        for id in 1...2 { queue.append(UInt64(id), id, .prefetch) }
        for id in 11...20 { queue.append(UInt64(id), id, .client) }
        #expect(queue.count == 12 && queue.count(of: .client) == 10 && queue.count(of: .prefetch) == 2)
        same(Self.drain(&queue), [11, 12, 13, 14, 1, 15, 16, 17, 18, 2, 19, 20])
        #expect(queue.isEmpty && queue.count(of: .client) == 0)
    }

    @Test(
        "of 125 slots with all classes waiting, each class gets a fifth of what the class above gets, and none starves"
    )
    func nested() {
        var queue = AdmissionQueue<FetchPriority>()
        var id: UInt64 = 0
        for priority in FetchPriority.allCases {
            for _ in 0..<200 {
                id += 1
                queue.append(id, priority, priority)
            }
        }
        var counts: [FetchPriority: Int] = [:]
        for _ in 0..<125 { if let next = queue.popFirst() { counts[next, default: 0] += 1 } }
        #expect(counts == [.client: 100, .revalidation: 20, .sizeCheck: 4, .prefetch: 1])
    }

    @Test("who makes room is the last one of the lowest class below, and nobody of the own class")
    func displacing() {
        var queue = AdmissionQueue<Int>()
        queue.append(1, 1, .prefetch)
        queue.append(2, 2, .prefetch)
        queue.append(3, 3, .revalidation)
        queue.append(4, 4, .client)
        same(queue.displace(below: .prefetch), nil)
        same(queue.displace(below: .client), 2)
        same(queue.displace(below: .revalidation), 1)
        same(queue.displace(below: .revalidation), nil)
        same(queue.displace(below: .client), 3)
        same(queue.displace(below: .client), nil)
        same(Self.drain(&queue), [4])
    }

    @Test("who is raised waits at the end of the higher class, and nobody is ever lowered")
    func raising() {
        var queue = AdmissionQueue<Int>()
        queue.append(1, 1, .prefetch)
        queue.append(2, 2, .prefetch)
        queue.append(3, 3, .client)
        queue.raise(2, to: .client)
        queue.raise(3, to: .prefetch)
        queue.raise(99, to: .client)
        #expect(queue.count(of: .client) == 2 && queue.count(of: .prefetch) == 1)
        same(queue.remove(3), 3)
        same(queue.remove(3), nil)
        same(Self.drain(&queue), [2, 1])
    }

    @Test("random operations against a list", arguments: 1...20 as ClosedRange<UInt64>)
    func model(_ seed: UInt64) {
        var random = Random(state: seed)
        var queue = AdmissionQueue<UInt64>()
        var model: [(id: UInt64, priority: FetchPriority)] = []
        var last: UInt64 = 0
        for _ in 0..<2000 {
            switch random.below(10) {
            case 0..<4:
                last += 1
                let priority = FetchPriority.allCases[random.below(4)]
                queue.append(last, last, priority)
                model.append((last, priority))
            case 4..<6:
                // Whichever class it is: within it, the first one.
                let popped = queue.popFirst()
                #expect((popped == nil) == model.isEmpty)
                guard let popped, let index = model.firstIndex(where: { $0.id == popped }) else { continue }
                let priority = model[index].priority
                #expect(model.first { $0.priority == priority }?.id == popped)
                model.remove(at: index)
            case 6, 7:
                guard !model.isEmpty else { continue }
                let id = model.remove(at: random.below(model.count)).id
                same(queue.remove(id), id)
            case 8:
                let priority = FetchPriority.allCases[random.below(4)]
                let lowest = model.filter { $0.priority < priority }.map(\.priority).min()
                let expected = model.last { $0.priority == lowest }?.id
                same(queue.displace(below: priority), expected)
                model.removeAll { $0.id == expected }
            default:
                guard !model.isEmpty else { continue }
                let index = random.below(model.count)
                let priority = FetchPriority.allCases[random.below(4)]
                queue.raise(model[index].id, to: priority)
                if model[index].priority < priority { model.append((model.remove(at: index).id, priority)) }
            }
            #expect(queue.count == model.count)
        }
        for priority in FetchPriority.allCases {
            #expect(queue.count(of: priority) == model.count { $0.priority == priority })
        }
        var left: [UInt64] = []
        while let id = queue.popFirst() { left.append(id) }
        #expect(left.sorted() == model.map(\.id).sorted())
    }
}
