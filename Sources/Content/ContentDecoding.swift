// Decodes the content codings of a body (RFC 9110 section 8.4), for its inspection and for its mapping.

import CCodings
package import HTTPWire

/// A coding that can be taken off.
package enum ContentCoding: Equatable {
    case gzip
    case deflate
    case brotli

    /// The limit of nested codings: no server uses more than one or two, and each takes memory.
    static let limit = 4

    /// The codings of a response in the order of decoding; nil if one is unknown, or there are more than ``limit``.
    package static func codings(_ fields: Fields) -> [ContentCoding]? {
        var codings: [ContentCoding] = []
        for name in (fields.combined(.contentEncoding) ?? "").split(separator: ",") {
            switch name.filter({ $0 != " " && $0 != "\t" }).lowercased() {
            case "", "identity": break
            case "gzip", "x-gzip": codings.append(.gzip)
            case "deflate": codings.append(.deflate)
            case "br": codings.append(.brotli)
            default: return nil
            }
            if codings.count > limit { return nil }
        }
        return codings.reversed()
    }
}

/// One or several codings in a row, taken off piece by piece. Used on one loop.
package final class ContentDecoder {
    /// The bytes are not in the coding that they are said to be in.
    package struct Malformed: Error {}

    private var stages: [Stage]

    /// - Parameter codings: in the order of decoding; an empty list leaves the bytes as they are.
    package init(_ codings: [ContentCoding]) { stages = codings.map { Stage($0) } }

    /// Decodes the next bytes.
    /// - Parameter take: gets the decoded bytes piece by piece; returns false to stop.
    /// - Throws: `Malformed`.
    package func push(_ bytes: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) -> Bool) throws(Malformed) {
        _ = try push(bytes, from: 0, take)
    }

    /// Whether all codings have come to their ends.
    package var isAtEnd: Bool { stages.allSatisfy(\.isAtEnd) }

    private func push(
        _ bytes: UnsafeRawBufferPointer,
        from index: Int,
        _ take: (UnsafeRawBufferPointer) -> Bool
    ) throws(Malformed) -> Bool {
        guard index < stages.count else { return take(bytes) }
        return try stages[index].push(bytes) { (piece) throws(Malformed) in try push(piece, from: index + 1, take) }
    }
}

@available(*, unavailable) extension ContentDecoder: Sendable {}

/// One coding. Used on one loop.
private final class Stage {
    private let coding: ContentCoding
    /// The first byte of a deflate body, which does not say yet whether there is a zlib wrapper.
    private var first: UInt8?
    // Made by `c_coding_make`, ours alone, freed in deinit.
    private var decoder: UnsafeMutableRawPointer?
    // The output buffer, used within one call only; owned by this object, freed in deinit.
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)
    private var isMade = false
    private(set) var isAtEnd = false

    init(_ coding: ContentCoding) { self.coding = coding }

    deinit {
        c_coding_free(decoder)
        room.deallocate()
    }

    func push(
        _ bytes: UnsafeRawBufferPointer,
        _ take: (UnsafeRawBufferPointer) throws(ContentDecoder.Malformed) -> Bool
    ) throws(ContentDecoder.Malformed) -> Bool {
        guard coding == .deflate, !isMade else { return try decode(bytes, take) }
        // RFC 9110 section 8.4.1.2: some send the deflate data without the zlib wrapper; the first two bytes tell.
        guard bytes.count + (first == nil ? 0 : 1) >= 2 else {
            first = bytes.first ?? first
            return true
        }
        let start = (first.map { [$0] } ?? []) + Array(bytes.prefix(2))
        let isWrapped = start[0] & 0x0F == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
        make(isWrapped ? C_CODING_ZLIB : C_CODING_RAW_DEFLATE)
        if let first {
            let one = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
            defer { one.deallocate() }
            one[0] = first
            guard try decode(UnsafeRawBufferPointer(one), take) else { return false }
        }
        return try decode(bytes, take)
    }

    private func make(_ kind: some BinaryInteger) {
        isMade = true
        decoder = c_coding_make(Int32(kind))
    }

    private func decode(
        _ bytes: UnsafeRawBufferPointer,
        _ take: (UnsafeRawBufferPointer) throws(ContentDecoder.Malformed) -> Bool
    ) throws(ContentDecoder.Malformed) -> Bool {
        guard !bytes.isEmpty else { return true }
        if !isMade { make(coding == .brotli ? C_CODING_BROTLI : C_CODING_GZIP) }
        // Only gzip may continue after its end, with another member (RFC 1952 section 2.2).
        guard let decoder, !isAtEnd || coding == .gzip else { throw ContentDecoder.Malformed() }
        isAtEnd = false
        var left = bytes.count
        let source = bytes.bindMemory(to: UInt8.self)
        let target = room.bindMemory(to: UInt8.self)
        while true {
            var free = room.count
            let position = source.baseAddress.map { $0 + (bytes.count - left) }
            let result = Int(c_coding_step(decoder, position, &left, target.baseAddress, &free))
            if free < room.count {
                let piece = UnsafeRawBufferPointer(rebasing: room[..<(room.count - free)])
                guard try take(piece) else { return false }
            }
            switch result {
            case Int(C_CODING_FULL): continue
            case Int(C_CODING_HUNGRY): if left == 0 { return true }
            case Int(C_CODING_ENDED):
                isAtEnd = true
                guard left == 0 else { throw ContentDecoder.Malformed() }
                return true
            default: throw ContentDecoder.Malformed()
            }
        }
    }
}
