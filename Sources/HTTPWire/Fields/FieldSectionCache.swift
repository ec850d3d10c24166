// Caches a parsed field section: most requests of a connection have the same fields.

import Glibc

/// The bytes of an accepted field section: the next section with the same bytes need not be parsed.
///
/// What a section means depends only on its bytes and on the limits, which a parser never changes; see
/// `RequestParser.remember(_:)` for which sections that is so.
struct FieldSectionCache: Sendable {
    /// Bytes of a section at most: a connection keeps them for as long as it is open.
    private static let limit = 1024

    /// The section, with the empty line at its end; empty if none is cached.
    private var bytes: [UInt8] = []
    /// Where in its buffer it began.
    private(set) var start = 0

    var count: Int { bytes.count }
    var isEmpty: Bool { bytes.isEmpty }

    /// Whether the section lies at `position` again, as a whole.
    func isRepeated(_ read: RawSpan, at position: Int) -> Bool {
        guard !isEmpty, bytes.count <= read.byteCount - position else { return false }
        return read.withUnsafeBytes { read in
            bytes.withUnsafeBytes { known in
                // As many bytes follow `position`, and what is not empty has a base.
                guard let place = read.baseAddress, let start = known.baseAddress else { return false }
                return memcmp(place + position, start, known.count) == 0
            }
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
