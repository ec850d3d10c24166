// The documents of jobs: what a batch is asked for, and how a job is told.

/// `GET /v1/jobs/ID`. Sizes are bytes, times seconds since 1970. Words of states and outcomes are texts, so that one of
/// a newer daemon is shown, and does not keep the rest from being read.
package struct AdminJob: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable { case size, prefetch, group }

    /// One item and what has become of it; its fields and its body are not told, since they may be secret.
    package struct Item: Codable, Sendable, Equatable {
        package var url: String
        /// Nil is GET.
        package var method: String?
        /// `queued`, `running`, `done`, `failed` or `cancelled`.
        package var state: String
        /// The result of asking for its size; nil if it was not asked for.
        package var check: String?
        /// What downloading it came to, such as `downloaded`; nil until it has.
        package var outcome: String?
        package var size: Int64?
        package var received: Int64
        package var status: Int?
        package var reason: String?
        /// The position of the item that it repeats, from 0.
        package var duplicateOf: Int?
        /// Where its body is written, below `files/` of the disk tier; nil: nowhere.
        package var file: String?
    }

    package struct Failure: Codable, Sendable, Equatable {
        package var url: String
        package var reason: String
    }

    /// The sums over all items.
    package struct Totals: Codable, Sendable, Equatable {
        package var items = 0
        package var queued = 0
        package var running = 0
        package var done = 0
        package var failed = 0
        package var cancelled = 0
        /// Somebody has looked for their size.
        package var checked = 0
        /// Of those done: repeat an earlier item.
        package var duplicates = 0
        /// Of those done: nothing had to be downloaded.
        package var valid = 0
        /// Of those done: came, and may not be stored.
        package var notStored = 0
        /// Items, queued or running, whose size is not known.
        package var unknownSize = 0
        /// The known sizes of what is to be downloaded, or has been.
        package var bytes: Int64 = 0
        /// Bytes that have come for this job, and for no other.
        package var received: Int64 = 0
        /// Of `bytes`, what has not come yet.
        package var remaining: Int64 = 0
    }

    package var id: String
    /// The raw value of a ``Kind``.
    package var kind: String
    /// Of its schedule, or as it was given.
    package var name: String?
    /// `queued`, `checking`, `checked`, `running`, `done`, `failed`, `stopped` or `cancelled`.
    package var state: String
    /// Items under way at a time; nil, like the next two, from a daemon that leaves it out.
    package var concurrency: Int?
    /// The raw value of an ``AdminJobRequest/OnError``.
    package var onError: String?
    package var created: Int64?
    package var started: Int64?
    package var ended: Int64?
    package var totals: Totals
    /// Of the first item in the list that has failed.
    package var firstError: Failure?
    /// In the order given; nil where they were not asked for.
    package var items: [Item]?

    package init(id: String, kind: Kind, name: String? = nil, state: String, totals: Totals) {
        self.id = id
        self.kind = kind.rawValue
        self.name = name
        self.state = state
        self.totals = totals
    }

    /// Nothing more happens by itself.
    package var isEnd: Bool { !["queued", "checking", "running"].contains(state) }
}

/// `GET /v1/jobs`.
package struct AdminJobs: Codable, Sendable, Equatable {
    package var jobs: [AdminJob]
}

/// The body of `POST /v1/size` and `POST /v1/prefetch`.
package struct AdminJobRequest: Codable, Sendable, Equatable {
    /// The consequence of a failed item for the others.
    package enum OnError: String, Codable, Sendable, CaseIterable {
        case `continue`
        /// No further item is begun.
        case stop
        /// Those under way are cancelled, too.
        case cancelRest = "cancel-rest"
    }

    package var items: [AdminJobItem]?
    /// For prefetch, in place of items: a job whose queued items are downloaded.
    package var job: String?
    /// Of the job, for people; nil has none.
    package var name: String?
    /// Items under way at a time, 1 to 1000; 10 by default.
    package var concurrency: Int?
    /// They continue by default.
    package var onError: OnError?
    /// A size job stays, to be downloaded later; false by default.
    package var save: Bool?

    package init(items: [AdminJobItem]? = nil) { self.items = items }
}

/// One item as a list names it, or a line of JSON.
package struct AdminJobItem: Sendable, Equatable {
    package var url: String
    package var method: String?
    package var headers: [String: String]?
    package var body: String?
    package var force: Bool?
    package var seed: Bool?
    package var store: Bool?
    package var file: String?

    package init(url: String) { self.url = url }
}

extension AdminJobItem: Codable {
    private enum Key: String, CodingKey, CaseIterable { case url, method, headers, body, force, seed, store, file }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// - Throws: `DecodingError`; also for an unknown key, which would be ignored in silence otherwise.
    package init(from decoder: any Decoder) throws {
        let all = try decoder.container(keyedBy: AnyKey.self)
        for key in all.allKeys where Key(stringValue: key.stringValue) == nil {
            let known = Key.allCases.map(\.rawValue).joined(separator: ", ")
            let context = DecodingError.Context(
                codingPath: decoder.codingPath,
                debugDescription: "'\(key.stringValue)' is not known; there are \(known)"
            )
            throw DecodingError.dataCorrupted(context)
        }
        let values = try decoder.container(keyedBy: Key.self)
        url = try values.decode(String.self, forKey: .url)
        method = try values.decodeIfPresent(String.self, forKey: .method)
        headers = try values.decodeIfPresent([String: String].self, forKey: .headers)
        body = try values.decodeIfPresent(String.self, forKey: .body)
        force = try values.decodeIfPresent(Bool.self, forKey: .force)
        seed = try values.decodeIfPresent(Bool.self, forKey: .seed)
        store = try values.decodeIfPresent(Bool.self, forKey: .store)
        file = try values.decodeIfPresent(String.self, forKey: .file)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(url, forKey: .url)
        try values.encodeIfPresent(method, forKey: .method)
        try values.encodeIfPresent(headers, forKey: .headers)
        try values.encodeIfPresent(body, forKey: .body)
        try values.encodeIfPresent(force, forKey: .force)
        try values.encodeIfPresent(seed, forKey: .seed)
        try values.encodeIfPresent(store, forKey: .store)
        try values.encodeIfPresent(file, forKey: .file)
    }
}
