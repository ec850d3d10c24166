// Runs a body through a decoder in every split and says what came of it.

import HTTPWire
import Testing

enum BodyOutcome: Equatable {
    case finished(content: [UInt8], trailers: Fields, consumed: Int)
    case refused(WireError)
    case incomplete(content: [UInt8])
}

/// Feeds the bytes in parts cut at `cuts`, each in memory of exactly its size.
func decodeBody(
    _ bytes: [UInt8],
    cuts: [Int],
    _ framing: BodyFraming,
    side: MessageSide = .request,
    isLenient: Bool = false,
    trailerLimits: HeadLimits = HeadLimits(head: 16384)
) -> BodyOutcome {
    var decoder = BodyDecoder(framing, side: side, isLenient: isLenient, trailerLimits: trailerLimits)
    var content: [UInt8] = []
    var start = 0
    for end in cuts + [bytes.count] {
        let part = Array(bytes[start..<end])
        let outcome: BodyOutcome? = withPrefix(part, part.count) { buffer in
            var position = 0
            // Every step but the last takes a byte, so that this ends.
            for _ in 0...buffer.count {
                do throws(WireError) {
                    switch try decoder.next(buffer, from: position) {
                    case .data(let range):
                        content.append(contentsOf: buffer[range])
                        position = range.upperBound
                    case .needMore(let consumed):
                        return consumed == buffer.count ? nil : .incomplete(content: [])
                    case .finished(let consumed):
                        return .finished(content: content, trailers: decoder.trailers, consumed: start + consumed)
                    }
                } catch {
                    return .refused(error)
                }
            }
            return .incomplete(content: [])
        }
        if let outcome { return outcome }
        start = end
    }
    return .incomplete(content: content)
}

/// The outcome for the whole, having checked that every split into two reads and the bytes one by one give the same.
func bodyOutcome(
    _ bytes: [UInt8],
    _ framing: BodyFraming = .chunked,
    side: MessageSide = .request,
    isLenient: Bool = false,
    trailerLimits: HeadLimits = HeadLimits(head: 16384),
    sourceLocation: SourceLocation = #_sourceLocation
) -> BodyOutcome {
    let outcome = { (cuts: [Int]) in
        decodeBody(bytes, cuts: cuts, framing, side: side, isLenient: isLenient, trailerLimits: trailerLimits)
    }
    let whole = outcome([])
    for split in 0...bytes.count {
        #expect(outcome([split]) == whole, "split at \(split)", sourceLocation: sourceLocation)
    }
    let single = outcome(Array(0..<bytes.count))
    #expect(single == whole, "byte by byte", sourceLocation: sourceLocation)
    return whole
}
