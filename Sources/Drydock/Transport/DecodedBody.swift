// A coded body as its reader wants it: decoded piece by piece, as the pieces are asked for.

import CacheStore
import Content
import DownloadCore
import FoundationEssentials
import HTTPCaching
import HTTPWire
import Synchronization

/// What a body is decoded from.
///
/// Sendable: its state is under its own mutex.
final class DecodedBody: Sendable {
    enum Step {
        case piece(Data)
        /// More coded bytes are needed, or their end.
        case hungry
        /// The bytes are not in the coding that they are said to be in.
        case broken
    }

    private struct State {
        let reader: ContentReader
        /// Coded, and not decoded yet.
        var rest = Data()
        /// Whether there was a coded byte.
        var hasBegun = false
    }

    /// Bytes that are handed over at a time.
    private static let portion = 256 << 10

    private let state: Mutex<State>

    init(_ codings: [ContentCoding]) { state = Mutex(State(reader: ContentReader(codings))) }

    /// Takes more coded bytes; only where it is hungry.
    func take(_ coded: Data) {
        state.withLock { state in
            state.rest = coded
            if !coded.isEmpty { state.hasBegun = true }
        }
    }

    func next() -> Step {
        state.withLock { state in
            var room = Data(count: Self.portion)
            let rest = state.rest
            let reader = state.reader
            let step = room.withUnsafeMutableBytes { room in
                rest.withUnsafeBytes { rest in try? reader.read(rest, into: room) }
            }
            guard let step else { return .broken }
            state.rest = rest.dropFirst(step.consumed)
            guard step.produced > 0 else { return .hungry }
            room.removeLast(room.count - step.produced)
            return .piece(room)
        }
    }

    /// Whether the coded bytes end here as a whole. Where there are none at all, so does what they are a coding of.
    var isWhole: Bool { state.withLock { !$0.hasBegun || $0.reader.isAtEnd } }
}

extension Answer {
    /// The codings that are taken off the body before a program gets it, in the order of decoding; empty where there
    /// are none, where one is unknown, and for a part of a body, which cannot be decoded.
    var codings: [ContentCoding] {
        guard head.fields.contains(.contentEncoding), head.status != 206, head.status != 304 else { return [] }
        return ContentCoding.codings(head.fields) ?? []
    }

    /// The head that the decoded body has: what it said of the coded bytes is true no more.
    var decodedHead: Answer {
        var answer = self
        for field in [KnownField.contentEncoding, .contentLength] { answer.head.fields.remove(field) }
        for name in MappedOrigin.digests { answer.head.fields.remove(name) }
        return answer
    }
}
