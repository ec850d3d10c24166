// The admin API as a table: which method on which path does what.

internal import FoundationEssentials
package import HTTPWire

/// A request of the admin API, taken apart.
package struct AdminRequest: Sendable {
    /// What stands in the path where the route has a `:name`, in order, percent-decoded.
    package var places: [String]
    /// Percent-decoded, in order.
    package var members: [(name: String, value: String)]
    /// Empty for routes that take none.
    package var body: [UInt8]

    package init(places: [String] = [], members: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.places = places
        self.members = members
        self.body = body
    }

    /// The query by name; of duplicates the last counts.
    package var query: [String: String] { Dictionary(members.map { ($0.name, $0.value) }) { $1 } }

    /// The body as a document.
    /// - Throws: a 400 that says what is wrong with it.
    package func decode<Value: Decodable>(_ type: Value.Type) throws(Problem) -> Value {
        do {
            return try AdminJSON.decode(type, from: body)
        } catch {
            throw .badQuery("the body is not the expected JSON document: \(AdminJSON.reason(error))")
        }
    }
}

/// What a route answers.
package struct AdminAnswer: Sendable {
    package var status: Int
    package var type: String
    package var body: [UInt8]

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

    /// A document that may be long: it is encoded while the loop goes on.
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

/// One method on one path. Each part of the daemon that can be asked brings its own routes.
package struct AdminRoute: Sendable {
    package typealias Perform = @Sendable (AdminRequest) async throws(Problem) -> AdminAnswer

    /// GET answers HEAD, too.
    package let method: HTTPWire.Method
    /// Such as `/v1/jobs/:id`; a segment with a colon stands for any other that is not empty.
    package let path: String
    /// Bytes of a request body at most; 0 for routes that do not read it.
    package let bodyLimit: Int
    /// Called on the loop of the connection.
    package let perform: Perform

    package init(_ method: HTTPWire.Method, _ path: String, bodyLimit: Int = 0, perform: @escaping Perform) {
        self.method = method
        self.path = path
        self.bodyLimit = bodyLimit
        self.perform = perform
    }

    /// What stands for the `:name`s of the path; nil where it is another path.
    func places(in path: String) -> [String]? {
        let wanted = self.path.split(separator: "/", omittingEmptySubsequences: false)
        let given = path.split(separator: "/", omittingEmptySubsequences: false)
        guard wanted.count == given.count else { return nil }
        var places: [String] = []
        for (pattern, segment) in zip(wanted, given) {
            if pattern.hasPrefix(":"), !segment.isEmpty {
                places.append(AdminQuery.decode(segment))
            } else if pattern != segment {
                return nil
            }
        }
        return places
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

/// The documents of the admin API as JSON: names in snake_case, members sorted.
package enum AdminJSON {
    /// One document with a newline at its end.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value)) + [0x0A]
    }

    /// - Throws: `DecodingError` where the bytes are no such document.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }

    /// What a decoder says, with the place in the document, in one line.
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
        let place = path.isEmpty ? "" : " at \(path.hasPrefix(".") ? String(path.dropFirst()) : path)"
        return missing.map { "'\($0)' is missing\(place)" } ?? "\(context.debugDescription)\(place)"
    }
}
