// What a rule asks of a request: clauses that must all hold, each of which says what it wanted and what it found.

import Content
import HTTPWire

/// Clauses that must all hold; without any, every request will do.
package struct RequestCondition: Sendable, Equatable {
    package var clauses: [RequestClause]

    package init(_ clauses: [RequestClause] = []) { self.clauses = clauses }

    /// Some clause looks into the body.
    package var needsBody: Bool { clauses.contains(where: \.needsBody) }

    package func holds(_ request: RequestParts) -> Bool { clauses.allSatisfy { $0.holds(request) } }

    /// The clauses that do not hold, each as a sentence's part: `query.role is 'user', not 'admin'`.
    package func differences(_ request: RequestParts) -> [String] {
        clauses.filter { !$0.holds(request) }.map { $0.difference(request) }
    }
}

/// One clause of a condition.
package enum RequestClause: Sendable, Equatable {
    case method([String])
    /// The path behind the service's prefix, as it came.
    case path(TextTest)
    /// A parameter of the endpoint's path.
    case parameter(String, TextTest)
    case query(String, TextTest)
    /// The query has items of these names, and no others.
    case onlyQuery(Set<String>)
    case field(String, TextTest)
    case cookie(String, TextTest)
    case body(BodyTest)

    package var needsBody: Bool {
        if case .body = self { true } else { false }
    }

    package func holds(_ request: RequestParts) -> Bool {
        switch self {
        // A rule for GET is one for HEAD, as an endpoint is.
        case .method(let methods):
            methods.contains(request.method) || request.method == "HEAD" && methods.contains("GET")
        case .body(let test): test.holds(request.body, within: request.patternTime)
        case .onlyQuery(let names): request.queryNames.allSatisfy(names.contains)
        case .path(let test), .parameter(_, let test), .query(_, let test), .field(_, let test), .cookie(_, let test):
            test.holds(values(request), within: request.patternTime)
        }
    }

    /// What was found instead of what was wanted; of secrets neither is told.
    package func difference(_ request: RequestParts) -> String {
        switch self {
        case .method(let methods):
            "method is '\(request.method)', not \(methods.map { "'\($0)'" }.joined(separator: " or "))"
        case .body(let test): test.difference(request.body)
        case .onlyQuery(let names):
            "query has \(Self.found(request.queryNames.filter { !names.contains($0) })), which the rule does not ask for"
        case .path(let test): Self.difference(place, nil, [request.path], test)
        case .cookie(_, let test): Self.difference(place, "cookie", values(request), test)
        case .parameter(let name, let test), .query(let name, let test), .field(let name, let test):
            Self.difference(place, name, values(request), test)
        }
    }

    /// - Parameter name: which may be one of a secret.
    static func difference(_ place: String, _ name: String?, _ values: [String], _ test: TextTest) -> String {
        guard let name, SecretNames.contains(name) else { return "\(place) is \(found(values)), not \(test)" }
        return secret(place, isThere: !values.isEmpty, isWanted: test != .present(false))
    }

    /// That a secret is not what was wanted.
    static func secret(_ place: String, isThere: Bool, isWanted: Bool) -> String {
        guard isThere else { return "\(place) is missing" }
        return isWanted ? "\(place) is not what the rule asks for" : "\(place) is there, and has to be missing"
    }

    /// What it looks at.
    func values(_ request: RequestParts) -> [String] {
        switch self {
        case .path: [request.path]
        case .parameter(let name, _): request.parameters[name].map { [String(decoding: $0, as: UTF8.self)] } ?? []
        case .query(let name, _): request.query(name)
        case .field(let name, _): request.fields.all(name)
        case .cookie(let name, _): request.cookies(name)
        case .method, .body, .onlyQuery: []
        }
    }

    /// As the configuration writes it.
    private var place: String {
        switch self {
        case .method: "method"
        case .path: "path"
        case .parameter(let name, _): "params.\(name)"
        case .query(let name, _): "query.\(name)"
        case .onlyQuery: "only_query"
        case .field(let name, _): "fields.\(name)"
        case .cookie(let name, _): "cookies.\(name)"
        case .body: "body"
        }
    }

    /// Values as a message shows them: short, and those of a request alone, which its sender knows.
    private static func found(_ values: [String]) -> String {
        if values.isEmpty { return "missing" }
        return values.prefix(3).map { "'\($0.prefix(64))'" }.joined(separator: ", ")
    }
}
