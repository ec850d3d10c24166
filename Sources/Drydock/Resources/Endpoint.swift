// Where a resource is: a URL, or a path below a base URL, with method, query, fields and body.

public import HTTPTypes

/// Where a resource is, and how it is asked for.
public struct Endpoint: Sendable {
    /// A whole URL with `http` or `https`, or a path that is appended to the base URL of whoever asks.
    public var location: String
    /// GET by default.
    public var method: HTTPRequest.Method
    /// Items that are added behind the query that ``location`` has, in this order.
    public var query: [QueryItem]
    /// They win over those of whoever asks.
    public var headerFields: HTTPFields
    /// None by default.
    public var body: RequestBody?

    /// One item of a query.
    public struct QueryItem: Sendable, Hashable {
        /// Before it is encoded.
        public var name: String
        /// Before it is encoded; nil is a name without `=`.
        public var value: String?

        /// An item with this name and value.
        public init(_ name: String, _ value: String?) {
            self.name = name
            self.value = value
        }
    }

    /// An endpoint with these parts.
    public init(
        _ location: String,
        method: HTTPRequest.Method = .get,
        query: [QueryItem] = [],
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) {
        self.location = location
        self.method = method
        self.query = query
        self.headerFields = headerFields
        self.body = body
    }
}
