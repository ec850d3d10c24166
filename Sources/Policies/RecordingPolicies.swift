// The sources of a route's answers, the parts of them that are recorded, and the use of a seed folder.

/// The source of a route's answers (`source`).
package enum AnswerSource: String, Sendable, CaseIterable {
    /// Answers come from the origin, through the store.
    case live
    /// Answers come from the origin; each complete answer is written into a recording.
    case record
    /// Answers come from recordings; if there is none, from the origin, and are written into one.
    case replayOrRecord = "replay-or-record"
    /// Answers come from recordings. If there is none, no origin is asked.
    case replay
}

/// A source of answers (`from`); the cases are in the order in which sources are asked by default.
package enum OrderedSource: String, Sendable, CaseIterable {
    /// A pinned seed.
    case seed
    /// A stored response that is fresh.
    case fresh
    /// The origin.
    case live
    /// A stored response that is stale, as far as it may be used.
    case stale
    case recording
    case demo
    /// The file of `cache.fallback`.
    case fallback

    /// The sources that the cache asks, in the order in which it does.
    package static let ofCache: [OrderedSource] = [.seed, .fresh, .live, .stale]
}

/// The answer if an origin that is to be recorded fails (`recordings.on_failure`).
package enum RecordingFallback: String, Sendable, CaseIterable {
    /// The answer is the failure.
    case error
    /// The answer is the recording of the same request, if there is one.
    case replay
}

/// The rules that distinguish the recordings of a route, and the parts of an answer that are not written.
package struct RecordingRules: Sendable, Hashable {
    /// The names of request fields whose values distinguish recordings, in lower case and sorted.
    package var fields: [String]
    /// Whether the content of a request distinguishes recordings.
    package var matchesBody: Bool
    /// Whether a request with credentials has another recording than one without them.
    package var matchesCredentials = true
    /// Whether the fields that an answer names in Vary distinguish its recordings.
    package var matchesVary = true
    /// The names of query items that are ignored; one may end with `*`.
    package var ignoredQuery: [String]
    /// The names of fields of answers whose values are not written, in lower case, besides those with secret names.
    package var redactedFields: [String]
    /// The names of query items whose values are not written, besides those with secret names.
    package var redactedQuery: [String]
    /// The members of JSON documents whose values are not written, each by the names on its path from the root.
    package var redactedMembers: [[String]]
    /// The names whose values are written, although they look like secrets.
    package var shown: [String] = []
    /// The most bytes of a recording's content.
    package var maximumSize: Int
    package var onFailure: RecordingFallback

    package init(
        fields: [String] = [],
        matchesBody: Bool = true,
        ignoredQuery: [String] = [],
        redactedFields: [String] = [],
        redactedQuery: [String] = [],
        redactedMembers: [[String]] = [],
        maximumSize: Int = 8 << 20,
        onFailure: RecordingFallback = .error
    ) {
        self.fields = fields.map { $0.lowercased() }.sorted()
        self.matchesBody = matchesBody
        self.ignoredQuery = ignoredQuery
        self.redactedFields = redactedFields.map { $0.lowercased() }
        self.redactedQuery = redactedQuery
        self.redactedMembers = redactedMembers
        self.maximumSize = maximumSize
        self.onFailure = onFailure
    }
}

// MARK: - Seed folders

/// The names of the files of a seed folder; the raw value is the word in files.
public enum SeedLayout: String, Sendable, CaseIterable {
    /// `HOST[:PORT]/PATH[?QUERY]`, as `drydock seed export` writes it, with `….head.json` beside it for the properties
    /// that the file itself does not have.
    case url
    /// `MD5(URL up to the last slash)_LAST`, with the dates in property lists: the folders of the old download manager.
    case hashed = "docker"
}

/// The use of a seed folder; the raw value is the word in files.
public enum SeedUse: String, Sendable, CaseIterable {
    /// The seeds are used first, before memory and disk; they are never checked and never too old.
    case pinned
    /// Seeds of which nothing is stored are copied into the store as stale, so that the first use checks them.
    case imported = "import"
}
