// W3C Trace Context: which values of traceparent are valid, and what is passed on.

import HTTPWire
import Testing

@testable import ServiceCore

@Suite struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test(arguments: [
        ("00-\(trace)-\(span)-01", true), ("00-\(trace)-\(span)-00", false), ("00-\(trace)-\(span)-03", true),
        // A later version may have more behind the flags.
        ("01-\(trace)-\(span)-01", true), ("cc-\(trace)-\(span)-00-what-the-future-brings", false),
    ])
    func isTaken(value: String, isSampled: Bool) throws {
        let context = try #require(TraceContext(Fields([("TraceParent", value), ("tracestate", "a=b,c=d")])))
        #expect(context.traceText == Self.trace && context.spanText == Self.span)
        #expect(context.isSampled == isSampled && context.state == "a=b,c=d")
        #expect(context.parentValue == "00-\(Self.trace)-\(Self.span)-\(isSampled ? "01" : "00")")
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01x",
        "01-\(trace)-\(span)-01x", "ff-\(trace)-\(span)-01", "0x-\(trace)-\(span)-01", "00-\(trace)-\(span)-0g",
        "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "00_\(trace)-\(span)-01",
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01", "00-\(trace)x\(span)-01",
    ])
    func isNoContext(value: String) {
        #expect(TraceContext(Fields([("traceparent", value), ("tracestate", "a=b")])) == nil)
    }

    @Test func twoLinesAreNone() {
        let value = "00-\(Self.trace)-\(Self.span)-01"
        #expect(TraceContext(Fields([("traceparent", value), ("traceparent", value)])) == nil)
        #expect(TraceContext(Fields([("tracestate", "a=b")])) == nil)
    }

    @Test func aChildHasTheTraceAndAnIdOfItsOwn() throws {
        let value = "00-\(Self.trace)-\(Self.span)-01"
        let sent = [("traceparent", value), ("tracestate", "a=b"), ("tracestate", "c=d")]
        let child = try #require(TraceContext(Fields(sent))).child()
        #expect(child.traceText == Self.trace && child.spanText != Self.span && child.isSampled)
        var fields = Fields([("X", "y")] + sent)
        child.write(to: &fields)
        #expect(fields.all("traceparent") == ["00-\(Self.trace)-\(child.spanText)-01"])
        #expect(fields.all("tracestate") == ["a=b, c=d"])
        // What came beside an invalid value goes with it.
        let made = TraceContext.made(isSampled: false)
        made.write(to: &fields)
        #expect(fields.all("traceparent") == [made.parentValue] && !fields.contains("tracestate"))
        #expect(made.parentValue.hasSuffix("-00") && made.parentValue.utf8.count == 55)
        #expect(TraceContext(fields) == made)
    }

    @Test func idsHaveAllTheirDigits() {
        let context = TraceContext(trace: (0, 0xAB), span: 1, isSampled: true)
        #expect(context.parentValue == "00-000000000000000000000000000000ab-0000000000000001-01")
    }
}
