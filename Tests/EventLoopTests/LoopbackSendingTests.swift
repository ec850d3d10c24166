// What a large body costs over loopback, copied and by sendfile.

import EventLoop
import Testing

@Suite struct LoopbackSendingTests {
    @Test func `both ways take time, and are measured`() throws {
        let costs = try LoopbackSending.measure()
        // Less than a nanosecond for each hundred bytes is no copy; the longest that is waited for anything is a second.
        for cost in [costs.copied, costs.sentAsFile] { #expect((2_000..<1_000_000_000).contains(cost)) }
    }

    @Test(arguments: [(100, 200, true), (100, 106, true), (100, 105, false), (100, 100, false), (200, 100, false)])
    func `a copy is preferred where it is cheaper by more than a twentieth`(example: (UInt64, UInt64, Bool)) {
        #expect(LoopbackSending(copied: example.0, sentAsFile: example.1).prefersCopies == example.2)
    }
}
