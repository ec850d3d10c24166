// The trace that a request belongs to, as W3C Trace Context puts it into the fields traceparent and tracestate.

package import HTTPWire

/// A trace, one span of it, and whether that is recorded.
package struct TraceContext: Sendable, Equatable {
    /// The id of the trace: 128 bits, which are not all zero.
    package let trace: (high: UInt64, low: UInt64)
    /// The id of the span; not zero.
    package let span: UInt64
    package let isSampled: Bool
    /// What tracestate says, which is passed on as it came; nil for nothing.
    package let state: String?

    static let parentName = "traceparent"
    static let stateName = "tracestate"
    /// The name of the field that names the trace.
    package static let parentField: StaticString = "traceparent"

    package init(trace: (high: UInt64, low: UInt64), span: UInt64, isSampled: Bool, state: String? = nil) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
        self.state = state
    }

    /// The context that a request brings; nil if it brings none, or one that is not valid. Two lines of traceparent are not
    /// valid.
    package init?(_ fields: Fields) {
        guard fields.present.contains(.other) else { return nil }
        let lines = fields.all(Self.parentName)
        guard lines.count == 1, var line = lines.first else { return nil }
        let state = fields.combined(Self.stateName).flatMap { $0.isEmpty ? nil : $0 }
        guard let context = line.withUTF8({ TraceContext(parent: UnsafeRawBufferPointer($0), state: state) }) else {
            return nil
        }
        self = context
    }

    /// The context in a value of traceparent: version, trace, span and flags. A later version than 00 may have more behind
    /// them.
    /// - Parameter state: the value of tracestate beside it.
    package init?(parent value: UnsafeRawBufferPointer, state: String? = nil) {
        let dash = UInt8(ascii: "-")
        guard value.count >= Self.length, value[2] == dash, value[35] == dash, value[52] == dash,
            let version = Self.number(value, 0..<2), version != 0xFF,
            value.count == Self.length || version > 0 && value[Self.length] == dash,
            let high = Self.number(value, 3..<19), let low = Self.number(value, 19..<35), high | low != 0,
            let span = Self.number(value, 36..<52), span != 0,
            let flags = Self.number(value, 53..<55)
        else { return nil }
        self.init(trace: (high, low), span: span, isSampled: flags & 1 == 1, state: state)
    }

    /// The length of a value of version 00 in bytes.
    private static let length = 55

    /// The number of lower-case hexadecimal digits; nil if there are other bytes.
    private static func number(_ value: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for byte in value[range] {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    /// A context for a request that brings none: the first span of a new trace.
    package static func made(isSampled: Bool) -> TraceContext {
        TraceContext(trace: (newID(), newID()), span: newID(), isSampled: isSampled)
    }

    /// Another span of the same trace.
    package func child() -> TraceContext {
        TraceContext(trace: trace, span: Self.newID(), isSampled: isSampled, state: state)
    }

    /// The context as spans that wait have it: without a state that is longer than 512 bytes.
    var recorded: TraceContext {
        guard let state, state.utf8.count > 512 else { return self }
        return TraceContext(trace: trace, span: span, isSampled: isSampled)
    }

    private static func newID() -> UInt64 { .random(in: 1 ... .max) }

    /// Names this span as the parent of what a request leads to.
    package func write(to fields: inout Fields) {
        fields.set(Self.parentName, parentValue)
        fields.remove(Self.stateName)
        if let state { fields.append(Self.stateName, state) }
    }

    /// The value of traceparent.
    package var parentValue: String { "00-\(traceText)-\(spanText)-\(isSampled ? "01" : "00")" }

    /// The 32 hexadecimal digits of the trace.
    package var traceText: String { Self.text(trace.high) + Self.text(trace.low) }
    /// The 16 hexadecimal digits of the span.
    package var spanText: String { Self.text(span) }

    /// The 16 hexadecimal digits of an id.
    package static func text(_ id: UInt64) -> String {
        let digits = String(id, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    package static func == (left: TraceContext, right: TraceContext) -> Bool {
        left.trace == right.trace && left.span == right.span && left.isSampled == right.isSampled
            && left.state == right.state
    }
}
