// How much of a text differs from another one, cheaply enough to be asked of thousands of rules.

package enum TextDistance {
    /// The share of the longer text that lies between what both begin and what both end with, in hundredths: 0 for equal
    /// texts, 100 for texts that have nothing in common at either end. No allocation.
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
