// Requests from web pages. Any page in the user's browser can call localhost, so a service with credentials answers
// only the origins that it names.

package import HTTPWire

/// The web pages that may call a service, and their rights (CORS, Private Network Access).
package struct CrossOriginRules: Sendable, Hashable {
    /// The origins of these pages, as `scheme://host[:port]`, or `*`.
    package let origins: [String]
    /// The names of the response fields that these pages may read, in addition to those that every page may.
    package let exposed: [String]
    /// Whether browsers send cookies and credentials of the user, and show the answers to these pages.
    package let allowsCredentials: Bool
    /// Whether these pages may come from a public network if the service is in a private one.
    package let allowsPrivateNetwork: Bool

    package init(
        origins: [String] = [],
        exposed: [String] = [],
        allowsCredentials: Bool = false,
        allowsPrivateNetwork: Bool = false
    ) {
        self.origins = origins
        self.exposed = exposed
        self.allowsCredentials = allowsCredentials
        self.allowsPrivateNetwork = allowsPrivateNetwork
    }

    fileprivate func name(_ origin: String) -> Bool { origins.contains(origin) || origins.contains("*") }
}

/// The decision about a request by its Origin and Sec-Fetch-Site (CORS, Fetch Metadata).
package enum CrossOrigin {
    /// The request is answered; these fields are added to the answer.
    case pass(Fields)
    /// The request is a preflight; the answer has these fields.
    case preflight(Fields)

    package var fields: Fields {
        switch self {
        case .pass(let fields), .preflight(let fields): fields
        }
    }

    /// Decides about a request of a web page.
    /// - Throws: the refusal of a foreign page, if the service adds credentials.
    package static func decide(_ request: RequestHead, _ route: ServiceRoute) throws(RouteRefusal) -> CrossOrigin {
        var fields = Fields()
        // Vary is added to answers without Origin, too: a cache behind this one must not give them to a page.
        let rules = route.cors
        if !rules.origins.isEmpty { fields.append(.vary, "Origin") }
        guard let origin = request.fields.first(.origin) else {
            guard route.addsCredentials, !rules.origins.contains("*"), isForeignFetch(request.fields),
                !isNavigation(request)
            else { return .pass(fields) }
            throw .foreignPage(service: route.plan.name, origin: nil)
        }
        if rules.name(origin) {
            fields.append(allowOrigin, origin)
            if rules.allowsCredentials { fields.append(allowCredentials, "true") }
            guard request.method == .options, let method = request.fields.first(.accessControlRequestMethod) else {
                if !rules.exposed.isEmpty { fields.append(exposeHeaders, rules.exposed.joined(separator: ", ")) }
                return .pass(fields)
            }
            fields.append("Access-Control-Allow-Methods", method)
            if let wanted = request.fields.combined("Access-Control-Request-Headers") {
                fields.append("Access-Control-Allow-Headers", wanted)
            }
            if rules.allowsPrivateNetwork, request.fields.first("Access-Control-Request-Private-Network") == "true" {
                fields.append("Access-Control-Allow-Private-Network", "true")
            }
            fields.append("Access-Control-Max-Age", "600")
            return .preflight(fields)
        }
        guard route.addsCredentials, !isSameSite(origin, request) else { return .pass(fields) }
        throw .foreignPage(service: route.plan.name, origin: origin)
    }

    /// Adds the fields to an answer. Access-Control-Allow-Origin and its kind replace the origin's, which are for
    /// another web origin; a browser refuses an answer with two of them.
    package static func apply(_ added: Fields, to fields: inout Fields) {
        if added.isEmpty { return }
        if added.contains(allowOrigin) {
            for name in [allowOrigin, allowCredentials] { fields.remove(name) }
        }
        if added.contains(exposeHeaders) { fields.remove(exposeHeaders) }
        added.forEachLine { name, value, known in
            if known == .vary {
                if !varies(fields) { fields.appendMember(.vary, "Origin") }
            } else {
                fields.append(nameBytes: name, valueBytes: value)
            }
        }
    }

    private static let allowOrigin = "Access-Control-Allow-Origin"
    private static let allowCredentials = "Access-Control-Allow-Credentials"
    private static let exposeHeaders = "Access-Control-Expose-Headers"

    /// Whether Vary already names Origin, or everything.
    private static func varies(_ fields: Fields) -> Bool {
        let members = (fields.combined(.vary) ?? "").lowercased().split { ", \t".contains($0) }
        return members.contains("origin") || members.contains("*")
    }

    // MARK: - Requests without Origin: scripts, images, frames

    /// Whether a page of another web origin sends the request. Another port of the same host is another origin, which
    /// browsers call `same-site`.
    package static func isForeignFetch(_ fields: Fields) -> Bool {
        var isForeign = false
        fields.forEachValue(.secFetchSite) { if Self.isForeign(site: $0) { isForeign = true } }
        return isForeign
    }

    /// Whether a value of Sec-Fetch-Site names a foreign page. `none` is the user; an unknown value counts as foreign.
    package static func isForeign(site: UnsafeRawBufferPointer) -> Bool {
        !site.equalsIgnoringCase("same-origin") && !site.equalsIgnoringCase("none")
    }

    /// Whether a page is opened, such as by a link, and not a part of one; a frame is a part of the page around it.
    private static func isNavigation(_ request: RequestHead) -> Bool {
        guard request.method == .get || request.method == .head,
            request.fields.combined("Sec-Fetch-Mode") == "navigate"
        else { return false }
        let destination = request.fields.combined("Sec-Fetch-Dest")
        return destination == nil || destination == "document"
    }

    private static func isSameSite(_ origin: String, _ request: RequestHead) -> Bool {
        guard let host = request.fields.first(.host).flatMap({ Authority.parse($0) }) else { return false }
        return OriginRules.isSameSite(origin: origin, host: host)
    }
}
