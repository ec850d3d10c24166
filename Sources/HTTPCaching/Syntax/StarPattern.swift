// Patterns in which a star stands for anything, as configuration, purges and listings have them.

/// Patterns with `*`, on bytes.
package enum StarPattern {
    /// `*` stands for any bytes, also none; every other byte for itself. Time grows with the
    /// product of the lengths at worst.
    package static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        var (place, position) = (pattern.startIndex, text.startIndex)
        // Where the last star stands, and where the text behind what it stands for begins.
        var star: (place: Int, position: Int)?
        while position < text.endIndex {
            if place < pattern.endIndex, pattern[place] == UInt8(ascii: "*") {
                star = (place, position)
                place += 1
            } else if place < pattern.endIndex, pattern[place] == text[position] {
                place += 1
                position += 1
            } else if let last = star {
                star = (last.place, last.position + 1)
                (place, position) = (last.place + 1, last.position + 1)
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
