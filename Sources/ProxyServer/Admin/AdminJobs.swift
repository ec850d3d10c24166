// Batches in the admin API: what they are asked by, the documents that tell how far they are, and the routes.

package import DownloadCore
import HTTPWire

/// What the admin API asks of whoever runs batches.
package protocol JobActions: Sendable {
    /// Begins what the body asks for: a new batch, or the download of what a job has queued.
    /// - Parameter request: its body is an ``AdminJobRequest``, which may be long.
    /// - Throws: what is wrong with the body, that there are too many jobs, or that the daemon is ending.
    func submit(_ request: AdminRequest, _ kind: AdminJob.Kind) async throws(Problem) -> AdminJob
    /// Downloads what has failed or was cancelled.
    func retry(job id: String) async throws(Problem) -> AdminJob
    func cancel(job id: String) async throws(Problem) -> AdminJob
    /// Forgets a job that is not under way.
    func remove(job id: String) async throws(Problem) -> AdminJob
    func job(_ id: String, withItems: Bool) async throws(Problem) -> AdminJob
    /// The oldest first, without their items.
    func jobs() async -> AdminJobs
}

/// The body of `POST /v1/size` and `POST /v1/prefetch`.
package struct AdminJobRequest: Codable, Sendable, Equatable {
    package var items: [AdminJobItem]?
    /// For prefetch, in place of items: a job whose queued items are downloaded.
    package var job: String?
    /// Of the job, for people; nil has none.
    package var name: String?
    /// Items under way at a time, 1 to 1000; 10 by default.
    package var concurrency: Int?
    /// `continue` (the default), `stop` or `cancel-rest`.
    package var onError: BatchFailurePolicy?
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

    package init(url: String) { self.url = url }

    package var item: BatchItem {
        BatchItem(
            url: url,
            method: method ?? "GET",
            fields: (headers ?? [:]).sorted { $0.key < $1.key }.map { BatchItem.Field($0.key, $0.value) },
            body: body.map { Array($0.utf8) },
            force: force ?? false,
            seed: seed ?? true,
            store: store ?? true
        )
    }
}

extension AdminJobItem: Codable {
    private enum Key: String, CodingKey, CaseIterable { case url, method, headers, body, force, seed, store }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// - Throws: `DecodingError`; also for a key that nobody knows, which would be ignored in silence otherwise.
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
    }
}

/// `GET /v1/jobs/ID`. Sizes are bytes, times seconds since 1970.
package struct AdminJob: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable { case size, prefetch }

    /// One item and what has become of it; its fields and its body are not told, since they may be secret.
    package struct Item: Codable, Sendable, Equatable {
        package var url: String
        /// Nil is GET.
        package var method: String?
        package var state: BatchEntryState
        package var check: BatchCheck?
        package var outcome: BatchOutcome?
        package var size: Int64?
        package var received: Int64
        package var status: Int?
        package var reason: String?
        /// The position of the item that it repeats, from 0.
        package var duplicateOf: Int?

        package init(_ entry: BatchEntry) {
            url = entry.item.url
            method = entry.item.method == "GET" ? nil : entry.item.method
            state = entry.state
            check = entry.check
            outcome = entry.outcome
            size = entry.size
            received = entry.received
            status = entry.status
            reason = entry.reason
            duplicateOf = entry.duplicateOf
        }
    }

    package struct Failure: Codable, Sendable, Equatable {
        package var url: String
        package var reason: String

        package init(url: String, reason: String) {
            self.url = url
            self.reason = reason
        }
    }

    package var id: String
    package var kind: Kind
    /// Of its schedule, or as it was given.
    package var name: String?
    package var state: BatchState
    package var concurrency: Int
    package var onError: BatchFailurePolicy
    package var created: Int64
    package var started: Int64?
    package var ended: Int64?
    package var totals: BatchTotals
    /// Of the first item in the list that has failed.
    package var firstError: Failure?
    /// In the order given; nil where they were not asked for.
    package var items: [Item]?

    package init(
        id: String,
        kind: Kind,
        name: String?,
        state: BatchState,
        options: BatchOptions,
        created: Int64,
        totals: BatchTotals
    ) {
        self.id = id
        self.kind = kind
        self.name = name
        self.state = state
        concurrency = options.concurrency
        onError = options.onError
        self.created = created
        self.totals = totals
    }
}

/// `GET /v1/jobs`.
package struct AdminJobs: Codable, Sendable, Equatable {
    package var jobs: [AdminJob]

    package init(jobs: [AdminJob]) { self.jobs = jobs }
}

extension AdminRoute {
    /// Bytes of a list of items at most.
    private static let listLimit = 64 << 20

    package static func jobs(_ actions: any JobActions) -> [AdminRoute] {
        [
            AdminRoute(.post, "/v1/size", bodyLimit: listLimit) { request async throws(Problem) in
                try .json(await actions.submit(request, .size), status: 202)
            },
            AdminRoute(.post, "/v1/prefetch", bodyLimit: listLimit) { request async throws(Problem) in
                try .json(await actions.submit(request, .prefetch), status: 202)
            },
            AdminRoute(.get, "/v1/jobs") { _ async throws(Problem) in try .json(await actions.jobs()) },
            AdminRoute(.get, "/v1/jobs/:id") { request async throws(Problem) in
                let query = request.query
                for (name, value) in query where name != "items" || value != "true" && value != "false" {
                    throw .badQuery("\(name)=\(value) is not known; there is items=true|false")
                }
                return try .json(await actions.job(request.places[0], withItems: query["items"] != "false"))
            },
            AdminRoute(.post, "/v1/jobs/:id/cancel") { request async throws(Problem) in
                try .json(await actions.cancel(job: request.places[0]))
            },
            AdminRoute(.post, "/v1/jobs/:id/retry") { request async throws(Problem) in
                try .json(await actions.retry(job: request.places[0]), status: 202)
            },
            AdminRoute(.delete, "/v1/jobs/:id") { request async throws(Problem) in
                try .json(await actions.remove(job: request.places[0]))
            },
        ]
    }
}
