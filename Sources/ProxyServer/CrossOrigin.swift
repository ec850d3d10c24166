// Requests from web pages: any page in the user's browser can call localhost, so a service with credentials answers only the origins it names.

import HTTPWire
import ServiceCore

/// What the Origin field of a request means for a service (http rule 42, CORS).
enum CrossOrigin {
    /// Go on; these fields belong to the answer.
    case pass(Fields)
    /// A preflight, answered with these fields.
    case preflight(Fields)

    var fields: Fields {
        switch self {
        case .pass(let fields), .preflight(let fields): fields
        }
    }

    /// - Throws: a 403 `Problem` for a foreign origin of a service that adds credentials.
    static func decide(_ request: RequestHead, _ route: ServiceRoute) throws(Problem) -> CrossOrigin {
        var fields = Fields()
        // Also without Origin: a cache behind must not give such an answer to a page.
        if !route.corsOrigins.isEmpty { fields.append(.vary, "Origin") }
        guard let origin = request.fields.first(.origin) else { return .pass(fields) }
        if route.corsOrigins.contains(origin) || route.corsOrigins.contains("*") {
            fields.append(allowOrigin, origin)
            guard request.method == .options, let method = request.fields.first(.accessControlRequestMethod) else {
                return .pass(fields)
            }
            fields.append("Access-Control-Allow-Methods", method)
            if let wanted = request.fields.combined("Access-Control-Request-Headers") {
                fields.append("Access-Control-Allow-Headers", wanted)
            }
            fields.append("Access-Control-Max-Age", "600")
            return .preflight(fields)
        }
        guard route.addsCredentials, !isSameSite(origin, request) else { return .pass(fields) }
        throw Problem(
            status: 403,
            title: "Foreign origin",
            detail: "service \(route.plan.name) adds credentials and does not answer the web origin \(origin); "
                + "name it under cors.origins if that page may use them"
        )
    }

    /// Adds the fields to an answer. What the origin says of Access-Control-Allow-Origin gives way: a page takes one only.
    static func apply(_ added: Fields, to fields: inout Fields) {
        if added.isEmpty { return }
        if added.contains(allowOrigin) { fields.remove(allowOrigin) }
        added.forEachLine { name, value, known in
            if known == .vary {
                if !varies(fields) { fields.appendMember(.vary, "Origin") }
            } else {
                fields.append(nameBytes: name, valueBytes: value)
            }
        }
    }

    private static let allowOrigin = "Access-Control-Allow-Origin"

    /// Whether Vary names Origin, or everything, already.
    private static func varies(_ fields: Fields) -> Bool {
        let members = (fields.combined(.vary) ?? "").lowercased().split { ", \t".contains($0) }
        return members.contains("origin") || members.contains("*")
    }

    private static func isSameSite(_ origin: String, _ request: RequestHead) -> Bool {
        guard let host = request.fields.first(.host).flatMap({ Authority.parse($0) }) else { return false }
        return OriginRules.isSameSite(origin: origin, host: host)
    }
}
