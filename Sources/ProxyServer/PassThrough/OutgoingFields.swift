// The fields of a request and what becomes of them on their way out, kept for the next request that says the same.

import HTTPWire
import ServiceCore

/// The fields of a request, and what becomes of them by a plan. A connection keeps the last ones: clients mostly say the same again,
/// and then the parser gives the same fields. Nothing in them changes.
final class OutgoingFields {
    /// The client's, all of them.
    let said: Fields
    let version: HTTPVersion
    let plan: RoutePlan
    /// Whom Host names.
    let host: KnownHost
    let endpoint: EndpointRoute
    /// The client's, without those of its connection.
    let endToEnd: Fields
    /// As they go out, but for what the source adds.
    let fields: Fields

    init(
        _ request: RequestHead,
        _ host: KnownHost,
        _ plan: RoutePlan,
        _ endpoint: EndpointRoute,
        endToEnd: Fields,
        _ fields: Fields
    ) {
        said = request.fields
        version = request.version
        self.plan = plan
        self.host = host
        self.endpoint = endpoint
        self.endToEnd = endToEnd
        self.fields = fields
    }

    /// Whether a request says the same under a plan, as far as it is a GET or HEAD without a body.
    func isOf(_ request: RequestHead, _ plan: RoutePlan) -> Bool {
        self.plan === plan && version == request.version && said.isIdentical(to: request.fields)
    }
}

@available(*, unavailable) extension OutgoingFields: Sendable {}
