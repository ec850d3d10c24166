// Placeholders and fallbacks, what is expected of bodies, and what happens when clients leave.

/// A file that answers in place of what is not there.
package struct StandInConfiguration: Sendable, Hashable {
    /// Absolute; a regular file when the configuration was read.
    package var file: String
    /// Default: 200.
    package var status: Int
}

/// What answers while there is nothing yet.
package struct PlaceholderConfiguration: Sendable, Hashable {
    package var answer: StandInConfiguration
    /// Nanoseconds that a request waits before. Default: 300 ms.
    package var after: UInt64
}

/// What becomes of a fetch when everybody who waited for it has left.
package enum ClientAbortConfiguration: Sendable, Hashable {
    case finish
    case abort
    /// Where at least this share of the body has come, 0 to 1.
    case finishIf(Double)

    /// From the words of the file; nil where they are none.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        switch words.count {
        case 1 where words[0] == "finish": self = .finish
        case 1 where words[0] == "abort": self = .abort
        case 2 where words[0] == "finish-if":
            guard let share = try? Units.share(String(words[1])) else { return nil }
            self = .finishIf(share)
        default: return nil
        }
    }
}

/// What the bodies of a service or an endpoint must be to be stored.
package enum ExpectedContent: String, Sendable, CaseIterable {
    case any, json
    case jsonObject = "json-object"
    case jsonArray = "json-array"
    case plist, image
}
