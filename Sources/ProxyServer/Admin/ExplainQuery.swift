// The query of `GET /v1/explain`: a request as a client would send it.

import EventLoop
import HTTPWire

/// A request that is explained, and the service that it goes to.
package struct ExplainQuery: Sendable, Equatable {
    /// The URL: a path as in reverse mode, or an absolute URL of this daemon, or of an origin in forward mode.
    package var url: String
    /// Further fields of the request.
    package var fields: [Field]
    /// The service through which the URL of an origin is asked; `forward` or empty for forward mode, nil to let the
    /// routes decide.
    package var service: String?
    /// The method of the request.
    var method = "GET"

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String
    }

    package init(url: String, fields: [Field] = [], service: String? = nil) {
        self.service = service
        self.url = url
        self.fields = fields
    }

    /// Parses `url=…`, optionally `method=…` and `service=…`, and `field=Name: value` once for each field.
    /// - Throws: a 400 that names the mistake.
    package init(members: [(name: String, value: String)]) throws(Problem) {
        var url: String?
        var (service, method): (String?, String?)
        fields = []
        for (name, value) in members {
            switch name {
            case "url" where url == nil: url = value
            case "service" where service == nil: service = value
            case "method" where method == nil: method = value
            case "field": fields.append(try Self.field(value))
            case "as" where value == "text" || value == "json": break
            default:
                throw Self.bad(
                    "\(name) is not known, or given twice; there are url, method, field, service and as=text|json"
                )
            }
        }
        guard let url, !url.isEmpty else { throw Self.bad("give url=URL, as a client would send it") }
        self.url = url
        self.service = service
        self.method = method ?? self.method
    }

    /// Parses a field, `Name: value`.
    /// - Throws: a 400 if it is not a field.
    package static func field(_ text: String) throws(Problem) -> Field {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        // Bytes after a line end would be another field, or the end of the head.
        guard parts.count == 2, !parts[0].isEmpty, !text.utf8.contains(10), !text.utf8.contains(13) else {
            throw bad("'\(text)' is not a field; write 'Name: value'")
        }
        return Field(name: String(parts[0]), value: String(parts[1].drop { $0 == " " || $0 == "\t" }))
    }

    static func bad(_ detail: String) -> Problem { Problem(status: 400, title: "Bad query", detail: detail) }

    /// The bytes of the request head, as a client with a proxy setting sends it.
    /// - Parameter isOwn: returns whether an authority is this daemon's, so that the target is in origin form.
    /// - Throws: a 400 if the URL or the method is invalid.
    func bytes(host: String, isOwn: (Authority) -> Bool) throws(Problem) -> [UInt8] {
        let url = String(self.url.prefix { $0 != "#" })
        var target = url
        var host = host
        if !url.hasPrefix("/") {
            let parsed: RequestTarget
            do throws(WireError) {
                parsed = try RequestTarget.parse(url, method: .get)
            } catch {
                throw Self.bad("'\(url)' is not a URL: \(error.detail); write a path, or http://HOST/PATH")
            }
            guard case .absolute(let scheme, let authority, let path) = parsed.form else {
                throw Self.bad("'\(url)' is not a URL; write a path, or http://HOST/PATH")
            }
            host = authority.description
            if scheme == "http", isOwn(authority) { target = path }
        }
        // A space or a line end in the method would make another request.
        guard !method.isEmpty, method.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw Self.bad("'\(method)' is not a method; write GET, or leave it out")
        }
        var lines = ["\(method) \(target) HTTP/1.1"]
        if !fields.contains(where: { $0.name.lowercased() == "host" }) { lines.append("Host: \(host)") }
        lines += fields.map { "\($0.name): \($0.value)" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
