// The documents of jobs: the request for a batch, and the state of a job.

package import DownloadCore

/// The document of `GET /v1/jobs/ID`. Sizes are bytes, times seconds since 1970. States and outcomes are texts, so that
/// unknown ones of a newer daemon can be shown, and do not make the document unreadable.
package struct AdminJob: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable { case size, prefetch, group }

    /// One item and its outcome; its fields and its body are left out, since they may be secret.
    package struct Item: Codable, Sendable, Equatable {
        package var url: String
        /// The method of the request; nil for GET.
        package var method: String?
        /// The state of the item: `queued`, `running`, `done`, `failed` or `cancelled`.
        package var state: String
        /// The result of looking up the item's size; nil if it was not looked up.
        package var check: String?
        /// The result of downloading the item, such as `downloaded`; nil until then.
        package var outcome: String?
        package var size: Int64?
        package var received: Int64
        package var status: Int?
        package var reason: String?
        /// The position of the item that it repeats, from 0.
        package var duplicateOf: Int?
        /// The path below `files/` of the disk tier to which the body is written; nil for none.
        package var file: String?
    }

    package struct Failure: Codable, Sendable, Equatable {
        package var url: String
        package var reason: String
    }

    package var id: String
    /// The raw value of a ``Kind``.
    package var kind: String
    /// The name of the job's schedule, or the name that the request gave it; nil for none.
    package var name: String?
    /// The state of the job: `queued`, `checking`, `checked`, `running`, `done`, `failed`, `stopped` or `cancelled`.
    package var state: String
    /// The number of items under way at a time; nil, like the next two members, from a daemon that leaves it out.
    package var concurrency: Int?
    /// The raw value of an ``AdminJobRequest/OnError``.
    package var onError: String?
    package var created: Int64?
    package var started: Int64?
    package var ended: Int64?
    /// The sums over all items.
    package var totals: BatchTotals
    /// The failure of the first item in the list that has failed; nil if none has.
    package var firstError: Failure?
    /// The items in the order of the request; nil if they were not asked for.
    package var items: [Item]?

    package init(id: String, kind: Kind, name: String? = nil, state: String, totals: BatchTotals) {
        self.id = id
        self.kind = kind.rawValue
        self.name = name
        self.state = state
        self.totals = totals
    }

    /// True if nothing more happens to the job by itself.
    package var isEnd: Bool { !["queued", "checking", "running"].contains(state) }
}

/// The document of `GET /v1/jobs`.
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
        /// No further item is begun, and those under way are cancelled.
        case cancelRest = "cancel-rest"
    }

    package var items: [AdminJobItem]?
    /// The job whose queued items are downloaded; for `POST /v1/prefetch`, in place of items.
    package var job: String?
    /// The name of the job for people; nil for none.
    package var name: String?
    /// The number of items under way at a time, from 1 to 1000; 10 by default.
    package var concurrency: Int?
    /// The consequence of a failed item; the others go on by default.
    package var onError: OnError?
    /// True if a size job is kept, so that it can be downloaded later; false by default.
    package var save: Bool?

    package init(items: [AdminJobItem]? = nil) { self.items = items }
}

/// One item of a list, or of a request.
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

    /// - Throws: `DecodingError`, also for an unknown key, which would be ignored silently otherwise.
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
