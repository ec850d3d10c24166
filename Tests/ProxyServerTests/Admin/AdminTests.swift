// The admin API over a unix socket and over TCP: documents, refusals, and what a web page may not do.

import Configuration
import EventLoop
import Foundation
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

/// Routes that note what reaches them.
private final class NotedRoutes: Sendable {
    let reloads = Counter()

    var all: [AdminRoute] {
        [
            AdminRoute(.get, .health) { _ async throws(Problem) in .text("ok\n") },
            AdminRoute(.get, .status) { _ async throws(Problem) in try .json(["pid": 42]) },
            AdminRoute(.post, .reload) { [reloads] _ async throws(Problem) in
                reloads.add()
                return .text("reloaded\n")
            },
        ]
    }
}

@Suite struct AdminTests {
    /// Runs `body` with an admin listener on a unix socket and one on TCP.
    private static func run(
        _ body: @escaping @Sendable (_ routes: NotedRoutes, _ path: String, _ port: Int) throws -> Void
    ) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("admin.sock")
        let harness = try await ServerHarness()
        let routes = NotedRoutes()
        await harness.server.setHandler(for: .admin) { _, _ in AdminHandler(routes: routes.all) }
        let sockets = try ListeningSet.bind([.unix(path: path), .tcp(host: "127.0.0.1", port: 0)], mode: 0o600)
        for socket in sockets { await harness.server.listen(on: socket, role: .admin) }
        let port = Int(sockets[1].address.port)
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
            Result { try body(routes, path, port) }
        }
        await harness.stop()
        try result.get()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(
        arguments: [
            ("GET", "/nothing", 404, nil), ("GET", "/v1/reload", 405, "POST"), ("POST", "/v1/status", 405, "GET, HEAD"),
            ("GET", "http://other/v1/status", 404, nil),
        ] as [(String, String, Int, String?)]
    )
    func `what is not part of the API is a problem`(
        method: String,
        target: String,
        status: Int,
        allow: String?
    ) async throws {
        try await Self.run { routes, path, _ in
            let client = try RawClient(unix: path)
            let response = try client.exchange(method, target)
            #expect(response.status == status)
            #expect(response.field("Content-Type") == "application/problem+json")
            #expect(response.field("Allow") == allow)
            #expect(try AdminJSON.decode(AdminProblem.self, from: response.body).status == status)
            #expect(routes.reloads.value == 0)
            #expect(try client.exchange("/healthz").status == 200)
        }
    }

    @Test func `a document is not stored, HEAD has no body, and the socket has its permissions`() async throws {
        try await Self.run { _, path, _ in
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let client = try RawClient(unix: path)
            let status = try client.exchange("/v1/status")
            #expect(status.status == 200 && status.text == "{\"pid\":42}\n")
            #expect(status.field("Content-Type") == "application/json" && status.field("Cache-Control") == "no-store")
            #expect(try client.exchange("HEAD", "/v1/status").body.isEmpty)
        }
    }

    @Test(arguments: [
        ("/a#b", "GET /a", "here:80"), ("http://own.test:8080/a?b#c", "GET /a?b", "own.test:8080"),
        ("http://own.test:8080", "GET /", "own.test:8080"),
        ("http://other.test/a", "GET http://other.test/a", "other.test"),
        ("https://own.test:8080/a", "GET https://own.test:8080/a", "own.test:8080"),
    ])
    func `a question is written as a client writes it`(url: String, line: String, host: String) throws {
        let bytes = try RequestQuestion(url: url).bytes(host: "here:80") { $0.host == "own.test" }
        #expect(String(decoding: bytes, as: UTF8.self) == "\(line) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
    }

    @Test(
        arguments: [
            ("localhost:PORT", nil, 200), ("127.0.0.1", nil, 200), ("evil.example", nil, 403),
            ("localhost:PORT", "http://localhost:PORT", 200), ("localhost:PORT", "http://evil.example", 403),
            ("localhost:PORT", "null", 403), ("localhost:PORT", "http://localhost:1", 403),
        ] as [(String, String?, Int)]
    )
    func `on TCP Host and Origin are checked`(host: String, origin: String?, status: Int) async throws {
        try await Self.run { routes, _, port in
            let client = try RawClient(port: port)
            let fields = origin.map { [("Origin", $0.replacingOccurrences(of: "PORT", with: "\(port)"))] } ?? []
            let name = host.replacingOccurrences(of: "PORT", with: "\(port)")
            #expect(try client.exchange("POST", "/v1/reload", host: name, fields: fields).status == status)
            #expect(routes.reloads.value == (status == 200 ? 1 : 0))
        }
    }

    @Test func `nothing of it is reachable through the proxy's port`() async throws {
        try await ServerHarness.run { harness in
            let response = try harness.exchange("/v1/status")
            #expect(response.text == "/v1/status")
        }
    }

    @Test func `the admin listener is outside the caps and the counters`() async throws {
        var settings = ServerSettings()
        settings.connections = 0
        let harness = try await ServerHarness(settings: settings)
        await harness.server.setHandler(for: .admin) { _, _ in
            AdminHandler(routes: NotedRoutes().all)
        }
        let sockets = try ListeningSet.bind([.tcp(host: "localhost", port: 0)])
        for socket in sockets { await harness.server.listen(on: socket, role: .admin) }
        let port = Int(sockets[0].address.port)
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
            Result {
                #expect(try RawClient(port: port).exchange("/healthz").status == 200)
                let refused = try harness.client()
                #expect(try refused.readResponse().status == 503)
                #expect(harness.counters.answers.answers(ofClass: 2) == 0)
            }
        }
        await harness.stop()
        try result.get()
    }

    @Test func `a port of all addresses is bound on IPv4 and, where the machine has it, on IPv6`() throws {
        let sockets = try ListeningSet.bind([.tcp(host: "*", port: 0)])
        defer { for socket in sockets { Socket.close(socket.descriptor) } }
        #expect(sockets.first?.address.host == "0.0.0.0")
        let six = try ListeningSet.bind([.tcp(host: "localhost", port: 0)])
        defer { for socket in six { Socket.close(socket.descriptor) } }
        #expect(sockets.count == six.count)
        if sockets.count == 2 {
            #expect(sockets[1].address.host == "::")
        }
    }

    @Test func `the folders above a socket are made`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("made/for/it/a.sock")
        let sockets = try ListeningSet.bind([.unix(path: path)], mode: 0o600)
        for socket in sockets { Socket.close(socket.descriptor) }
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `a group that is not there is an error that names it`() throws {
        let folder = try TemporaryFolder()
        let addresses = ["a.sock", "b.sock"].map { ListenAddress.unix(path: folder.file($0)) }
        let error = #expect(throws: ListeningError.self) {
            _ = try ListeningSet.bind(addresses, group: "no-such-group")
        }
        #expect(error?.description.contains("no-such-group") == true)
        #expect(error?.address == addresses[0])
    }

    /// Answers what a request came as: its parameters, its members, its body.
    private static let echo: AdminRoute.Perform = { request async throws(Problem) in
        let members = request.queryItems.map { "\($0.name)=\($0.value)" }
        let body = String(decoding: request.body, as: UTF8.self)
        return .text("\(request.pathParameters.joined(separator: "|")) \(members.joined(separator: "|")) \(body)")
    }

    private static func exchange(
        _ routes: [AdminRoute],
        _ body: @escaping @Sendable (RawClient) throws -> Void
    ) async throws {
        let harness = try await ServerHarness()
        await harness.server.setHandler(for: .admin) { _, _ in AdminHandler(routes: routes) }
        let folder = try TemporaryFolder()
        let path = folder.file("admin.sock")
        for socket in try ListeningSet.bind([.unix(path: path)]) {
            await harness.server.listen(on: socket, role: .admin)
        }
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
            Result { try body(RawClient(unix: path)) }
        }
        await harness.stop()
        try result.get()
    }

    @Test func `a route has parameters, a query and a body`() async throws {
        let routes = [
            AdminRoute(.post, .retryJob, bodyLimit: 5, perform: Self.echo),
            AdminRoute(.get, .job, perform: Self.echo),
            AdminRoute(.delete, .job, perform: Self.echo),
        ]
        try await Self.exchange(routes) { client in
            let whole = try client.exchange("POST", "/v1/jobs/a%2Fb/retry?x=%20&y", body: Array("12345".utf8))
            #expect(whole.text == "a/b x= |y= 12345")
            #expect(try client.exchange("GET", "/v1/jobs/7", body: Array("ignored".utf8)).text == "7  ")
            #expect(try client.exchange("DELETE", "/v1/jobs/7").text == "7  ")
            let refused = try client.exchange("PUT", "/v1/jobs/7")
            #expect(refused.status == 405)
            #expect(refused.field("Allow") == "GET, HEAD, DELETE")
            for path in ["/v1/jobs/", "/v1/jobs", "/v1/jobs/7/", "/v1/jobs/7/retry/now"] {
                let unknown = try client.exchange(path)
                #expect(unknown.status == 404)
                #expect(unknown.text.contains("there are /v1/jobs/:id/retry, /v1/jobs/:id\""))
            }
            let long = try client.exchange("POST", "/v1/jobs/7/retry", body: Array("123456".utf8))
            #expect(long.status == 413)
            #expect(long.text.contains("at most 5 bytes"))
        }
    }

    private struct Sample: Codable {
        struct Item: Codable { var url: String }
        var items: [Item]
    }

    @Test(arguments: [
        ("{", "not the expected JSON document"), ("{}", "'items' is missing"),
        (#"{"items":[{}]}"#, "'url' is missing at items[0]"), (#"{"items":[{"url":1}]}"#, "at items[0].url"),
    ])
    func `a body that is no such document names the position`(text: String, part: String) throws {
        let request = AdminRequest(body: Array(text.utf8))
        let problem = #expect(throws: Problem.self) { _ = try request.decode(Sample.self) }
        #expect(problem?.status == 400)
        #expect(problem?.detail.contains(part) == true, "\(problem?.detail ?? "")")
    }
}
