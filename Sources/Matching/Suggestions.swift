// Similar texts: the nearest known word for a misspelt one, and the share by which a text differs from another.

package enum Suggestions {
    /// The known word with the fewest changes, or nil if none is near.
    package static func nearest(to word: String, among known: [String]) -> String? {
        let word = word.lowercased()
        let ranked = known.map { ($0, distance(Array(word.utf8), Array($0.lowercased().utf8))) }
        guard let best = ranked.min(by: { $0.1 < $1.1 }) else { return nil }
        return best.1 <= max(1, max(word.utf8.count, best.0.utf8.count) / 3 + 1) ? best.0 : nil
    }

    /// The number of insertions, deletions, replacements and swaps of neighbours.
    package static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        // A word may be a megabyte of a file or request, for which a quadratic search would take too long.
        if a.count > 64 || b.count > 64 { return a == b ? 0 : max(a.count, b.count) }
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in 0..<a.count {
            var row = [i + 1]
            for j in 0..<b.count {
                var best = min(last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            before = last
            last = row
        }
        return last[b.count]
    }
}

// MARK: - Distance

/// The share by which a text differs from another one, cheap enough to be computed for thousands of rules.
package enum TextDistance {
    /// The share of the longer text between the common beginning and the common end, in hundredths: 0 for equal texts,
    /// 100 for texts that have nothing in common at either end. Allocates nothing.
    package static func between(
        _ one: some BidirectionalCollection<UInt8>,
        _ other: some BidirectionalCollection<UInt8>
    )
        -> Int
    {
        let (mine, theirs) = (one.count, other.count)
        let (shorter, longer) = (min(mine, theirs), max(mine, theirs))
        guard longer > 0 else { return 0 }
        let begin = zip(one, other).prefix { $0 == $1 }.count
        let end = zip(one.reversed(), other.reversed()).prefix(shorter - begin).prefix { $0 == $1 }.count
        return (longer - begin - end) * 100 / longer
    }
}
