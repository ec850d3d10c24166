// The route of a call of a group: its service is named, and the rest is as for an item of a batch.

import DownloadCore
import ServiceCore

extension UnsentRequests {
    /// The request as a client would send it to its service.
    /// - Throws: that the configuration has no such service any more.
    func item(of request: GroupRequest) throws(BatchRefusal) -> BatchItem {
        guard let route = plan.service(named: request.service) else {
            throw BatchRefusal("there is no service '\(request.service)' any more; run the group again")
        }
        var fields = request.fields.map { BatchItem.Field($0.name, $0.value) }
        if let host = route.host { fields.append(BatchItem.Field("Host", host)) }
        let prefix = String(decoding: route.prefix, as: UTF8.self)
        return BatchItem(url: prefix + request.target, method: request.method, fields: fields, body: request.body)
    }
}
