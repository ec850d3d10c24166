// URLs of endpoints: templates that are filled, queries in every encoding, the base, and what cannot be a request.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Testing

@Suite struct EndpointTests {
    /// What is asked for.
    private func asked(
        _ endpoint: Endpoint,
        base: String? = "https://api.test/v1"
    ) async throws -> RecordedRequest {
        let (loader, transport) = makeLoader { $0.base = base.flatMap { URL(string: $0) } }
        try await loader.load(.nothing, from: endpoint)
        return try #require(transport.requests.first)
    }

    private func refusal(_ endpoint: Endpoint, base: URL? = base) async throws -> ServiceError? {
        let (loader, transport) = makeLoader { $0.base = base }
        let error = await serviceError { () throws(ServiceError) in try await loader.load(.nothing, from: endpoint) }
        #expect(transport.requests.isEmpty)
        return error
    }

    // MARK: - What an endpoint is made of

    @Test func aTextWithValuesIsAnEndpoint() async throws {
        let (id, name, flag) = (7, "a/b c?d:e", true)
        #expect(try await asked("/users/\(id)").target == "/v1/users/7")
        #expect(try await asked("/users/\(name)/x-\(flag)").target == "/v1/users/a%2Fb%20c%3Fd%3Ae/x-true")
        #expect(try await asked("/users?name=\(name)&up=\("..")").target == "/v1/users?name=a%2Fb%20c%3Fd%3Ae&up=..")
        // The beginning is a base, or a path, of the program's own; a URL is one wherever it stands.
        let root = "https://other.test/w1"
        #expect(try await asked("\(root)/users/\(id)").url == "https://other.test/w1/users/7")
        let url = try #require(URL(string: "https://other.test/w1"))
        #expect(try await asked("\(url)/users/\(id)").url == "https://other.test/w1/users/7")
        let error = try await refusal("/users/\("..")/x")
        #expect(error?.name == "invalidRequest" && error?.description.contains("'..' would lead") == true)
    }

    @Test func aURLIsAnEndpoint() async throws {
        let url = try #require(URL(string: "https://other.test/a/:b?c=d"))
        #expect(try await asked(Endpoint(url)).url == "https://other.test/a/:b?c=d")
        let text = "/users"
        #expect(try await asked(Endpoint(text)).target == "/v1/users")
    }

    @Test(arguments: [HTTPRequest.Method.get, .head, .delete, .post, .put, .patch])
    func everyMethodTakesEveryPart(method: HTTPRequest.Method) async throws {
        let (path, query, fields): (Parameters, Parameters, HTTPFields) = (["id": 7], ["q": 1], [.userAgent: "own"])
        let body: RequestBody? = method == .get || method == .head ? nil : .form(["a": 1])
        let endpoint: Endpoint =
            switch method {
            case .get: .get("/users/:id", path: path, query: query, headerFields: fields)
            case .head: .head("/users/:id", path: path, query: query, headerFields: fields)
            case .delete: .delete("/users/:id", path: path, query: query, headerFields: fields, body: body)
            case .post: .post("/users/:id", path: path, query: query, headerFields: fields, body: body)
            case .put: .put("/users/:id", path: path, query: query, headerFields: fields, body: body)
            default: .patch("/users/:id", path: path, query: query, headerFields: fields, body: body)
            }
        let request = try await asked(endpoint)
        #expect(request.method == method && request.target == "/v1/users/7?q=1")
        #expect(request.head.headerFields[values: .userAgent] == ["own"])
        #expect(request.text == (body == nil ? "" : "a=1"))
    }

    // MARK: - Paths

    @Test(arguments: [
        ("/users/:id", "/v1/users/7"), ("/users/:id/posts/:post_id", "/v1/users/7/posts/9"),
        ("/users/:user.name", "/v1/users/Ada%20L"), ("/users/:user.address.city", "/v1/users/M%C3%BCnchen"),
        ("/files/:path", "/v1/files/a%2Fb%3Fc%23d"), ("/users/:id.", "/v1/users/7."),
        ("/users/:id\\.json", "/v1/users/7.json"), ("/users/\\:id", "/v1/users/:id"), ("/a:id", "/v1/a:id"),
        ("/a\\\\b", "/v1/a%5Cb"), ("/x\\@y", "/v1/x@y"), ("/users/:flag", "/v1/users/true"), ("users", "/v1/users"),
        ("", "/v1"), ("/users#top", "/v1/users"), ("/:7", "/v1/:7"),
    ]) func pathsAreFilled(location: String, target: String) async throws {
        let parameters: Parameters = [
            "id": 7, "post_id": "9", "user": ["name": "Ada L", "address": ["city": "München"]], "path": "a/b?c#d",
            "flag": true,
        ]
        #expect(try await asked(Endpoint(location, path: parameters)).target == target)
    }

    @Test(arguments: [("/users/:id", "id"), ("/users/:user.name", "user.name"), ("/:null", "null")])
    func whatIsMissingIsNamed(location: String, name: String) async throws {
        let parameters: Parameters = ["user": ["city": "London"], "null": nil]
        let error = try await refusal(Endpoint(location, path: parameters))
        guard case .missingParameter(name, path: location) = error else {
            return #expect(Bool(false), "\(error as Any)")
        }
        #expect(error?.description.contains("there is no '\(name)'") == true)
    }

    @Test(
        arguments: [
            ("..", "would lead to another path"), (".", "would lead"), ("../x", "would lead"),
            ("a/../../b", "would lead"),
            ("", "is empty"), ([1], "is an object or a list"), (["a": 1], "is an object or a list"),
        ] as [(JSONValue, String)]
    ) func valuesThatLeadElsewhereAreRefused(value: JSONValue, reason: String) async throws {
        let error = try await refusal(Endpoint("/users/:id", path: ["id": value]))
        guard case .invalidRequest(let text) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(text.contains(reason), "\(text)")
    }

    // MARK: - The base

    @Test(arguments: [
        ("https://api.test", "/a", "https://api.test/a"), ("https://api.test/", "/a", "https://api.test/a"),
        ("https://api.test/v1/", "a", "https://api.test/v1/a"),
        ("https://api.test/v1?key=1", "/a?b=2", "https://api.test/v1/a?key=1&b=2"),
        ("https://api.test/v1", "http://other.test/a", "http://other.test/a"),
        ("https://api.test:8443/v1", "/a", "https://api.test:8443/v1/a"),
        ("https://api.test/v1", "/go/https://other.test/a", "https://api.test/v1/go/https://other.test/a"),
        ("https://api.test", "go/x://y", "https://api.test/go/x://y"),
        ("https://api.test/v1", "/a?to=http://other.test", "https://api.test/v1/a?to=http://other.test"),
        ("https://api.test/v1", "HTTP://other.test/http://a", "HTTP://other.test/http://a"),
    ]) func pathsAreAppended(base: String, location: String, url: String) async throws {
        #expect(try await asked(Endpoint(location), base: base).url == url)
    }

    @Test func aUserOfTheBaseIsBasicAuthentication() async throws {
        let request = try await asked("/a", base: "https://ada:p%40ss@api.test/v1")
        #expect(request.url == "https://api.test/v1/a")
        let pair = Data("ada:p@ss".utf8).base64EncodedString()
        #expect(request.head.headerFields[.authorization] == "Basic \(pair)")
        let own = try await asked(
            Endpoint("/a", headerFields: [.authorization: "Bearer x"]),
            base: "https://ada:p@api.test"
        )
        #expect(own.head.headerFields[values: .authorization] == ["Bearer x"])
    }

    @Test func aPathWithoutABaseIsRefused() async throws {
        let error = try await refusal("/a", base: nil)
        guard case .invalidRequest(let text) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(text == "'/a' is a path, and there is no base URL: set one")
    }

    // MARK: - Queries

    @Test(
        arguments: [
            ("/a?x=1&x=%20", ["b": 2], "x=1&x=%20&b=2"), ("/a?", [:], nil), ("/a", [:], nil), ("/a?x", [:], "x"),
            ("/a", ["b": nil, "": 1, "c": "d"], "b&c=d"), ("/a", ["z": 1, "a": 2], "z=1&a=2"),
            ("/a", ["q": "a+b c&d=é/?"], "q=a%2Bb%20c%26d%3D%C3%A9%2F%3F"),
            ("/a", ["l": [1, "x"]], "l%5B%5D=1&l%5B%5D=x"),
            ("/a", ["o": ["b": ["c": 1], "d": true]], "o%5Bb%5D%5Bc%5D=1&o%5Bd%5D=true"),
            ("/a", ["empty": ""], "empty="),
        ] as [(String, Parameters, String?)]
    ) func itemsStandBehindThoseOfTheLocation(
        location: String,
        query: Parameters,
        text: String?
    ) async throws {
        #expect(try await asked(.get(location, query: query)).query == text)
    }

    @Test func itemsOfOneNameStaySeveral() async throws {
        var query: Parameters = ["a": 1]
        query.append(2, name: "a")
        #expect(try await asked(.get("/x", query: query)).query == "a=1&a=2")
    }

    @Test(arguments: [
        (FormEncoding.rfc3986.repeatingNames, "z=1&z=true&q=a%2Bb%20c%3A"),
        (FormEncoding.rfc3986.joiningLists, "z=1%2Ctrue&q=a%2Bb%20c%3A"),
        (FormEncoding.form, "z%5B%5D=1&z%5B%5D=true&q=a%2Bb+c%3A"),
        (FormEncoding.readable, "z%5B%5D=1&z%5B%5D=true&q=a+b%20c:"),
        (FormEncoding.rfc3986.writingDigits.sorted, "q=a%2Bb%20c%3A&z%5B%5D=1&z%5B%5D=1"),
        (FormEncoding.rfc3986.repeatingNames.writingDigits, "z=1&z=1&q=a%2Bb%20c%3A"),
    ]) func anEncodingIsChosen(encoding: FormEncoding, text: String) async throws {
        let query: Parameters = ["z": [1, true], "q": "a+b c:"]
        #expect(try await asked(Endpoint("/a", query: query, queryEncoding: encoding)).query == text)
    }

    @Test func listsOfListsAreNotWrittenWithCommas() async throws {
        let encoding = FormEncoding.readable.joiningLists.writingDigits
        let query: Parameters = ["a": [[1, 2], [true]], "b": ["c": [false, "d"]]]
        let text = try await asked(Endpoint("/a", query: query, queryEncoding: encoding)).query
        #expect(text == "a%5B%5D=1,2&a%5B%5D=1&b%5Bc%5D=0,d")
    }

    // MARK: - Where parameters go

    @Test(arguments: [HTTPRequest.Method.get, .head, .delete]) func parametersGoIntoTheQuery(
        method: HTTPRequest.Method
    ) async throws {
        let endpoint = try Endpoint("/users/:id?a=1", method: method, parameters: ["id": 7, "b": "x y"])
        let request = try await asked(endpoint)
        #expect(request.target == "/v1/users/7?a=1&b=x+y")
        #expect(request.method == method && request.body == nil)
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch]) func parametersGoIntoTheContent(
        method: HTTPRequest.Method
    ) async throws {
        let parameters: Parameters = ["id": 7, "b": "x&y", "c": [true, nil]]
        let form = try await asked(Endpoint("/users/:id", method: method, parameters: parameters))
        #expect(form.target == "/v1/users/7" && form.text == "b=x%26y&c%5B%5D=true&c%5B%5D")
        #expect(form.contentType == "application/x-www-form-urlencoded")
        let json = try await asked(Endpoint("/users/:id", method: method, parameters: parameters) { try .json($0) })
        #expect(json.text == #"{"b":"x&y","c":[true,null]}"# && json.contentType == "application/json")
        let parts = try await asked(
            Endpoint("/users/:id", method: method, parameters: parameters) { .multipart(MultipartForm($0)) }
        )
        #expect(parts.contentType?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(parts.text.contains("name=\"b\"\r\n\r\nx&y\r\n") && parts.text.contains("name=\"c[]\"\r\n\r\ntrue\r\n"))
        let list = try await asked(
            Endpoint("/users/:id", method: method, parameters: ["id": 7, "b": "x&y"]) { try .propertyList($0) }
        )
        #expect(list.contentType == "application/x-plist")
        #expect(try PropertyListDecoder().decode([String: String].self, from: list.body ?? Data()) == ["b": "x&y"])
    }

    @Test func noParametersAreNoContent() async throws {
        let request = try await asked(Endpoint("/users/:id", method: .post, parameters: ["id": 7]))
        #expect(request.body == nil && request.target == "/v1/users/7")
    }
}
