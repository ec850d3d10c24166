// What goes to the origin for a question: the whole, or a part of it.

internal import HTTPWire

extension CacheAsk {
    /// What goes to the origin where the whole is asked for; a POST where the question is one.
    /// - Parameter method: of a question without content.
    func fetchRequest(_ method: Method, _ fields: Fields) -> FetchRequest {
        FetchRequest(
            method: content == nil ? method : .post,
            path: path,
            fields: fields,
            clientHost: request.fields.first(.host),
            framing: content.map { .length(UInt64($0.bytes.count)) } ?? .none,
            body: content.map { ContentSource($0.bytes) }
        )
    }

    /// What goes to the origin for a part.
    func partRequest(_ plan: PartPlan) -> FetchRequest {
        var fields = originFields
        plan.apply(to: &fields)
        return FetchRequest(method: .get, path: path, fields: fields, clientHost: request.fields.first(.host))
    }
}
