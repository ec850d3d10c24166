// The interpretations of a path by origins, for rules that no spelling of a path may circumvent.

import HTTPWire

/// The readings of a path: undecoded, percent-decoded once, twice and three times, and decoded completely; each with
/// and without parameters (`;x=1`), with and without repeated slashes, and with backslashes kept or turned into
/// slashes. It is unknown which of them an origin applies, and so the changes are combined.
struct PathReadings {
    struct Reading: Equatable {
        let path: [UInt8]
        let decoding: Decoding
    }

    /// The number of times that percent-encodings were decoded.
    enum Decoding: Int, CaseIterable {
        case never, once, twice, thrice
        /// Decoded until nothing is left to decode.
        case toTheEnd
    }

    let all: [Reading]

    /// Makes the readings of a target.
    /// - Parameter target: a path with or without a query.
    init(_ target: String) {
        let written = Array(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        var all: [Reading] = []
        for (path, decoding) in Self.decodings(of: written) {
            var paths = [path]
            // Slashes come last, because the other changes may add some.
            for change in [Self.slashed, Self.withoutParameters, Self.withSingleSlashes] {
                for path in paths {
                    let changed = change(path)
                    if !paths.contains(changed) { paths.append(changed) }
                }
            }
            all += paths.map { Reading(path: $0, decoding: decoding) }
        }
        self.all = all
    }

    /// The text undecoded and decoded completely, and the decodings between them that differ from both.
    private static func decodings(of written: [UInt8]) -> [(path: [UInt8], decoding: Decoding)] {
        var decodings = [(path: written, decoding: Decoding.never)]
        let settled = PercentDecoding.settled(written)
        var path = written
        for decoding in [Decoding.once, .twice, .thrice] where path != settled {
            path = PercentDecoding.once(path)
            if path != settled { decodings.append((path, decoding)) }
        }
        return decodings + [(settled, .toTheEnd)]
    }

    /// Whether an origin may interpret the path as one below a base path, however either is written.
    /// - Parameter base: the base path: empty, or beginning with a slash and not ending with one.
    func mayBeBelow(_ base: String) -> Bool {
        let base = PathReadings(base).all.map(\.path)
        return all.contains { reading in
            base.contains {
                reading.path.starts(with: $0)
                    && [nil, UInt8(ascii: "/")].contains(reading.path.dropFirst($0.count).first)
            }
        }
    }

    /// The readings that end with a slash, without it, because many origins treat `/a/` as `/a`.
    var withoutLastSlash: [Reading] {
        all.filter { $0.path.last == UInt8(ascii: "/") }
            .map { Reading(path: $0.path.dropLast(), decoding: $0.decoding) }
    }

    /// The path with slashes instead of backslashes.
    private static func slashed(_ path: [UInt8]) -> [UInt8] {
        path.map { $0 == UInt8(ascii: "\\") ? UInt8(ascii: "/") : $0 }
    }

    /// The path without the parameters of segments, and without the part of a segment after a NUL.
    private static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
        var isLeftOut = false
        return path.filter { byte in
            if byte == UInt8(ascii: "/") { isLeftOut = false }
            if byte == UInt8(ascii: ";") || byte == 0 { isLeftOut = true }
            return !isLeftOut
        }
    }

    private static func withSingleSlashes(_ path: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in path where byte != UInt8(ascii: "/") || result.last != byte { result.append(byte) }
        return result
    }
}

extension PathPattern {
    /// The pattern for decoded paths: an encoded slash in the pattern is a slash in such a path.
    func decoded(_ decoding: PathReadings.Decoding) -> PathPattern {
        PathPattern(
            segments: segments.flatMap { segment -> [Segment] in
                guard case .literal(let bytes) = segment else { return [segment] }
                return decoding.applied(to: bytes).split(
                    separator: UInt8(ascii: "/"),
                    omittingEmptySubsequences: false
                ).map { .literal(Array($0)) }
            }
        )
    }
}

extension PathReadings.Decoding {
    fileprivate func applied(to text: [UInt8]) -> [UInt8] {
        if self == .toTheEnd { return PercentDecoding.settled(text) }
        return (0..<rawValue).reduce(text) { text, _ in PercentDecoding.once(text) }
    }
}
