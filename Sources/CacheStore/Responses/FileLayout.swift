// The layout of a stored file: a preamble, the body from byte 4096 on, records after it: see `StoredRecord`.
//
// A record is found from the end of the file by its last twelve bytes; where an append was torn, by walking the records
// from the end of the body, whose length the preamble knows. Data that does not match its checksum counts as absent.

/// What a body's file, its records and whoever reads them have to agree on. All numbers are little-endian.
package enum FileLayout {
    /// Where the body begins, in bytes.
    package static let bodyOffset: Int64 = 4096
    package static let version: UInt16 = 1
    package static let footerSize = 12
    /// Longer tails are not read: no writer makes them.
    package static let longestTail: Int64 = 64 * 1024 * 1024
}

extension [UInt8] {
    /// Appends a number, little-endian.
    package mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// A little-endian number. The caller must have checked that it lies inside.
    package func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _ type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
