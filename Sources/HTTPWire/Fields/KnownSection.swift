// A field section that has been looked at: clients say the same fields in most requests of a connection.

internal import Glibc

/// The bytes of an accepted field section, so that the next one that has just these needs no look at its lines.
///
/// What a section says depends on its bytes alone, and on the limits, which a parser keeps; see `RequestParser.remember(_:)`
/// for which sections that is so.
struct KnownSection: Sendable {
    /// Bytes of a section at most: a connection keeps them for as long as it is open.
    private static let limit = 1024

    /// With the empty line at its end; empty where none is known.
    private var bytes: [UInt8] = []
    /// Where in its buffer it began.
    private(set) var start = 0

    var count: Int { bytes.count }
    var isEmpty: Bool { bytes.isEmpty }

    /// Whether the section lies at `position` again, as a whole before `end`.
    func isRepeated(_ base: UnsafeRawPointer, at position: Int, before end: Int) -> Bool {
        guard !isEmpty, bytes.count <= end - position else { return false }
        return bytes.withUnsafeBytes { known in
            // As many bytes are before `end`, and an array that is not empty has a base.
            known.baseAddress.map { memcmp(base + position, $0, known.count) == 0 } ?? false
        }
    }

    /// Keeps a copy of a section that is not too long.
    mutating func note(_ section: UnsafeRawBufferPointer, from start: Int) {
        forget()
        guard section.count <= Self.limit else { return }
        bytes.append(contentsOf: section)
        self.start = start
    }

    /// The same bytes lie elsewhere now.
    mutating func move(to start: Int) { self.start = start }

    /// Keeps the capacity.
    mutating func forget() { bytes.removeAll(keepingCapacity: true) }
}
