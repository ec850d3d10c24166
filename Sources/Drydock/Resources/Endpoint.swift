// Where a resource is: a URL, or a path below a base URL, with what is filled into it, method, query, fields and content.

public import HTTPTypes

/// Where a resource is, and how it is asked for.
///
/// ```swift
/// let all: Endpoint = "/users"
/// let one = Endpoint.get("/users/:id", path: ["id": 7], query: ["fields": ["name", "city"]])
/// ```
public struct Endpoint: Sendable, ExpressibleByStringLiteral {
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
    /// They win over those of whoever asks.
    public var headerFields: HTTPFields
    /// None by default.
    public var body: RequestBody?

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

    /// A GET of this location.
    public init(stringLiteral location: String) { self.init(location) }

    /// An endpoint whose parameters go where its method has them: into the query with GET, HEAD and DELETE, else into
    /// the content.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL. What its `:names` are filled with is taken out of the parameters.
    ///   - method: of the request.
    ///   - parameters: in the order in which they are sent.
    ///   - format: what a content is sent as; a form by default.
    ///   - encoding: how a query or a form is written.
    /// - Throws: `ServiceError.encoding` where the format cannot have the parameters.
    public init(
        _ location: String,
        method: HTTPRequest.Method,
        parameters: Parameters,
        as format: ContentFormat = .form,
        encoding: FormEncoding = .form
    ) throws(ServiceError) {
        let used = Set(PathTemplate.names(in: location).map { $0.prefix { $0 != "." } })
        let rest = parameters.filter { !used.contains($0[...]) }
        self.init(location, method: method, path: parameters)
        guard !rest.isEmpty else { return }
        switch method {
        case .get, .head, .delete:
            query = rest
            queryEncoding = encoding
        default: body = try format.body(rest, encoding)
        }
    }
}

extension Endpoint {
    /// For logs and errors: without query, which may hold secrets, and without user.
    var shownLocation: String { path.withoutUser }

    /// The location without query and fragment, as those call the endpoint who are told of it.
    var path: Substring { location.prefix { $0 != "?" && $0 != "#" } }

    /// What parameters are sent as that are the content of a request.
    public enum ContentFormat: String, Sendable, Hashable, CaseIterable {
        /// A JSON object.
        case json
        /// `application/x-www-form-urlencoded`
        case form
        /// `multipart/form-data`
        case multipart
        /// A property list in XML.
        case propertyList

        fileprivate func body(_ parameters: Parameters, _ encoding: FormEncoding) throws(ServiceError) -> RequestBody {
            switch self {
            case .json: try .json(parameters)
            case .form: .form(parameters, encoding: encoding)
            case .multipart: .multipart(MultipartForm(parameters, encoding: encoding))
            case .propertyList: try .propertyList(parameters)
            }
        }
    }

    /// A GET.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    public static func get(_ location: String, path: Parameters = [:], query: Parameters = [:]) -> Self {
        Self(location, path: path, query: query)
    }

    /// A HEAD.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    public static func head(_ location: String, path: Parameters = [:], query: Parameters = [:]) -> Self {
        Self(location, method: .head, path: path, query: query)
    }

    /// A DELETE.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - query: items of the query.
    public static func delete(_ location: String, path: Parameters = [:], query: Parameters = [:]) -> Self {
        Self(location, method: .delete, path: path, query: query)
    }

    /// A POST.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - body: the content, such as `.json(user)`.
    public static func post(_ location: String, path: Parameters = [:], body: RequestBody? = nil) -> Self {
        Self(location, method: .post, path: path, body: body)
    }

    /// A PUT.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - body: the content.
    public static func put(_ location: String, path: Parameters = [:], body: RequestBody? = nil) -> Self {
        Self(location, method: .put, path: path, body: body)
    }

    /// A PATCH.
    /// - Parameters:
    ///   - location: a URL, or a path below a base URL.
    ///   - path: what is filled into it.
    ///   - body: the content.
    public static func patch(_ location: String, path: Parameters = [:], body: RequestBody? = nil) -> Self {
        Self(location, method: .patch, path: path, body: body)
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
