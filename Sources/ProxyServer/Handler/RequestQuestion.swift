// A request that no client has sent, and the bytes in which a client would send it.

import HTTPWire

/// A request that no client has sent, and the service that it goes to: one that is explained, kept as a recording, or an
/// item of a batch.
package struct RequestQuestion: Sendable, Equatable {
    /// The URL: a path as in reverse mode, or an absolute URL of this daemon, or of an origin in forward mode.
    package var url: String
    /// Further fields of the request.
    package var fields: [Field]
    /// The service through which the URL of an origin is asked; `forward` or empty for forward mode, nil to let the
    /// routes decide.
    package var service: String?
    /// The method of the request.
    package var method = "GET"
    /// Whether the request is one to the proxy: its target is the URL, be it the daemon's own or not.
    package var isProxied = false

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(url: String, fields: [Field] = [], service: String? = nil) {
        self.service = service
        self.url = url
        self.fields = fields
    }

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
                throw Problem.badQuery("'\(url)' is not a URL: \(error.detail); write a path, or http://HOST/PATH")
            }
            guard case .absolute(let scheme, let authority, let path) = parsed.form else {
                throw Problem.badQuery("'\(url)' is not a URL; write a path, or http://HOST/PATH")
            }
            host = authority.description
            if scheme == "http", !isProxied, isOwn(authority) { target = path }
        } else if isProxied {
            throw Problem.badQuery("a request to the proxy has a whole URL, and not '\(url)'; write http://HOST/PATH")
        }
        // A space or a line end in the method would make another request.
        guard !method.isEmpty, method.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw Problem.badQuery("'\(method)' is not a method; write GET, or leave it out")
        }
        var lines = ["\(method) \(target) HTTP/1.1"]
        if !fields.contains(where: { $0.name.lowercased() == "host" }) { lines.append("Host: \(host)") }
        lines += fields.map { "\($0.name): \($0.value)" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
