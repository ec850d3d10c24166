// What an origin may take a path for, for rules that no spelling of a path may get past.

import HTTPWire

/// The readings of a path: as it is written; without parameters (`;x=1`) and repeated slashes; and the same with every
/// percent-encoding decoded, however often it was applied.
struct PathReadings {
    struct Reading: Equatable {
        let path: [UInt8]
        let isDecoded: Bool
    }

    let all: [Reading]

    /// - Parameter target: a path with or without a query.
    init(_ target: String) {
        let written = Array(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        all = [
            Reading(path: written, isDecoded: false),
            Reading(path: Self.plain(written), isDecoded: false),
            Reading(path: Self.plain(written.decoded), isDecoded: true),
        ]
    }

    /// Those that end with a slash, without it: many origins take `/a/` for `/a`.
    var withoutLastSlash: [Reading] {
        all.filter { $0.path.last == UInt8(ascii: "/") }
            .map { Reading(path: $0.path.dropLast(), isDecoded: $0.isDecoded) }
    }

    /// Without parameters of segments, what follows a NUL, and repeated slashes; a backslash is a slash.
    private static func plain(_ path: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var isLeftOut = false
        for byte in path {
            let isSlash = byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
            if isSlash { isLeftOut = false }
            if byte == UInt8(ascii: ";") || byte == 0 { isLeftOut = true }
            if isLeftOut || isSlash && result.last == UInt8(ascii: "/") { continue }
            result.append(isSlash ? UInt8(ascii: "/") : byte)
        }
        return result
    }
}

extension PathPattern {
    /// The same pattern for a decoded path.
    var decoded: PathPattern {
        PathPattern(
            segments: segments.map { segment in
                if case .literal(let bytes) = segment { .literal(bytes.decoded) } else { segment }
            }
        )
    }
}

extension [UInt8] {
    /// With every percent-encoding decoded, however often it was applied.
    fileprivate var decoded: [UInt8] {
        withUnsafeBytes { bytes in
            var (result, position): ([UInt8], Int) = ([], 0)
            while position < bytes.count {
                let byte = DecodedByte(bytes, at: position)
                result.append(byte.byte)
                position = byte.next
            }
            return result
        }
    }
}
