// Where the answers of a route come from, what of them is written into recordings, and what a seed folder is used for.

/// Where the answers of a route come from (`source`).
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

/// A place that answers may come from (`from`), in the order in which places are asked where nothing else is said.
package enum AnswerRung: String, Sendable, CaseIterable {
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
    package static let ofCache: [AnswerRung] = [.seed, .fresh, .live, .stale]
}

/// What answers where an origin that is to be recorded fails (`recordings.on_failure`).
package enum RecordingFallback: String, Sendable, CaseIterable {
    /// The failure, as of any origin.
    case error
    /// The recording of the same request, if there is one.
    case replay
}

/// What tells recordings of one route apart, and what of an answer is not written.
package struct RecordingRules: Sendable, Hashable {
    /// Names of request fields whose values tell recordings apart, in lower case and sorted.
    package var fields: [String]
    /// Whether the content of a request tells recordings apart.
    package var matchesBody: Bool
    /// Whether a request with credentials has another recording than one without them.
    package var matchesCredentials = true
    /// Whether the fields that an answer names in Vary tell its recordings apart.
    package var matchesVary = true
    /// Names of query items that make no difference; one may end with `*`.
    package var ignoredQuery: [String]
    /// Names of fields of answers whose values are not written, in lower case, besides those that are secret by name.
    package var redactedFields: [String]
    /// Names of query items whose values are not written, besides those that are secret by name.
    package var redactedQuery: [String]
    /// Members of JSON documents, by their names from the root, whose values are not written.
    package var redactedMembers: [[String]]
    /// Names whose values are written, although they look like secrets.
    package var shown: [String] = []
    /// Bytes of content that a recording has at most.
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

/// How the files of a seed folder are named.
package enum SeedLayout: String, Sendable, CaseIterable {
    /// `HOST[:PORT]/PATH[?QUERY]`, beside it `….head.json` with what the file itself cannot say.
    case url
    /// `MD5(URL up to the last slash)_LAST`, with the dates in property lists: the folders of the old download manager.
    case docker
}

/// What a seed folder is used for.
package enum SeedMode: String, Sendable, CaseIterable {
    /// Looked at first, before memory and disk; its answers are never checked and never too old.
    case pinned
    /// Seeds that are not stored are copied into the store as stale, so that the first use validates them.
    case `import`
}
