// What whoever asks adds to the requests of resources.

public import HTTPTypes

/// Fields and query items that are added to requests that do not bring them themselves.
public struct RequestDefaults: Sendable {
    /// Of a request without a field of the same name, in any case.
    public var headerFields: HTTPFields
    /// Of a request without an item of the same name in its query.
    public var query: Parameters

    /// These.
    public init(headerFields: HTTPFields = HTTPFields(), query: Parameters = [:]) {
        self.headerFields = headerFields
        self.query = query
    }

    /// These with others, which win over those of the same name.
    func merging(_ others: RequestDefaults) -> RequestDefaults {
        var fields = others.headerFields
        for field in headerFields where others.headerFields[field.name] == nil { fields.append(field) }
        return RequestDefaults(headerFields: fields, query: query.merging(others.query))
    }
}
