// Takes content codings off for somebody who asks for the bytes: nothing is decoded ahead, however far a few coded
// bytes unfold.

/// Codings in a row, read from their end. Used by one task at a time.
package final class ContentReader {
    /// Between two stages; owned by this object, freed in deinit.
    private struct Link {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)
        /// What of the room has not been read.
        var unread = 0..<0
    }

    private let stages: [CodingStage]
    private var links: [Link]

    /// - Parameter codings: in the order of decoding; at least one.
    package init(_ codings: [ContentCoding]) {
        stages = codings.map { CodingStage($0) }
        links = codings.dropFirst().map { _ in Link() }
    }

    deinit { for link in links { link.room.deallocate() } }

    /// Whether all codings have come to their ends.
    package var isAtEnd: Bool { stages.allSatisfy(\.isAtEnd) }

    /// Decodes as much as fits into a room.
    /// - Parameter bytes: coded; those that were not consumed are given again with the next call.
    /// - Returns: nothing is produced only where all bytes were consumed, and more are needed.
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

    /// The next output of a stage; 0 where it needs more bytes than there are.
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
