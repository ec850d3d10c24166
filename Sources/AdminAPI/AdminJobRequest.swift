// The document that orders a batch.

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
