// The query of `GET /v1/explain`, which the keeping of recordings takes, too.

import ProxyServer

extension RequestQuestion {
    /// Parses `url=…`, optionally `method=…`, `service=…` and `proxy=true`, and `field=Name: value` once for each field.
    /// - Throws: a 400 that names the mistake.
    init(members: [(name: String, value: String)]) throws(Problem) {
        var url: String?
        var (service, method): (String?, String?)
        var isProxied: Bool?
        var fields: [Field] = []
        for (name, value) in members {
            switch name {
            case "url" where url == nil: url = value
            case "service" where service == nil: service = value
            case "method" where method == nil: method = value
            case "proxy" where isProxied == nil && (value == "true" || value == "false"): isProxied = value == "true"
            case "field": fields.append(try Self.field(value))
            case "as" where value == "text" || value == "json": break
            default:
                throw Problem.badQuery(
                    "\(name) is not known, or given twice; there are url, method, field, service, proxy=true and as=text|json"
                )
            }
        }
        guard let url, !url.isEmpty else { throw Problem.badQuery("give url=URL, as a client would send it") }
        self.init(url: url, fields: fields, service: service)
        if let method { self.method = method }
        self.isProxied = isProxied ?? false
    }

    /// Parses a field, `Name: value`.
    /// - Throws: a 400 if it is not a field.
    static func field(_ text: String) throws(Problem) -> Field {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        // Bytes after a line end would be another field, or the end of the head.
        guard parts.count == 2, !parts[0].isEmpty, !text.utf8.contains(10), !text.utf8.contains(13) else {
            throw Problem.badQuery("'\(text)' is not a field; write 'Name: value'")
        }
        return Field(name: String(parts[0]), value: String(parts[1].drop { $0 == " " || $0 == "\t" }))
    }
}
