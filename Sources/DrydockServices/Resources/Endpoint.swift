// Where a resource is: a URL, or a path below a base URL, with what is filled into it, method, query, fields and
// content.

public import Drydock
public import FoundationEssentials
public import HTTPTypes
import HTTPWire
import Trees

/// Where a resource is, and how it is asked for.
///
/// ```swift
/// let all: Endpoint = "/users"
/// let one: Endpoint = "/users/\(id)"
/// let part = Endpoint.get("/users/:id", path: ["id": 7], query: ["fields": ["name", "city"]])
/// ```
///
/// Of a text with values in it, each value is percent-encoded, so that it is a part of one segment or of one item of the
/// query; a value at the very beginning, such as a base URL, and a `URL` stay as they are.
public struct Endpoint: Sendable, ExpressibleByStringInterpolation {
    /// A URL with `http`, `https` or `file`, or a path that is appended to the base URL of whoever asks.
    ///
    /// `:name` behind a slash is filled from ``pathParameters``; `:user.id` is the member `id` of `user`. `\:`, `\.`,
    /// `\@` and `\\` are these characters themselves. A query that stands here goes out byte for byte.
    public var location: String
    /// GET by default.
    public var method: HTTPRequest.Method
    /// What is filled into the location, percent-encoded.
    public var pathParameters: Parameters
    /// Items that are added behind the query that ``location`` has, in this order.
    public var query: Parameters
    /// How these are written.
    public var queryEncoding: FormEncoding
    /// The fields of the request; they win over those of whoever asks.
    public var headerFields: HTTPFields
    /// The content of the request; none by default.
    public var body: RequestBody?
    /// Why a value of ``location`` cannot stand there; nil if each can.
    var fault: String?

    /// An endpoint with these parts.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL, such as `/users/:id`.
    ///   - method: GET by default.
    ///   - path: what is filled into the location.
    ///   - query: items behind the query that the location has.
    ///   - queryEncoding: how these are written.
    ///   - headerFields: they win over those of whoever asks.
    ///   - body: the content; none by default.
    public init(
        _ location: String,
        method: HTTPRequest.Method = .get,
        path: Parameters = [:],
        query: Parameters = [:],
        queryEncoding: FormEncoding = .rfc3986,
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) {
        self.location = location
        self.method = method
        pathParameters = path
        self.query = query
        self.queryEncoding = queryEncoding
        self.headerFields = headerFields
        self.body = body
    }

    /// A GET of this URL.
    public init(_ url: URL) { self.init(PathTemplate.escaped(url.absoluteString)) }

    /// A GET of this location.
    public init(stringLiteral location: String) { self.init(location) }

    /// A GET of this location, with its values percent-encoded.
    public init(stringInterpolation text: StringInterpolation) {
        self.init(text.location)
        fault = text.fault
    }

    /// An endpoint whose parameters go where its method has them: into the query with GET, HEAD and DELETE, else into
    /// the content.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL. What its `:names` are filled with is taken out of the parameters.
    ///   - method: of the request.
    ///   - parameters: in the order in which they are sent.
    ///   - encoding: how a query or a form is written.
    ///   - makeBody: makes the content of the parameters, such as `{ try .json($0) }`; a form by default.
    /// - Throws: `ServiceError.encoding` where the content cannot have the parameters.
    public init(
        _ location: String,
        method: HTTPRequest.Method,
        parameters: Parameters,
        encoding: FormEncoding = .form,
        body makeBody: ((Parameters) throws -> RequestBody)? = nil
    ) throws(ServiceError) {
        let used = Set(PathTemplate.names(in: location).map { $0.prefix { $0 != "." } })
        let rest = parameters.filter { !used.contains($0[...]) }
        self.init(location, method: method, path: parameters)
        guard !rest.isEmpty else { return }
        switch method {
        case .get, .head, .delete:
            query = rest
            queryEncoding = encoding
        default:
            do {
                body = try makeBody?(rest) ?? .form(rest, encoding: encoding)
            } catch let error as ServiceError {
                throw error
            } catch {
                throw .encoding(error)
            }
        }
    }
}

extension Endpoint {
    /// For logs and errors: without query, which may hold secrets, and without user.
    var shownLocation: String { path.withoutUser }

    /// The location without query and fragment, as those call the endpoint who are told of it.
    var path: Substring { location.prefix { $0 != "?" && $0 != "#" } }

    /// A GET.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    public static func get(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields()
    ) -> Self {
        Self(location, method: .get, path: path, query: query, headerFields: headerFields)
    }

    /// A HEAD.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    public static func head(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields()
    ) -> Self {
        Self(location, method: .head, path: path, query: query, headerFields: headerFields)
    }

    /// A DELETE.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    ///   - body: the content, such as `.json(user)`; none by default.
    public static func delete(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) -> Self {
        Self(location, method: .delete, path: path, query: query, headerFields: headerFields, body: body)
    }

    /// A POST.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    ///   - body: the content, such as `.json(user)`; none by default.
    public static func post(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) -> Self {
        Self(location, method: .post, path: path, query: query, headerFields: headerFields, body: body)
    }

    /// A PUT.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    ///   - body: the content, such as `.json(user)`; none by default.
    public static func put(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) -> Self {
        Self(location, method: .put, path: path, query: query, headerFields: headerFields, body: body)
    }

    /// A PATCH.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    ///   - headerFields: they win over those of whoever asks.
    ///   - body: the content, such as `.json(user)`; none by default.
    public static func patch(
        _ location: String,
        path: Parameters = [:],
        query: Parameters = [:],
        headerFields: HTTPFields = HTTPFields(),
        body: RequestBody? = nil
    ) -> Self {
        Self(location, method: .patch, path: path, query: query, headerFields: headerFields, body: body)
    }

    /// A text with values in it, as a location.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var location = ""
        fileprivate var fault: String?

        /// An empty text.
        public init(literalCapacity: Int, interpolationCount: Int) { location.reserveCapacity(literalCapacity) }

        /// Appends a text of the program as it stands.
        public mutating func appendLiteral(_ literal: String) { location += literal }

        /// Appends a URL, whose path has nothing that is filled in.
        public mutating func appendInterpolation(_ url: URL) { location += PathTemplate.escaped(url.absoluteString) }

        /// Appends a value, percent-encoded; one at the very beginning stays as it is.
        public mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            let text = value.description
            if location.isEmpty {
                location = text
            } else {
                if fault == nil, !location.contains("?"), PathTemplate.mayLeadElsewhere(text) {
                    fault = "'\(location.withoutUser)' cannot be continued: '\(text)' would lead to another path"
                }
                location += PercentEncoding.encode(text)
            }
        }
    }
}

extension StringProtocol where SubSequence == Substring {
    /// A URL, or what is to become one, without the user that stands before its host.
    var withoutUser: String {
        guard let start = firstRange(of: "://")?.upperBound else { return String(self) }
        let end = self[start...].firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? endIndex
        guard let user = self[start..<end].lastIndex(of: "@") else { return String(self) }
        return String(self[..<start] + self[index(after: user)...])
    }
}

// MARK: - Its URL

/// Where a request goes.
struct EndpointTarget {
    /// An absolute URL, without user.
    let text: String
    /// For an Authorization field: `user:password` of the URL, in Base64; nil where it has none.
    let credentials: String?

    /// - Parameters:
    ///   - base: what a path is appended to.
    ///   - defaults: items of a query; those whose name the endpoint has itself are left out.
    /// - Throws: `ServiceError.missingParameter`, `.invalidRequest`.
    init(_ endpoint: Endpoint, base: URL?, defaults: Parameters) throws(ServiceError) {
        if let fault = endpoint.fault { throw .invalidRequest(fault) }
        let location = endpoint.location.prefix { $0 != "#" }
        let own = location.prefix { $0 != "?" }
        var address = try PathTemplate(own).filled(from: endpoint.pathParameters)
        var queries = [location.dropFirst(own.count).dropFirst()]
        if !Self.isWhole(address) {
            guard let base else {
                throw .invalidRequest("'\(endpoint.location)' is a path, and there is no base URL: set one")
            }
            let whole = base.absoluteString.prefix { $0 != "#" }
            let root = whole.prefix { $0 != "?" }
            queries.insert(whole.dropFirst(root.count).dropFirst(), at: 0)
            address = Self.join(String(root), address)
        }
        let encoding = endpoint.queryEncoding
        let named = Set(
            queries.flatMap { $0.split(separator: "&") }.map { item in
                String(decoding: PercentEncoding.decode(form: item.prefix { $0 != "=" }.utf8), as: UTF8.self)
            }
        ).union(endpoint.query.names)
        let texts =
            queries.map { String($0) } + [encoding.text(endpoint.query)]
            + [encoding.text(defaults.filter { !named.contains($0) })]
        let query = texts.filter { !$0.isEmpty }.joined(separator: "&")
        let (open, user) = Self.withoutUser(address)
        let written = query.isEmpty ? open : open + "?" + query
        guard let url = URL(string: written), url.scheme != nil else {
            throw .invalidRequest("'\(open.withoutUser)' is no URL: percent-encode it")
        }
        text = url.absoluteString
        credentials = user
    }

    /// Whether an address begins with a scheme (RFC 3986 section 3.1): a path may have `://` further behind.
    private static func isWhole(_ address: String) -> Bool {
        guard let mark = address.firstRange(of: "://"), let first = address.utf8.first, isLetter(first) else {
            return false
        }
        return address[..<mark.lowerBound].utf8.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// A path is appended, whether one of both has the slash or not.
    private static func join(_ root: String, _ path: String) -> String {
        if path.isEmpty { return root }
        return (root.hasSuffix("/") ? String(root.dropLast()) : root) + (path.hasPrefix("/") ? path : "/" + path)
    }

    /// A URL without its user, whom no request has in its target.
    private static func withoutUser(_ text: String) -> (text: String, credentials: String?) {
        guard let colon = text.firstRange(of: "://") else { return (text, nil) }
        let rest = text[colon.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard let mark = authority.lastIndex(of: "@") else { return (text, nil) }
        let user = PercentEncoding.decode(authority[..<mark].utf8)
        let pair = user.contains(UInt8(ascii: ":")) ? user : user + [UInt8(ascii: ":")]
        return (String(text[..<colon.upperBound] + rest[authority.index(after: mark)...]), Base64.encode(pair))
    }
}

// MARK: - Paths with parameters

/// A location up to its query, such as `/users/:id`.
struct PathTemplate {
    private enum Piece {
        case literal(String)
        case parameter(String)
    }

    private let pieces: [Piece]
    private let text: String

    /// - Parameter text: of a location, without its query.
    init(_ text: some StringProtocol) {
        self.text = String(text)
        var pieces: [Piece] = []
        var literal = ""
        var rest = Substring(text)
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.first, ":.@\\".contains(next) {
                literal.append(rest.removeFirst())
            } else if character == ":", literal.last == "/", let name = Self.takeName(&rest) {
                pieces.append(.literal(literal))
                pieces.append(.parameter(name))
                literal = ""
            } else {
                literal.append(character)
            }
        }
        self.pieces = pieces + [.literal(literal)]
    }

    /// Names of what a location is filled with.
    static func names(in location: String) -> [String] {
        PathTemplate(location.prefix { $0 != "?" && $0 != "#" }).pieces.compactMap { piece in
            if case .parameter(let name) = piece { name } else { nil }
        }
    }

    /// A name begins with a letter or `_`; dots within it lead into objects.
    private static func takeName(_ rest: inout Substring) -> String? {
        guard let first = rest.first, first.isLetter || first == "_" else { return nil }
        var name = ""
        while let next = rest.first {
            let isDot = next == "." && rest.dropFirst().first.map { $0.isLetter || $0.isNumber || $0 == "_" } == true
            guard isDot || next.isLetter || next.isNumber || next == "_" else { break }
            name.append(rest.removeFirst())
        }
        return name
    }

    /// The path with its values percent-encoded.
    /// - Throws: `ServiceError.missingParameter`, and `.invalidRequest` for a value that would lead elsewhere.
    func filled(from parameters: Parameters) throws(ServiceError) -> String {
        var path = ""
        for piece in pieces {
            switch piece {
            case .literal(let literal): path += literal
            case .parameter(let name):
                let names = name.split(separator: ".").map(String.init)
                guard let found = parameters[names[0]]?.tree.value(at: names.dropFirst()), found != .null else {
                    throw .missingParameter(name, path: text.withoutUser)
                }
                guard let value = found.scalar, !value.isEmpty else {
                    throw .invalidRequest(
                        "'\(text.withoutUser)' cannot be filled: '\(name)' is \(found.scalar == nil ? "an object or a list" : "empty")"
                            + "; give it a text or a number"
                    )
                }
                // A dot needs no percent-encoding, and a server that decodes once more must find no `..` either.
                guard !Self.mayLeadElsewhere(value) else {
                    throw .invalidRequest(
                        "'\(text.withoutUser)' cannot be filled: '\(name)' would lead to another path"
                    )
                }
                path += PercentEncoding.encode(value)
            }
        }
        return path
    }

    /// A text in which no name is filled in.
    static func escaped(_ text: String) -> String { text.replacing("/:", with: "/\\:") }

    /// Whether a value within a path may be taken for `..`.
    static func mayLeadElsewhere(_ value: String) -> Bool {
        var path = "/" + PercentEncoding.encode(value)
        return path.withUTF8 { DotSegments.mayOccur(in: UnsafeRawBufferPointer($0)) }
    }
}
