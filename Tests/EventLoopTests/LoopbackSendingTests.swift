// What a large body costs over loopback, copied and by sendfile.

import EventLoop
import TestSupport
import Testing

@Suite struct LoopbackSendingTests {
    @Test func `both ways take time, and are measured`() async throws {
        var measured: LoopbackSending?
        // It gives up where its other end has no processor for a second.
        #expect(
            await eventually {
                measured = try? LoopbackSending.measure()
                return measured != nil
            }
        )
        let costs = try #require(measured)
        // Processor time: less than a nanosecond for each hundred bytes is no copy.
        for cost in [costs.copied, costs.sentAsFile] { #expect((2_000..<1_000_000_000).contains(cost)) }
    }

    @Test(arguments: [(100, 200, true), (100, 106, true), (100, 105, false), (100, 100, false), (200, 100, false)])
    func `a copy is preferred where it is cheaper by more than a twentieth`(example: (UInt64, UInt64, Bool)) {
        #expect(LoopbackSending(copied: example.0, sentAsFile: example.1).prefersCopies == example.2)
    }
}
