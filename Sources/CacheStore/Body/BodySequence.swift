// Several readers, one after the other, as one: the parts of a multipart body, stored parts with
// fetched ones between them.

package import EventLoop

/// Finds the bytes that were not there when a sequence was made; loop-bound.
package protocol PartSource: AnyObject {
    /// Readers for all bytes of `range`, in order; it waits until the origin sends them.
    /// - Throws: `BodyError` where they cannot be had.
    func readers(for range: Range<Int64>, on loop: isolated EventLoop) async throws(BodyError) -> [BodySequence.Part]
}

/// Loop-bound: its readers are.
package final class BodySequence {
    package enum Part {
        case reader(BodyReader)
        /// Bytes that are looked for when the turn comes to them.
        case hole(Range<Int64>, any PartSource)
    }

    private var parts: ArraySlice<Part>
    private var isClosed = false
    /// Of the sequence, as ``BodyReader/isSuspended``.
    var isSuspended = false {
        didSet { suspendParts() }
    }

    package init(_ parts: [Part]) { self.parts = parts[...] }

    func next(maxBytes: Int, on loop: isolated EventLoop) async throws(BodyError) -> BodyPiece? {
        while let part = parts.first {
            switch part {
            case .reader(let reader):
                if let piece = try await reader.next(maxBytes: maxBytes, on: loop) { return piece }
                reader.close()
                parts.removeFirst()
            case .hole(let range, let source):
                let found = try await source.readers(for: range, on: loop)
                // Another task may have closed the reader meanwhile.
                if isClosed { throw .cancelled }
                parts.replaceSubrange(parts.startIndex...parts.startIndex, with: found)
                suspendParts()
            }
            if isClosed { throw .cancelled }
        }
        return nil
    }

    func nextIfReady(maxBytes: Int) -> BodyStep {
        while case .reader(let reader)? = parts.first {
            let step = reader.nextIfReady(maxBytes: maxBytes)
            guard case .end = step else { return step }
            reader.close()
            parts.removeFirst()
        }
        return parts.isEmpty ? .end : .wait
    }

    private func suspendParts() {
        for case .reader(let reader) in parts { reader.isSuspended = isSuspended }
    }

    func close() {
        isClosed = true
        for case .reader(let reader) in parts { reader.close() }
        parts = []
    }
}

@available(*, unavailable) extension BodySequence: Sendable {}

extension Body {
    /// A reader of some of the bytes, to be used on `loop` only; nil as for ``makeReader(on:)``.
    package func makeReader(_ range: Range<Int64>, on loop: EventLoop) -> BodyReader? {
        let reader = makeReader(on: loop)
        reader?.narrow(to: range)
        return reader
    }
}
