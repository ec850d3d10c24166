// The path of an endpoint, `/users/:id` or `/files/*`, matched against the bytes of a request
// target without allocation.

/// A path pattern. A parameter matches one segment that is not empty; the rest matches whatever
/// follows, slashes included.
package struct PathPattern: Sendable, Equatable {
    package enum Segment: Sendable, Equatable {
        /// These bytes exactly.
        case literal([UInt8])
        /// One segment, not empty.
        case parameter(String)
        /// All that follows, possibly nothing; only at the end.
        case rest
    }

    package let segments: [Segment]

    package init(segments: [Segment]) { self.segments = segments }

    /// Whether `target` matches; the query, from the first `?` on, does not count.
    package func matches(_ target: UnsafeRawBufferPointer) -> Bool {
        matches(path: target, end: target.firstIndex(of: UInt8(ascii: "?")) ?? target.count)
    }

    /// Whether a path matches that has no query; a `?` in it was decoded, and is a byte like any other.
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

    /// Orders patterns so that the more specific comes first: a literal before a parameter
    /// before the end before the rest.
    package func isMoreSpecific(than other: PathPattern) -> Bool {
        for index in 0..<max(segments.count, other.segments.count) {
            let (mine, theirs) = (rank(at: index), other.rank(at: index))
            if mine != theirs { return mine < theirs }
        }
        return false
    }

    private func rank(at index: Int) -> Int { index < segments.count ? segments[index].rank : Self.endRank }

    /// `/a` is found before `/a/*`, which matches it, too.
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
