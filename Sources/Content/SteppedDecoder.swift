// One content coding, taken off in steps whose output is bounded, for who cannot take whatever comes of a few bytes.

/// Used on one loop.
package final class SteppedDecoder {
    private let stage: CodingStage
    // The output of a step, used within one call only; owned by this object, freed in deinit.
    private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)

    package init(_ coding: ContentCoding) { stage = CodingStage(coding) }

    deinit { room.deallocate() }

    /// Whether the coding has come to its end.
    package var isAtEnd: Bool { stage.isAtEnd }

    /// Decodes at most 32 KiB.
    /// - Parameter take: gets the decoded bytes; called at most once.
    /// - Returns: the bytes of `bytes` that were taken, and whether `take` got any; where it got none, all were taken.
    /// - Throws: `ContentDecoder.Malformed`.
    package func step(
        _ bytes: UnsafeRawBufferPointer,
        _ take: (UnsafeRawBufferPointer) -> Void
    ) throws(ContentDecoder.Malformed) -> (consumed: Int, hasMore: Bool) {
        let step = try stage.step(bytes, into: room)
        if step.produced > 0 { take(UnsafeRawBufferPointer(rebasing: room[..<step.produced])) }
        return (step.consumed, step.produced > 0)
    }
}

@available(*, unavailable) extension SteppedDecoder: Sendable {}
