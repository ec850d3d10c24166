// Decodes the content codings of a body (RFC 9110 section 8.4), for its inspection and for its mapping.

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

    private let stages: [CodingStage]
    // The output of each stage, used within one call only; owned by this object, freed in deinit.
    private let rooms: [UnsafeMutableRawBufferPointer]

    /// - Parameter codings: in the order of decoding; an empty list leaves the bytes as they are.
    package init(_ codings: [ContentCoding]) {
        stages = codings.map { CodingStage($0) }
        rooms = codings.map { _ in .allocate(byteCount: 32 * 1024, alignment: 16) }
    }

    deinit { for room in rooms { room.deallocate() } }

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
        guard !bytes.isEmpty else { return true }
        let (stage, room) = (stages[index], rooms[index])
        var rest = bytes
        while true {
            let step = try stage.step(rest, into: room)
            rest = UnsafeRawBufferPointer(rebasing: rest[step.consumed...])
            if step.produced > 0 {
                let piece = UnsafeRawBufferPointer(rebasing: room[..<step.produced])
                guard try push(piece, from: index + 1, take) else { return false }
            } else if rest.isEmpty {
                return true
            }
        }
    }
}

@available(*, unavailable) extension ContentDecoder: Sendable {}
