// The admin API as a table: which method on which path does what.

package import AdminAPI
package import HTTPWire

/// A parsed request of the admin API.
package struct AdminRequest: Sendable {
    /// The parts of the path at the `:name`s of the route, in order, percent-decoded.
    package var pathParameters: [String]
    /// Percent-decoded, in order.
    package var queryItems: [(name: String, value: String)]
    /// Empty for routes that take none.
    package var body: [UInt8]

    package init(pathParameters: [String] = [], queryItems: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.pathParameters = pathParameters
        self.queryItems = queryItems
        self.body = body
    }

    /// The query by name; the last of duplicate items is used.
    package var query: [String: String] { Dictionary(queryItems.map { ($0.name, $0.value) }) { $1 } }

    /// - Throws: a 400 where the query has another item than these.
    package func check(_ names: Set<String>) throws(Problem) {
        for (name, _) in queryItems where !names.contains(name) {
            throw Problem.badQuery("\(name) is not known here; there are \(names.sorted().joined(separator: ", "))")
        }
    }

    /// - Throws: a 400 where the path of a folder is not absolute.
    package static func check(folder path: String) throws(Problem) {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw Problem.badQuery(
                "'\(path)' is not an absolute path; the daemon may have another working folder than you"
            )
        }
    }

    /// Decodes the body as a document.
    /// - Throws: a 400 that says what is wrong with it.
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
    /// Waits for the next bytes, and is asked for them when the client has taken most of those before.
    /// - Returns: nil at the end, or when the task is cancelled.
    func next() async -> [UInt8]?
    /// Nobody asks for more.
    func close()
}

/// The answer of a route.
package struct AdminAnswer: Sendable {
    package var status: Int
    package var type: String
    package var body: [UInt8]
    /// Instead of `body`, until it ends, the client leaves, or the daemon drains.
    package var stream: (any AdminStream)?

    package init(status: Int = 200, type: String, body: [UInt8]) {
        self.status = status
        self.type = type
        self.body = body
    }

    /// A document.
    /// - Throws: a 500 where it cannot be encoded.
    package static func json(_ value: some Encodable, status: Int = 200) throws(Problem) -> AdminAnswer {
        do {
            return AdminAnswer(status: status, type: "application/json", body: try AdminJSON.encode(value))
        } catch {
            throw Problem(status: 500, title: "Encoding failed", detail: "\(error)")
        }
    }

    /// Encodes a document that may be long, off the loop.
    /// - Throws: a 500 where it cannot be encoded.
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

/// One method on one path. Each feature of the daemon has routes of its own.
package struct AdminRoute: Sendable {
    package typealias Perform = @Sendable (AdminRequest) async throws(Problem) -> AdminAnswer

    /// GET answers HEAD, too.
    package let method: HTTPWire.Method
    package let path: AdminPath
    /// Bytes of a request body at most; 0 for routes that do not read it.
    package let bodyLimit: Int
    /// Called on the loop of the connection.
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
    /// A query or a body that is not understood.
    package static func badQuery(_ detail: String) -> Problem {
        Problem(status: 400, title: "Bad query", detail: detail)
    }
}
