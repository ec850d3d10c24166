// The request that is sent to the origin: for the whole representation, or for a part of it.

import HTTPWire

extension CacheRequest {
    /// The request to the origin for the whole representation; a POST where the request has content.
    /// - Parameter method: used where the request has no content.
    func fetchRequest(_ method: Method, _ fields: Fields) -> FetchRequest {
        var fetch = FetchRequest(
            method: content == nil ? method : .post,
            path: path,
            fields: fields,
            clientHost: request.fields.first(.host),
            framing: content.map { .length(UInt64($0.bytes.count)) } ?? .none,
            body: content.map { ContentSource($0.bytes) }
        )
        fetch.urgency = urgency
        return fetch
    }

    /// The request to the origin for a part.
    func partRequest(_ plan: RangeFetchPlan) -> FetchRequest {
        var fields = originFields
        plan.apply(to: &fields)
        var fetch = FetchRequest(method: .get, path: path, fields: fields, clientHost: request.fields.first(.host))
        fetch.urgency = urgency
        return fetch
    }
}
