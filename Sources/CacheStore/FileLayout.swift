// The layout of a stored file: a preamble, the body from byte 4096 on, head records after it.

/// All numbers are little-endian.
enum FileLayout {
    /// Where the body begins, in bytes.
    static let bodyOffset: Int64 = 4096
    static let version: UInt16 = 1
}
