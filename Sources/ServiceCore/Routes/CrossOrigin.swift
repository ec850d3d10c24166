// Requests from web pages: any page in the user's browser can call localhost, so a service with credentials answers
// only the origins it names.

package import HTTPWire

/// Which web pages may call a service, and what they may do (CORS, Private Network Access).
package struct CrossOriginRules: Sendable, Hashable {
    /// As `scheme://host[:port]`, or `*`.
    package let origins: [String]
    /// Names of the response fields that pages may read, besides those that every page may.
    package let exposed: [String]
    /// Browsers send cookies and credentials of the user along, and show pages the answers.
    package let allowsCredentials: Bool
    /// Pages of public networks may call a service in a private one.
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

/// What Origin and Sec-Fetch-Site of a request mean for a service (http rule 42, CORS, Fetch Metadata).
package enum CrossOrigin {
    /// Go on; these fields belong to the answer.
    case pass(Fields)
    /// A preflight, answered with these fields.
    case preflight(Fields)

    package var fields: Fields {
        switch self {
        case .pass(let fields), .preflight(let fields): fields
        }
    }

    /// - Throws: the refusal of a foreign page, where the service adds credentials.
    package static func decide(_ request: RequestHead, _ route: ServiceRoute) throws(RouteRefusal) -> CrossOrigin {
        var fields = Fields()
        // Also without Origin: a cache behind must not give such an answer to a page.
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

    /// Adds the fields to an answer. Access-Control-Allow-Origin replaces the origin's: a browser refuses an answer
    /// with two. So do the others, which the origin gave to another web origin.
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

    /// Whether Vary names Origin, or everything, already.
    private static func varies(_ fields: Fields) -> Bool {
        let members = (fields.combined(.vary) ?? "").lowercased().split { ", \t".contains($0) }
        return members.contains("origin") || members.contains("*")
    }

    // MARK: - Requests without Origin: scripts, images, frames

    /// Whether a page of another web origin asks. Another port of the same host is another origin, which
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

    /// Whether a page, rather than a part of one, is opened: a link that is followed. A frame is a
    /// part of the page around it.
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
