// What a rule asks of a request: clauses that must all hold, each of which says what it wanted and found, and how far a
// request is from them.

import Content
package import HTTPWire

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

    /// Says that a secret is not what was wanted, without its value.
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

    /// The clause as the configuration writes it.
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

// MARK: - Distance

// How far a request is from what a rule asks of it, so that the nearest rules can be told of.
extension RequestCondition {
    /// How far a request is from what is asked: 0 where all clauses hold, and the more, the less alike they are. Only the
    /// order of such numbers means something.
    package func distance(_ request: RequestParts) -> Int {
        clauses.reduce(0) { $0 + ($1.holds(request) ? 0 : $1.distance(request)) }
    }
}

extension RequestClause {
    /// The distance of a clause that does not hold, in hundredths. The path says the most about which rule was meant.
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
    /// The share of the nearest value that would have to change, in hundredths; half for a test that says nothing of how
    /// near a value is, and all where there is no value.
    fileprivate func distance(_ values: [String]) -> Int {
        if values.isEmpty { return 100 }
        let wanted: [String]
        switch self {
        case .equals(let text): wanted = [text]
        case .oneOf(let texts): wanted = texts
        default: return 50
        }
        // A request may have many values, and a rule many texts.
        let shares = values.prefix(4).flatMap { value in
            wanted.prefix(4).map { TextDistance.between(value.utf8, $0.utf8) }
        }
        return shares.min() ?? 100
    }
}

// MARK: - Requests as conditions see them

/// A request that conditions are checked with. For one request, on one loop.
package struct RequestParts {
    package let method: String
    /// What follows the service's prefix: path and query as they came.
    package let target: String
    package let fields: Fields
    /// The parameters of the endpoint's path, decoded.
    package let parameters: [String: [UInt8]]
    package var body: Body
    /// What the patterns of all conditions that are checked with the request take together.
    let patternTime = PatternTime()

    package enum Body {
        /// No condition asks for it, or there was nobody to read it from.
        case unread
        /// The content is longer than what is read.
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

    /// The path alone.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The values of the query's items of that name.
    package func query(_ name: String) -> [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.items(in: target.utf8[mark...].dropFirst()) { $0.elementsEqual(name.utf8) }.map(\.value)
    }

    /// The names of the query's items, in their order; those of an item without a name are empty.
    package var queryNames: [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.items(in: target.utf8[mark...].dropFirst()).map { String(decoding: $0.name, as: UTF8.self) }
    }

    /// The values of the cookies of that name (RFC 6265 section 5.4).
    package func cookies(_ name: String) -> [String] {
        fields.all(.cookie).flatMap { line in
            line.split(separator: ";").compactMap { pair -> String? in
                let pair = pair.drop { $0 == " " || $0 == "\t" }
                guard let mark = pair.firstIndex(of: "="), pair[..<mark] == name else { return nil }
                return String(pair[mark...].dropFirst())
            }
        }
    }

    /// The items of a query or a form whose decoded name will do.
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

/// A body that was read; it is parsed once, and only if a condition asks for that. Loop-bound.
package final class WholeBody {
    package let bytes: [UInt8]
    /// The body as JSON; nil where it is none.
    private(set) lazy var tree: ContentTree? = try? JSONReader.read(bytes, repeats: true)
    private lazy var form: [[UInt8]: [String]] = Dictionary(grouping: RequestParts.items(in: bytes), by: \.name)
        .mapValues { $0.map(\.value) }

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The values of the form's items of that name.
    func form(_ name: String) -> [String] { form[Array(name.utf8)] ?? [] }
}

@available(*, unavailable) extension WholeBody: Sendable {}
