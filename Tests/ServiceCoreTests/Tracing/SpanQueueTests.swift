// The spans that wait: their order, their bound, and what is counted.

import Synchronization
import Testing

@testable import ServiceCore

@Suite struct SpanQueueTests {
    private static func span(_ number: Int) -> TraceSpan {
        let context = TraceContext(trace: (1, 2), span: UInt64(number + 1), isSampled: true)
        return TraceSpan(context, parent: nil, name: "\(number)", kind: .internal, start: 1, end: 2)
    }

    @Test func theOldestAreTakenFirstAndFurtherOnesAreDropped() {
        let queue = SpanQueue()
        for number in 0..<SpanQueue.capacity + 3 { queue.put(Self.span(number)) }
        #expect(queue.droppedCount == 3 && queue.sentCount == 0 && queue.hasBatch)
        var names: [String] = []
        for _ in 0..<4 {
            let batch = queue.take()
            #expect(batch.count == SpanQueue.batch)
            names += batch.map(\.name)
        }
        #expect(names == (0..<SpanQueue.capacity).map { "\($0)" })
        #expect(queue.take().isEmpty && !queue.hasBatch)
        queue.put(Self.span(7))
        #expect(queue.take().map(\.name) == ["7"])
        queue.sent(5)
        queue.dropped(2)
        #expect(queue.sentCount == 5 && queue.droppedCount == 5)
    }

    @Test func aFullBatchIsToldOnce() {
        let queue = SpanQueue()
        let counter = Counter()
        queue.listen { counter.count.wrappingAdd(1, ordering: .relaxed) }
        for number in 0..<SpanQueue.batch - 1 { queue.put(Self.span(number)) }
        #expect(counter.count.load(ordering: .relaxed) == 0)
        queue.put(Self.span(0))
        queue.put(Self.span(1))
        #expect(counter.count.load(ordering: .relaxed) == 1)
    }

    private final class Counter: Sendable { let count = Atomic(0) }

    @Test func onlySampledSpansAreRecorded() {
        let queue = SpanQueue()
        OpenSpan(below: nil, isSampled: false, at: 0, to: queue).child().end("left out", .internal)
        let request = OpenSpan(below: nil, isSampled: true, at: 0, to: queue)
        request.child().end("step", .internal, error: "why")
        request.end("whole", .server, [TraceSpan.Attribute("a", 1)])
        let spans = queue.take()
        #expect(spans.map(\.name) == ["step", "whole"])
        #expect(spans[0].parent == request.context.span && spans[1].parent == nil)
        #expect(spans.allSatisfy { $0.context.traceText == request.context.traceText && $0.start <= $0.end })
        #expect(spans[0].error == "why" && spans[1].error == nil)
        #expect(spans[1].attributes == [TraceSpan.Attribute("a", 1)])
    }
}
