// Decodes the content codings of a body (RFC 9110 section 8.4): as it arrives, or for a reader that asks for the bytes.

import CCodings
package import HTTPWire

/// A coding that can be decoded.
package enum ContentCoding: Equatable {
    case gzip
    case deflate
    case brotli

    /// The most nested codings: no server uses more than one or two, and each takes memory.
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

/// Decodes one or several nested codings, piece by piece. Used on one loop.
package final class ContentDecoder {
    /// The error of bytes that are not in the declared coding.
    package struct Malformed: Error {}

    private let stages: [CodingStage]
    // The output of each stage, used within one call only; owned by this object, freed in deinit.
    private let rooms: [UnsafeMutableRawBufferPointer]
    // The bytes that each stage has not decoded yet: for the first one valid during a call only, for each other one a
    // part of the output of the stage before it.
    private var rests: [UnsafeRawBufferPointer]
    /// The coded bytes that were left when `take` stopped.
    private var held: [UInt8] = []
    /// Whether `take` has stopped the decoder, which has, or may have, more bytes.
    package private(set) var isStopped = false

    /// - Parameter codings: the codings in the order of decoding; an empty list leaves the bytes as they are.
    package init(_ codings: [ContentCoding]) {
        stages = codings.map { CodingStage($0) }
        rooms = codings.map { _ in .allocate(byteCount: 32 * 1024, alignment: 16) }
        rests = codings.map { _ in UnsafeRawBufferPointer(start: nil, count: 0) }
    }

    deinit { for room in rooms { room.deallocate() } }

    /// Decodes the next bytes, after those that were left when `take` stopped.
    /// - Parameter take: gets the decoded bytes piece by piece, 32 KiB at most; returns false to stop, and then the
    ///   remaining bytes are kept in coded form.
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

    /// Keeps bytes that come while the decoder is stopped; valid while ``isStopped``.
    package func keep(_ bytes: UnsafeRawBufferPointer) { held += bytes }

    /// Whether all codings have ended.
    package var isAtEnd: Bool { stages.allSatisfy(\.isAtEnd) }

    /// - Parameter first: the stage to begin with: the last one that may have bytes left.
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
                // A stage that has used up its bytes gets more from the one before it.
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

// MARK: - One coding

/// One content coding, decoded step by step from the available bytes into the available room. Used by one decoder.
final class CodingStage {
    private let coding: ContentCoding
    /// The first two bytes of a deflate body, which tell whether there is a zlib wrapper, until they are decoded.
    // Owned by this object, freed in deinit.
    private let start = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 1)
    /// The number of these bytes that have arrived.
    private var started = 0
    /// The number of these bytes that have been decoded.
    private var decoded = 0
    // `c_coding_make` makes the decoder, which this object owns and frees in deinit.
    private var decoder: UnsafeMutableRawPointer?
    private var isMade = false
    private(set) var isAtEnd = false

    init(_ coding: ContentCoding) { self.coding = coding }

    deinit {
        c_coding_free(decoder)
        start.deallocate()
    }

    /// Decodes as much as fits.
    /// - Returns: the number of bytes taken, and of bytes written into the room; nothing is written only if all bytes
    ///   were taken, and they give no more output.
    /// - Throws: `Malformed`.
    func step(
        _ bytes: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Malformed) -> (consumed: Int, produced: Int) {
        guard coding == .deflate else { return try decode(bytes, room) }
        // Some servers send deflate data without the zlib wrapper, which the first two bytes show (RFC 9110 section
        // 8.4.1.2).
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

// MARK: - For a reader that asks

/// Decodes nested codings for a reader that asks for the bytes. Used by one task at a time.
package final class ContentReader {
    /// The buffer between two stages; owned by the reader, freed in deinit.
    private struct Link {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)
        /// The range of the room that has not been read.
        var unread = 0..<0
    }

    private let stages: [CodingStage]
    private var links: [Link]

    /// - Parameter codings: the codings in the order of decoding; at least one.
    package init(_ codings: [ContentCoding]) {
        stages = codings.map { CodingStage($0) }
        links = codings.dropFirst().map { _ in Link() }
    }

    deinit { for link in links { link.room.deallocate() } }

    /// Whether all codings have ended.
    package var isAtEnd: Bool { stages.allSatisfy(\.isAtEnd) }

    /// Decodes as much as fits into a room.
    /// - Parameter bytes: coded bytes; those that were not consumed are given again with the next call.
    /// - Returns: the numbers of bytes consumed and produced; nothing is produced only if all bytes were consumed, and
    ///   more are needed.
    /// - Throws: `Malformed`.
    package func read(
        _ bytes: UnsafeRawBufferPointer,
        into room: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Malformed) -> (consumed: Int, produced: Int) {
        var consumed = 0
        var produced = 0
        while produced < room.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[produced...])
            let more = try pull(stages.count - 1, bytes, &consumed, into: rest)
            if more == 0 { break }
            produced += more
        }
        return (consumed, produced)
    }

    /// The next output of a stage; 0 if it needs more bytes than there are.
    private func pull(
        _ index: Int,
        _ bytes: UnsafeRawBufferPointer,
        _ consumed: inout Int,
        into room: UnsafeMutableRawBufferPointer
    ) throws(ContentDecoder.Malformed) -> Int {
        while true {
            let input =
                index == 0
                ? UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                : UnsafeRawBufferPointer(rebasing: links[index - 1].room[links[index - 1].unread])
            let step = try stages[index].step(input, into: room)
            if index == 0 {
                consumed += step.consumed
            } else {
                links[index - 1].unread.removeFirst(step.consumed)
            }
            if step.produced > 0 || index == 0 { return step.produced }
            let more = try pull(index - 1, bytes, &consumed, into: links[index - 1].room)
            if more == 0 { return 0 }
            links[index - 1].unread = 0..<more
        }
    }
}

@available(*, unavailable) extension ContentReader: Sendable {}
