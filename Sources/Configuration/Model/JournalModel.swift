// The journal of requests.

/// What the daemon remembers of requests, for 'drydock journal' and 'drydock verify'.
package struct JournalConfiguration: Sendable, Equatable {
    /// Bytes of all entries; nil: no journal. Default: nil.
    package var size: Int?
    /// Bytes of each request's body, at most 64 KiB; nil: none. Default: 4 KiB.
    package var bodies: Int?
    /// The names of fields whose values are hidden.
    package var redact: [String]

    /// Bytes of one body at most.
    static let longestBody = 64 << 10
}
