// The checks and the mapping of answers that a plan puts between an origin and the attempts of a request.

import DownloadCore
import HTTPCaching
import HTTPWire

extension RequestPlan {
    /// True if answers are checked, mapped or recorded: no connection may be handed over unread then.
    var judgesAnswers: Bool { mapping != nil || phases?.types != nil || recording != nil }

    /// Wraps a source with the checks and the mapping of the plan.
    /// - Parameters:
    ///   - service: the name of the service, for messages.
    ///   - endpoint: the name of the endpoint; empty for none.
    func judging(_ source: any FetchSource, service: String, endpoint: String) -> any FetchSource {
        var source = source
        if let types = phases?.types {
            let owner = (endpoint.isEmpty ? "" : "endpoint '\(endpoint)' of ") + "service '\(service)'"
            source = ExpectedTypeSource(source, types, policy, owner: owner)
        }
        if let mapping {
            source = MappingSource(source, mapping, isStored: storesAnything, isSuccess: policy.isSuccess)
        }
        return source
    }
}

extension Method {
    /// True if answers to the method are content of the origin; those to the others are about the server, a tunnel or
    /// the request itself.
    var hasJudgedAnswers: Bool { self != .options && self != .connect && self != .trace }
}
