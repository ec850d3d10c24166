// The condition of a rule on a request: clauses that must all hold, each of which describes its difference, and the
// distance of a request from them.

import Content
package import HTTPWire
import Trees

/// Clauses that must all hold; without any, every request matches.
package struct RequestCondition: Sendable, Equatable {
    package var clauses: [RequestClause]

    package init(_ clauses: [RequestClause] = []) { self.clauses = clauses }

    /// Whether some clause reads the body.
    package var needsBody: Bool { clauses.contains(where: \.needsBody) }

    package func holds(_ request: RequestParts) -> Bool { clauses.allSatisfy { $0.holds(request) } }

    /// The differences from the clauses that do not hold, each as a part of a sentence: `query.role is 'user', not
    /// 'admin'`.
    package func differences(_ request: RequestParts) -> [String] {
        clauses.filter { !$0.holds(request) }.map { $0.difference(request) }
    }
}

/// One clause of a condition.
package enum RequestClause: Sendable, Equatable {
    case method([String])
    /// The path after the service's prefix, as received.
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
        // A rule for GET applies to HEAD, as an endpoint does.
        case .method(let methods):
            methods.contains(request.method) || request.method == "HEAD" && methods.contains("GET")
        case .body(let test): test.holds(request.body, within: request.patternTime)
        case .onlyQuery(let names): request.queryNames.allSatisfy(names.contains)
        case .path(let test), .parameter(_, let test), .query(_, let test), .field(_, let test), .cookie(_, let test):
            test.holds(values(request), within: request.patternTime)
        }
    }

    /// The present value and the required one in words; neither is shown if it is a secret.
    package func difference(_ request: RequestParts) -> String {
        switch self {
        case .method(let methods):
            "method is '\(request.method)', not \(methods.map { "'\($0)'" }.joined(separator: " or "))"
        case .body(let test): test.difference(request.body)
        case .onlyQuery(let names):
            "query has \(Self.found(request.queryNames.filter { !names.contains($0) })), which the rule does not ask for"
        case .path(let test): Self.difference(key, nil, [request.path], test)
        case .cookie(_, let test): Self.difference(key, "cookie", values(request), test)
        case .parameter(let name, let test), .query(let name, let test), .field(let name, let test):
            Self.difference(key, name, values(request), test)
        }
    }

    /// The difference of some values from a test.
    /// - Parameter name: the name of the values, which may be that of a secret.
    static func difference(_ key: String, _ name: String?, _ values: [String], _ test: TextTest) -> String {
        guard let name, SecretNames.contains(name) else { return "\(key) is \(found(values)), not \(test)" }
        return secret(key, isThere: !values.isEmpty, isWanted: test != .present(false))
    }

    /// The difference of a secret from a required value, without either value.
    static func secret(_ key: String, isThere: Bool, isWanted: Bool) -> String {
        guard isThere else { return "\(key) is missing" }
        return isWanted ? "\(key) is not what the rule asks for" : "\(key) is there, and has to be missing"
    }

    /// The values that the clause tests.
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

    /// The name of the clause in a configuration.
    private var key: String {
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

    /// Values in the form of a message: short, and only those of a request, which its sender knows.
    private static func found(_ values: [String]) -> String {
        if values.isEmpty { return "missing" }
        return values.prefix(3).map { "'\($0.prefix(64))'" }.joined(separator: ", ")
    }
}

// MARK: - Distance

// The distance of a request from the condition of a rule, by which the nearest rules are reported.
extension RequestCondition {
    /// The distance of a request: 0 if all clauses hold, and the larger, the more the two differ. Only the order of
    /// such numbers has a meaning.
    package func distance(_ request: RequestParts) -> Int {
        clauses.reduce(0) { $0 + ($1.holds(request) ? 0 : $1.distance(request)) }
    }
}

extension RequestClause {
    /// The distance of a clause that does not hold, in hundredths. The path tells the most about which rule was meant.
    fileprivate func distance(_ request: RequestParts) -> Int {
        switch self {
        case .method, .onlyQuery: return 50
        case .path(let test): return 3 * test.distance([request.path])
        case .parameter(_, let test), .query(_, let test), .field(_, let test), .cookie(_, let test):
            return test.distance(values(request))
        case .body:
            guard case .whole(let body) = request.body, !body.bytes.isEmpty else { return 100 }
            return 50
        }
    }
}

extension TextTest {
    /// The share of the nearest value that would have to change, in hundredths; half for a test without a measure of
    /// distance, and all if there is no value.
    fileprivate func distance(_ values: [String]) -> Int {
        if values.isEmpty { return 100 }
        let wanted: [String]
        switch self {
        case .equals(let text): wanted = [text]
        case .oneOf(let texts): wanted = texts
        default: return 50
        }
        // A request may have many values, and a rule many texts, so only the first few are compared.
        let shares = values.prefix(4).flatMap { value in
            wanted.prefix(4).map { TextDistance.between(value.utf8, $0.utf8) }
        }
        return shares.min() ?? 100
    }
}

// MARK: - Requests as conditions see them

/// A request that conditions are checked against. It is for one request, on one loop.
package struct RequestParts {
    package let method: String
    /// The path and query after the service's prefix, as received.
    package let target: String
    package let fields: Fields
    /// The parameters of the endpoint's path, decoded.
    package let parameters: [String: [UInt8]]
    package var body: Body
    /// The time that all patterns of the conditions for this request may take together.
    let patternTime = PatternTime()

    package enum Body {
        /// No condition reads the body, or there was no source to read it from.
        case unread
        /// The content is longer than the limit.
        case tooLong
        case whole(WholeBody)
    }

    package init(
        method: String,
        target: String,
        fields: Fields,
        parameters: [String: [UInt8]] = [:],
        body: Body = .unread
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.parameters = parameters
        self.body = body
    }

    /// The path without the query.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The values of the query's items with that name.
    package func query(_ name: String) -> [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.items(in: target.utf8[mark...].dropFirst()) { $0.elementsEqual(name.utf8) }.map(\.value)
    }

    /// The names of the query's items, in their order; an item without a name has an empty one.
    package var queryNames: [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.items(in: target.utf8[mark...].dropFirst()).map { String(decoding: $0.name, as: UTF8.self) }
    }

    /// The values of the cookies with that name (RFC 6265 section 5.4).
    package func cookies(_ name: String) -> [String] {
        fields.all(.cookie).flatMap { line in
            line.split(separator: ";").compactMap { pair -> String? in
                let pair = pair.drop { $0 == " " || $0 == "\t" }
                guard let mark = pair.firstIndex(of: "="), pair[..<mark] == name else { return nil }
                return String(pair[mark...].dropFirst())
            }
        }
    }

    /// The items of a query or a form whose decoded names match.
    fileprivate static func items(
        in bytes: some Collection<UInt8>,
        where isWanted: ([UInt8]) -> Bool = { _ in true }
    ) -> [(name: [UInt8], value: String)] {
        bytes.split(separator: UInt8(ascii: "&")).compactMap { item in
            let end = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            let name = PercentEncoding.decode(form: item[..<end])
            guard isWanted(name) else { return nil }
            return (name, String(decoding: PercentEncoding.decode(form: item[end...].dropFirst()), as: UTF8.self))
        }
    }
}

/// A body that was read; it is parsed once, and only if a condition needs that. Loop-bound.
package final class WholeBody {
    package let bytes: [UInt8]
    /// The body as JSON; nil if it is not.
    private(set) lazy var tree: ContentTree? = try? JSONReader.read(bytes, repeats: true)
    private lazy var form: [[UInt8]: [String]] = Dictionary(grouping: RequestParts.items(in: bytes), by: \.name)
        .mapValues { $0.map(\.value) }

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The values of the form's items with that name.
    func form(_ name: String) -> [String] { form[Array(name.utf8)] ?? [] }
}

@available(*, unavailable) extension WholeBody: Sendable {}
