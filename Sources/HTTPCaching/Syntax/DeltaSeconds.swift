// Non-negative counts of seconds as RFC 9111 section 1.2.2 writes them: digits only, saturating at 2^31.

/// delta-seconds of RFC 9111 section 1.2.2.
package enum DeltaSeconds {
    /// The largest count, in seconds: a greater one means this much.
    package static let limit: Int64 = 1 << 31

    /// The seconds that `bytes` spell, or nil if they are anything but one or more digits (no sign, no fraction).
    package static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard ASCII.isDigit(byte) else { return nil }
            value = min(value * 10 + Int64(byte - 0x30), limit)
        }
        return value
    }

    /// `seconds` within 0 and the limit.
    static func clamp(_ seconds: Int64) -> Int64 { min(max(seconds, 0), limit) }

    /// The whole seconds from `start` to `end` (both Unix times), 0 where the clock went back, at most the limit.
    static func elapsed(from start: Int64, to end: Int64) -> Int64 {
        let (difference, overflow) = end.subtractingReportingOverflow(start)
        if overflow { return end > start ? limit : 0 }
        return clamp(difference)
    }

    /// `time` (Unix seconds) within 1970 and the year 9999, which is what an HTTP-date can say.
    static func clampTime(_ time: Int64) -> Int64 { min(max(time, 0), 253_402_300_799) }
}
