// Takes the content codings off a body that is written to a file.

import Content
import Synchronization

/// Sendable: the decoder is under a mutex, which nobody else waits for: the pieces of a body come one after the other.
final class FileDecoding: Sendable {
    /// The bytes are not in the coding that they are said to be in, or not all of them came.
    struct Broken: Error, CustomStringConvertible {
        let description = "the body is not in the coding which its Content-Encoding names, or not whole"
    }

    private struct State {
        let decoder: ContentDecoder
        /// There was a coded byte.
        var hasBegun = false
    }

    private let state: Mutex<State>

    /// - Parameter codings: in the order of decoding.
    init(_ codings: [ContentCoding]) { state = Mutex(State(decoder: ContentDecoder(codings))) }

    /// Decodes bytes, and writes a part as soon as it is decoded: a few coded bytes may unfold to more than fits into
    /// memory.
    /// - Throws: ``Broken``, and what `write` throws.
    func decode(_ coded: [UInt8], _ write: @Sendable (UnsafeRawBufferPointer) throws -> Void) throws {
        try state.withLock { state in
            if !coded.isEmpty { state.hasBegun = true }
            let decoder = state.decoder
            var failure: (any Error)?
            coded.withUnsafeBytes { coded in
                do throws(ContentDecoder.Malformed) {
                    try decoder.push(coded) { piece in
                        do { try write(piece) } catch { failure = error }
                        return failure == nil
                    }
                } catch {
                    failure = Broken()
                }
            }
            if let failure { throw failure }
        }
    }

    /// Every byte has come; a body without any has no coding to end.
    var isWhole: Bool { state.withLock { !$0.hasBegun || $0.decoder.isAtEnd } }
}
