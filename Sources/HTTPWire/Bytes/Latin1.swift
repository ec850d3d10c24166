// The bytes of fields as text: ISO-8859-1 both ways, so that any field value survives the round trip, and strings of
// structured fields.

/// ISO-8859-1: each byte is the Unicode scalar of the same number. A String with a scalar above U+00FF has no such
/// bytes and is written as UTF-8.
public enum Latin1 {
    /// The bytes as a String; ASCII takes a fast path.
    public static func string(_ bytes: UnsafeRawBufferPointer) -> String {
        if isASCII(bytes) { return String(decoding: bytes, as: UTF8.self) }
        var scalars = String.UnicodeScalarView()
        for byte in bytes { scalars.append(Unicode.Scalar(byte)) }
        return String(scalars)
    }

    /// Appends the String's bytes; a String that `string` decoded gives the same bytes again.
    public static func append(_ string: String, to bytes: inout [UInt8]) {
        var text = string
        let isCopied = text.withUTF8 { utf8 in
            let raw = UnsafeRawBufferPointer(utf8)
            guard Self.isASCII(raw) else { return false }
            bytes.append(contentsOf: raw)
            return true
        }
        if isCopied { return }
        var isLatin1 = true
        for scalar in string.unicodeScalars {
            if scalar.value > 0xFF { isLatin1 = false }
        }
        if !isLatin1 {
            bytes.append(contentsOf: string.utf8)
        } else {
            for scalar in string.unicodeScalars { bytes.append(UInt8(truncatingIfNeeded: scalar.value)) }
        }
    }

    /// The String's bytes, as `append` writes them.
    public static func bytes(_ string: String) -> [UInt8] {
        var bytes: [UInt8] = []
        append(string, to: &bytes)
        return bytes
    }

    /// Calls `body` with the String's bytes; for ASCII nothing is copied. The pointer is valid during the call.
    static func withBytes<R>(_ string: String, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        var string = string
        let direct: R? = string.withUTF8 { utf8 in
            let raw = UnsafeRawBufferPointer(utf8)
            return isASCII(raw) ? body(raw) : nil
        }
        return direct ?? bytes(string).withUnsafeBytes { body($0) }
    }

    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        return all < 0x80
    }
}

// MARK: - Strings of structured fields

/// Text as a string of structured fields (RFC 9651), as in Cache-Status and Proxy-Status.
public enum StructuredText {
    /// A quoted string (section 3.3.3); a character that it cannot hold becomes a question mark.
    public static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case " "..."~": result.unicodeScalars.append(scalar)
            default: result += "?"
            }
        }
        return result + "\""
    }
}
