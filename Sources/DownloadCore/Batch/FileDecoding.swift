// Takes the content codings off a body that is written to a file.

import Content
import Synchronization

/// Sendable: the decoder is under a mutex.
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

    /// - Throws: ``Broken``.
    func decoded(_ coded: [UInt8]) throws(Broken) -> [UInt8] {
        let bytes: [UInt8]? = state.withLock { state in
            if !coded.isEmpty { state.hasBegun = true }
            let decoder = state.decoder
            var bytes: [UInt8] = []
            let isGood = coded.withUnsafeBytes { coded in
                do throws(ContentDecoder.Malformed) {
                    try decoder.push(coded) { piece in
                        bytes.append(contentsOf: piece)
                        return true
                    }
                    return true
                } catch {
                    return false
                }
            }
            return isGood ? bytes : nil
        }
        guard let bytes else { throw Broken() }
        return bytes
    }

    /// Every byte has come; a body without any has no coding to end.
    var isWhole: Bool { state.withLock { !$0.hasBegun || $0.decoder.isAtEnd } }
}
