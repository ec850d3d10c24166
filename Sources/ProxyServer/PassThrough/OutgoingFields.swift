// The fields of a request with the outgoing fields made from them, kept for the next request with the same fields.

import HTTPWire
import ServiceCore

/// The fields of a request, and what becomes of them by a plan. A connection keeps the last ones: clients mostly say
/// the same again, and then the parser gives the same fields. Nothing in them changes.
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
    /// The fields that are sent to the origin, without those that the source adds.
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
        self.plan === plan && version == request.version && said.sharesStorage(with: request.fields)
    }
}

@available(*, unavailable) extension OutgoingFields: Sendable {}
