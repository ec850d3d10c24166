// The admin API over HTTP: JSON on a listener of its own, never on the proxy's port; and the part of it that monitors ask for.

package import EventLoop
import FoundationEssentials
package import HTTPWire
import ServiceCore

/// Answers requests of the admin API on one loop. Loop-bound.
package final class AdminHandler: ExchangeHandler {
    /// The number of bytes of a stream that may wait for the client; no more are made until it has read.
    private static let streamWindow = 16 << 10
    /// Nanoseconds for which the end of a stream waits for a client that does not read.
    private static let streamGrace: UInt64 = 1_000_000_000

    private let routes: [AdminRoute]

    /// - Parameter routes: the routes of all features, in the order in which a 404 lists their paths.
    package init(routes: [AdminRoute]) { self.routes = routes }

    package func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer {
        .notMine
    }

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        do throws(Problem) {
            // Whoever reaches a listener for metrics may read them, under whatever name.
            if exchange.listener.role != .metrics {
                try Self.check(exchange.request.fields, listener: exchange.listener)
            }
            guard case .origin(let target) = exchange.target.form else {
                throw notFound(exchange.request.target, at: exchange.listener)
            }
            let (path, members) = AdminQuery.split(target)
            let (route, parameters) = try route(exchange.request.method, path, at: exchange.listener)
            var request = AdminRequest(pathParameters: parameters, queryItems: members)
            request.accept = exchange.request.fields.combined(.accept)
            request.upgrade = exchange.request.fields.combined(.upgrade)
            if route.bodyLimit > 0 { request.body = try await body(of: exchange, limit: route.bodyLimit) }
            let answer = try await route.perform(request)
            if let upgrade = answer.upgrade { return try Self.giveAway(exchange, upgrade) }
            let fields = Fields([("Content-Type", answer.type), ("Cache-Control", "no-store")])
            let head = ResponseHead(
                status: answer.status,
                reason: ReasonPhrase.reason(answer.status),
                fields: fields
            )
            if let stream = answer.stream { return await Self.send(stream, head, exchange, on: loop) }
            exchange.sendHead(head, body: .known(Int64(answer.body.count)))
            do throws(ClientGone) { try await exchange.send(answer.body) } catch { return }
            exchange.finish()
        } catch {
            exchange.problem(error)
        }
    }

    /// Sends a stream chunked as its bytes come. What the client does not read waits in the stream, which bounds it.
    private static func send(
        _ stream: any AdminStream,
        _ head: ResponseHead,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async {
        defer { stream.close() }
        // A client that only listens sends nothing, so the end of its side of the connection is the only sign that it
        // has left.
        exchange.endWithClient()
        exchange.sendHead(head, body: .unknown)
        guard exchange.request.method != .head else { return exchange.finish() }
        while let bytes = await stream.next() {
            exchange.queue(bytes)
            do throws(ClientGone) { try await exchange.waitForRoom(atMost: streamWindow) } catch { return }
        }
        // The stream has ended, or the daemon is ending: a client that does not read is waited for ``streamGrace`` at
        // most.
        let timer = LoopTimer(on: loop) { exchange.abort(.reset) }
        timer.start(after: streamGrace)
        defer { timer.cancel() }
        do throws(ClientGone) { try await exchange.waitForRoom(atMost: 0) } catch { return }
        exchange.finish()
    }

    /// Answers with a 101, and gives the connection's socket away, which only a unix socket is good for.
    private static func giveAway(_ exchange: Exchange, _ upgrade: AdminUpgrade) throws(Problem) {
        guard exchange.listener.address.isUnix else {
            upgrade.refused()
            throw Problem(
                status: 409,
                title: "No unix socket",
                detail: "this takes a connection over a unix socket, which the daemon's 'admin' has to name"
            )
        }
        let fields = Fields([("Connection", "upgrade"), ("Upgrade", upgrade.name)])
        exchange.sendHead(ResponseHead(status: 101, reason: ReasonPhrase.reason(101), fields: fields), body: .none)
        guard let client = exchange.detach() else { return upgrade.refused() }
        guard client.writeUnsent(), client.unsent.isEmpty,
            let socket = (client.transport as? PlainTransport)?.copyOfDescriptor
        else {
            client.end(sent: 0, error: "the connection cannot be given away")
            return upgrade.refused()
        }
        client.end(sent: 0, error: nil)
        upgrade.taken(socket)
    }

    private func route(
        _ method: HTTPWire.Method,
        _ path: String,
        at listener: ListenerInfo
    ) throws(Problem) -> (AdminRoute, [String]) {
        let found = routes.compactMap { route in route.path.parameters(in: path).map { (route, $0) } }
        guard !found.isEmpty else { throw notFound(path, at: listener) }
        guard let match = found.first(where: { $0.0.answers(method) }) else {
            throw Self.notAllowed(path, found.map(\.0.allowed).joined(separator: ", "))
        }
        return match
    }

    private func body(of exchange: Exchange, limit: Int) async throws(Problem) -> [UInt8] {
        var bytes: [UInt8] = []
        while let next = try await part(of: exchange.requestBody) {
            bytes += next
            guard bytes.count <= limit else {
                let detail = "\(exchange.request.target) takes at most \(limit) bytes; send less, in several requests"
                throw Problem(status: 413, title: ReasonPhrase.reason(413), detail: detail)
            }
        }
        return bytes
    }

    private func part(of body: RequestBody) async throws(Problem) -> [UInt8]? {
        do throws(RequestBodyError) {
            return try await body.next()
        } catch {
            throw error.problem ?? Problem(status: 400, title: "Client gone", detail: "send the whole body")
        }
    }

    // MARK: - Refusals

    /// Refuses requests of web pages on TCP, where any page in a browser could reach the API: Host has to be loopback
    /// or the listen address (RFC 9110 section 7.2), and Origin must not be foreign (RFC 6454 section 7). A unix socket
    /// is protected by its permissions.
    static func check(_ fields: Fields, listener: ListenerInfo) throws(Problem) {
        guard !listener.address.isUnix else { return }
        let host = fields.first(.host).flatMap { Authority.parse($0) }
        guard let host, HostRules(admin: listener.address).allows(host) else {
            throw Problem(
                status: 403,
                title: "Host not allowed",
                detail: "the admin API answers for loopback names and its listen address only; use one of them as Host"
            )
        }
        for origin in fields.all(.origin) where !OriginRules.isSameSite(origin: origin, host: host) {
            throw Problem(
                status: 403,
                title: "Origin not allowed",
                detail: "web pages may not use the admin API; use the drydock command"
            )
        }
    }

    private func notFound(_ path: String, at listener: ListenerInfo) -> Problem {
        var paths: [AdminPath] = []
        for route in routes where !paths.contains(route.path) { paths.append(route.path) }
        let list = paths.map(\.rawValue).joined(separator: ", ")
        return Problem(
            status: 404,
            title: "Not found",
            detail: listener.role == .metrics
                ? "\(path) is not told here; there are \(list)"
                : "\(path) is not part of the admin API; there are \(list)"
        )
    }

    private static func notAllowed(_ path: String, _ allowed: String) -> Problem {
        Problem(
            status: 405,
            title: "Method not allowed",
            detail: "\(path) takes \(allowed)",
            fields: Fields([("Allow", allowed)])
        )
    }
}

@available(*, unavailable) extension AdminHandler: Sendable {}

/// A parsed request of the admin API.
package struct AdminRequest: Sendable {
    /// The values for the `:name`s of the route in the path, in order, percent-decoded.
    package var pathParameters: [String]
    /// The items of the query, percent-decoded, in order.
    package var queryItems: [(name: String, value: String)]
    /// The body of the request; empty for routes that take none.
    package var body: [UInt8]
    /// The value of Accept; nil if there is none.
    package var accept: String?
    /// The value of Upgrade; nil if there is none.
    package var upgrade: String?

    package init(pathParameters: [String] = [], queryItems: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.pathParameters = pathParameters
        self.queryItems = queryItems
        self.body = body
    }

    /// The query by name; the last of duplicate items is used.
    package var query: [String: String] { Dictionary(queryItems.map { ($0.name, $0.value) }) { $1 } }

    /// Checks the names of the query's items.
    /// - Throws: a 400 if there is another one.
    package func check(_ names: Set<String>) throws(Problem) {
        for (name, _) in queryItems where !names.contains(name) {
            if names.isEmpty {
                throw Problem.badQuery("\(name) is not known here, and nothing else is; leave the query out")
            }
            throw Problem.badQuery("\(name) is not known here; there are \(names.sorted().joined(separator: ", "))")
        }
    }

    /// Checks the path of a folder.
    /// - Throws: a 400 if it is not absolute.
    package static func check(folder path: String) throws(Problem) {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw Problem.badQuery(
                "'\(path)' is not an absolute path; the daemon may have another working folder than you"
            )
        }
    }

    /// Decodes the body as a document.
    /// - Throws: a 400 that names the mistake.
    package func decode<Value: Decodable>(_ type: Value.Type) throws(Problem) -> Value {
        do {
            return try AdminJSON.decode(type, from: body)
        } catch {
            throw .badQuery("the body is not the expected JSON document: \(AdminJSON.reason(error))")
        }
    }
}

/// A body that is made while it is sent.
package protocol AdminStream: Sendable {
    /// Waits for the next bytes; called when the client has read most of the previous ones.
    /// - Returns: nil at the end, or if the task is cancelled.
    func next() async -> [UInt8]?
    /// Ends the stream: no bytes are asked for any more.
    func close()
}

/// The answer of a route.
package struct AdminAnswer: Sendable {
    package var status: Int
    package var type: String
    package var body: [UInt8]
    /// A stream that is sent in place of `body`, until it ends, the client leaves, or the daemon drains.
    package var stream: (any AdminStream)?
    /// What the connection is given to after a 101, in place of all that.
    package var upgrade: AdminUpgrade?

    package init(status: Int = 200, type: String, body: [UInt8]) {
        self.status = status
        self.type = type
        self.body = body
    }

    /// An answer that gives the connection away.
    package init(_ upgrade: AdminUpgrade) {
        self.init(status: 101, type: "", body: [])
        self.upgrade = upgrade
    }

    /// An answer with a JSON document.
    /// - Throws: a 500 if it cannot be encoded.
    package static func json(_ value: some Encodable, status: Int = 200) throws(Problem) -> AdminAnswer {
        do {
            return AdminAnswer(status: status, type: "application/json", body: try AdminJSON.encode(value))
        } catch {
            throw Problem(status: 500, title: "Encoding failed", detail: "\(error)")
        }
    }

    /// An answer with a JSON document that may be long, encoded off the loop.
    /// - Throws: a 500 if it cannot be encoded.
    package static func jsonBehind(_ value: some Encodable & Sendable) async throws(Problem) -> AdminAnswer {
        let encoding = Task.detached { () -> Result<AdminAnswer, Problem> in
            do throws(Problem) { return .success(try json(value)) } catch { return .failure(error) }
        }
        return try await encoding.value.get()
    }

    package static func text(_ text: String, status: Int = 200, type: String = "text/plain") -> AdminAnswer {
        AdminAnswer(status: status, type: type, body: Array(text.utf8))
    }
}

/// A protocol of its own on a connection of the admin API (RFC 9110 section 7.8). One of its functions is called, once.
package struct AdminUpgrade: Sendable {
    /// The value of Upgrade.
    package let name: String
    /// Called with the socket of the connection, non-blocking, which it owns from then on; on the loop.
    package let taken: @Sendable (Int32) -> Void
    /// Called if the connection cannot be given away.
    package let refused: @Sendable () -> Void

    package init(
        to name: String,
        taken: @escaping @Sendable (Int32) -> Void,
        refused: @escaping @Sendable () -> Void
    ) {
        (self.name, self.taken, self.refused) = (name, taken, refused)
    }
}

/// The route of one method on one path; each feature of the daemon has its own.
package struct AdminRoute: Sendable {
    package typealias Perform = @Sendable (AdminRequest) async throws(Problem) -> AdminAnswer

    /// The method; a route for GET answers HEAD, too.
    package let method: HTTPWire.Method
    package let path: AdminPath
    /// The most bytes of a request body; 0 for routes that do not read it.
    package let bodyLimit: Int
    /// Makes the answer; called on the loop of the connection.
    package let perform: Perform

    package init(_ method: HTTPWire.Method, _ path: AdminPath, bodyLimit: Int = 0, perform: @escaping Perform) {
        self.method = method
        self.path = path
        self.bodyLimit = bodyLimit
        self.perform = perform
    }

    /// The methods that a client may use, as `Allow` lists them.
    var allowed: String { method == .get ? "GET, HEAD" : method.name }

    func answers(_ method: HTTPWire.Method) -> Bool { method == self.method || method == .head && self.method == .get }
}

extension Problem {
    /// A 400 for a query or a body that cannot be understood.
    package static func badQuery(_ detail: String) -> Problem {
        Problem(status: 400, title: "Bad query", detail: detail)
    }
}

// MARK: - The JSON form of the admin API's documents

/// Encodes and decodes the documents of the admin API as JSON: names are in snake_case, members are sorted, and unknown
/// members are ignored.
package enum AdminJSON {
    /// Encodes one document, with a newline at its end.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value)) + [0x0A]
    }

    /// Decodes one document.
    /// - Throws: `DecodingError` if the bytes are not such a document.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }

    /// The error of a decoder in one line, with its position in the document.
    package static func reason(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        let (context, missing): (DecodingError.Context, String?) =
            switch error {
            case .keyNotFound(let key, let context): (context, key.stringValue)
            case .valueNotFound(_, let context), .typeMismatch(_, let context), .dataCorrupted(let context):
                (context, nil)
            @unknown default: (DecodingError.Context(codingPath: [], debugDescription: "\(error)"), nil)
            }
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        let position = path.isEmpty ? "" : " at \(path.hasPrefix(".") ? String(path.dropFirst()) : path)"
        return missing.map { "'\($0)' is missing\(position)" } ?? "\(context.debugDescription)\(position)"
    }
}

/// The document of an answer with an error status: problem details (RFC 9457).
package struct AdminProblem: Codable, Sendable, Equatable {
    /// The kind of the problem.
    package var title: String
    /// The problem itself, with advice.
    package var detail: String
    /// The status of the answer; nil if the sender leaves it out.
    package var status: Int?
}
