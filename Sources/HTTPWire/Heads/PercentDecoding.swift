// Percent-encoding decoded to the end: what a text may become for servers that decode it more often than once.

/// The one place that says what percent-encodings stand for, for every rule that no spelling may get past.
///
/// An encoding is decoded wherever it stands, and so is one that only comes about by that: `%2e`, `%252e`,
/// `%25%32%65`, `%%32%65` and `%2%65` are all a dot. A percent sign that two hexadecimal digits never follow stands for
/// itself. The order of the steps does not matter, since no two encodings overlap and each step makes the text shorter:
/// there is one end, and it is reached in linear time.
public enum PercentDecoding {
    /// Decodes a text to the end. No allocation.
    /// - Parameters:
    ///   - result: takes the bytes; has room for as many as the text has.
    ///   - starts: takes for each of them where in the text it begins; each ends where the next one begins. It has room
    ///     for as many, too.
    /// - Returns: the number of bytes.
    public static func settle(
        _ text: UnsafeRawBufferPointer,
        into result: UnsafeMutableBufferPointer<UInt8>,
        starts: UnsafeMutableBufferPointer<Int>? = nil
    ) -> Int {
        var count = 0
        for position in text.indices {
            result[count] = text[position]
            starts?[count] = position
            count += 1
            // What has been decoded may be a digit of an encoding that began before it.
            while count >= 3, result[count - 3] == UInt8(ascii: "%"),
                let value = value(result[count - 2], result[count - 1])
            {
                result[count - 3] = value
                count -= 2
            }
        }
        return count
    }

    /// A text decoded to the end.
    public static func settled(_ text: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: text.count) { result, count in
            count = text.withUnsafeBytes { settle($0, into: result) }
        }
    }

    /// A text decoded once, as most servers do.
    public static func once(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var position = 0
        while position < text.count {
            if text[position] == UInt8(ascii: "%"), position + 2 < text.count,
                let value = value(text[position + 1], text[position + 2])
            {
                result.append(value)
                position += 3
            } else {
                result.append(text[position])
                position += 1
            }
        }
        return result
    }

    /// Of two hexadecimal digits.
    private static func value(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = digit(high), let low = digit(low) else { return nil }
        return high << 4 | low
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        let lower = ByteClass.lower(byte)
        if byte &- 0x30 < 10 { return byte &- 0x30 }
        return lower &- 0x61 < 6 ? lower &- 0x61 &+ 10 : nil
    }
}
