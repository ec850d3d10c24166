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
    // What each stage has not decoded yet: of the first one bytes that are valid during a call only, of each other one a
    // part of the room of the stage before it.
    private var rests: [UnsafeRawBufferPointer]
    /// The coded bytes that were left when `take` stopped.
    private var held: [UInt8] = []
    /// `take` has stopped, and there is, or may be, more for it.
    package private(set) var isStopped = false

    /// - Parameter codings: in the order of decoding; an empty list leaves the bytes as they are.
    package init(_ codings: [ContentCoding]) {
        stages = codings.map { CodingStage($0) }
        rooms = codings.map { _ in .allocate(byteCount: 32 * 1024, alignment: 16) }
        rests = codings.map { _ in UnsafeRawBufferPointer(start: nil, count: 0) }
    }

    deinit { for room in rooms { room.deallocate() } }

    /// Decodes the next bytes, behind those that were left when `take` stopped.
    /// - Parameter take: gets the decoded bytes piece by piece, 32 KiB at most; returns false to stop, and then what is
    ///   left is kept as it is, coded.
    /// - Throws: `Malformed`.
    package func push(_ bytes: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) -> Bool) throws(Malformed) {
        guard isStopped else { return try decode(bytes, from: 0, take) }
        keep(bytes)
        let whole = held
        held = []
        let failure: Malformed? = whole.withUnsafeBytes { whole in
            do throws(Malformed) { try decode(whole, from: stages.count - 1, take) } catch { return error }
            return nil
        }
        if let failure { throw failure }
    }

    /// Keeps bytes that come while nothing is taken; valid while ``isStopped``.
    package func keep(_ bytes: UnsafeRawBufferPointer) { held += bytes }

    /// Whether all codings have come to their ends.
    package var isAtEnd: Bool { stages.allSatisfy(\.isAtEnd) }

    /// - Parameter first: the stage that begins: the last one that may have something left.
    private func decode(
        _ bytes: UnsafeRawBufferPointer,
        from first: Int,
        _ take: (UnsafeRawBufferPointer) -> Bool
    ) throws(Malformed) {
        guard !stages.isEmpty else {
            _ = take(bytes)
            return
        }
        guard !bytes.isEmpty || isStopped else { return }
        isStopped = false
        rests[0] = bytes
        defer { rests[0] = UnsafeRawBufferPointer(start: nil, count: 0) }
        var index = first
        while index >= 0 {
            let room = rooms[index]
            let step = try stages[index].step(rests[index], into: room)
            rests[index] = UnsafeRawBufferPointer(rebasing: rests[index][step.consumed...])
            if step.produced == 0 {
                // A stage that is through gets more from the one before it.
                if rests[index].isEmpty { index -= 1 }
                continue
            }
            let piece = UnsafeRawBufferPointer(rebasing: room[..<step.produced])
            if index + 1 < stages.count {
                index += 1
                rests[index] = piece
            } else if !take(piece) {
                isStopped = true
                held = Array(rests[0])
                return
            }
        }
    }
}

@available(*, unavailable) extension ContentDecoder: Sendable {}
