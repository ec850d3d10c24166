// One content coding, taken off step by step: from the bytes that there are into the room that there is.

import CCodings

/// Not shared: used by one decoder.
final class CodingStage {
    private let coding: ContentCoding
    /// The first two bytes of a deflate body, which tell whether there is a zlib wrapper, until they are decoded.
    // Owned by this object, freed in deinit.
    private let start = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
    /// How many of the two there are.
    private var started = 0
    /// How many of them have been decoded.
    private var decoded = 0
    // Made by `c_coding_make`, ours alone, freed in deinit.
    private var decoder: UnsafeMutableRawPointer?
    private var isMade = false
    private(set) var isAtEnd = false

    init(_ coding: ContentCoding) { self.coding = coding }

    deinit {
        c_coding_free(decoder)
        start.deallocate()
    }

    /// Decodes what fits.
    /// - Returns: bytes taken, and bytes written into the room; nothing is written only where all bytes were taken, and
    ///   nothing more can be had of them.
    /// - Throws: `Malformed`.
    func step(
        _ bytes: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Malformed) -> (consumed: Int, produced: Int) {
        guard coding == .deflate else { return try decode(bytes, room) }
        // RFC 9110 section 8.4.1.2: some send the deflate data without the zlib wrapper; the first two bytes tell.
        var taken = 0
        while started < 2, taken < bytes.count {
            start[started] = bytes[taken]
            (started, taken) = (started + 1, taken + 1)
        }
        guard started == 2 else { return (taken, 0) }
        if !isMade {
            let isWrapped = start[0] & 0x0F == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
            make(isWrapped ? C_CODING_ZLIB : C_CODING_RAW_DEFLATE)
        }
        if decoded < 2 {
            let step = try decode(UnsafeRawBufferPointer(rebasing: start[decoded...]), room)
            decoded += step.consumed
            if step.produced > 0 { return (taken, step.produced) }
        }
        let step = try decode(UnsafeRawBufferPointer(rebasing: bytes[taken...]), room)
        return (taken + step.consumed, step.produced)
    }

    private func make(_ kind: some BinaryInteger) {
        isMade = true
        decoder = c_coding_make(Int32(kind))
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer,
        _ room: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Malformed) -> (consumed: Int, produced: Int) {
        if bytes.isEmpty, isAtEnd || !isMade { return (0, 0) }
        if !isMade { make(coding == .brotli ? C_CODING_BROTLI : C_CODING_GZIP) }
        // Only gzip may continue after its end, with another member (RFC 1952 section 2.2).
        guard let decoder, !isAtEnd || coding == .gzip else { throw ContentDecoder.Malformed() }
        isAtEnd = false
        var left = bytes.count
        var free = room.count
        let source = bytes.bindMemory(to: UInt8.self)
        let target = room.bindMemory(to: UInt8.self)
        while true {
            let position = source.baseAddress.map { $0 + (bytes.count - left) }
            let result = Int(c_coding_step(decoder, position, &left, target.baseAddress, &free))
            switch result {
            case Int(C_CODING_FULL): break
            case Int(C_CODING_HUNGRY): if left == 0 { return (bytes.count, room.count - free) }
            case Int(C_CODING_ENDED):
                isAtEnd = true
                guard left == 0 else { throw ContentDecoder.Malformed() }
                return (bytes.count, room.count - free)
            default: throw ContentDecoder.Malformed()
            }
            if free < room.count { return (bytes.count - left, room.count - free) }
        }
    }
}

@available(*, unavailable) extension CodingStage: Sendable {}
