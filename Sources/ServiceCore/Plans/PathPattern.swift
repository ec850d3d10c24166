// The path pattern of an endpoint, such as `/users/:id` or `/files/*`, matched without allocation.

/// A path pattern. A parameter matches one segment that is not empty; the rest matches any continuation, slashes
/// included.
package struct PathPattern: Sendable, Equatable {
    package enum Segment: Sendable, Equatable {
        /// A segment that is compared byte for byte.
        case literal([UInt8])
        /// A parameter with this name: one segment that is not empty.
        case parameter(String)
        /// Any continuation, possibly an empty one; only at the end.
        case rest
    }

    package let segments: [Segment]

    package init(segments: [Segment]) { self.segments = segments }

    /// Whether a target matches; its query is ignored.
    package func matches(_ target: UnsafeRawBufferPointer) -> Bool {
        matches(path: target, end: target.firstIndex(of: UInt8(ascii: "?")) ?? target.count)
    }

    /// Whether a path without a query matches; a `?` in it was decoded, and is an ordinary byte.
    func matches(path: [UInt8]) -> Bool { path.withUnsafeBytes { matches(path: $0, end: $0.count) } }

    private func matches(path: UnsafeRawBufferPointer, end: Int) -> Bool {
        var position = 0
        for segment in segments {
            if case .rest = segment { return position < end && path[position] == UInt8(ascii: "/") || position == end }
            guard position < end, path[position] == UInt8(ascii: "/") else { return false }
            position += 1
            var stop = position
            while stop < end, path[stop] != UInt8(ascii: "/") { stop += 1 }
            guard matches(segment, path, position..<stop) else { return false }
            position = stop
        }
        if segments.isEmpty { return position == end || end == 1 && path[0] == UInt8(ascii: "/") }
        return position == end
    }

    private func matches(_ segment: Segment, _ path: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        switch segment {
        case .rest: true
        case .parameter: !range.isEmpty
        case .literal(let bytes):
            bytes.count == range.count && bytes.indices.allSatisfy { bytes[$0] == path[range.lowerBound + $0] }
        }
    }

    /// Whether this pattern comes first in the order of specificity: a literal, a parameter, the end, the rest.
    package func isMoreSpecific(than other: PathPattern) -> Bool {
        for index in 0..<max(segments.count, other.segments.count) {
            let (mine, theirs) = (rank(at: index), other.rank(at: index))
            if mine != theirs { return mine < theirs }
        }
        return false
    }

    private func rank(at index: Int) -> Int { index < segments.count ? segments[index].rank : Self.endRank }

    /// The rank of the end of a pattern: `/a` comes before `/a/*`, which matches it, too.
    private static let endRank = 2
}

extension PathPattern.Segment {
    fileprivate var rank: Int {
        switch self {
        case .literal: 0
        case .parameter: 1
        case .rest: 3
        }
    }
}
