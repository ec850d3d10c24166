// What stands between an origin and the attempts of a request, as far as its plan looks into answers.

import DownloadCore
import HTTPCaching
import HTTPWire

extension RequestPlan {
    /// No answer passes as it is, so that no connection may be handed over.
    var judgesAnswers: Bool { mapping != nil || phases?.types != nil || recording != nil }

    /// The source with what the plan expects of its answers, and makes of them.
    /// - Parameters:
    ///   - service: its name, for messages.
    ///   - endpoint: its name; empty where there is none.
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
    /// Its answers are content of the origin: those to the others are about the server, a tunnel or the request itself.
    var hasJudgedAnswers: Bool { self != .options && self != .connect && self != .trace }
}
