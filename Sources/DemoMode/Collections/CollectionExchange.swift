// One request to demo collections and its answer: the items that it is about, and the changes that it makes.

package import HTTPWire
import Synchronization
import Trees

struct CollectionExchange {
    private let request: CollectionRequest
    private let idName: String
    private let newIDs: NewIDs
    private let limit: Int
    private let segments: [String]
    private let items: [(name: String, value: String)]

    init(_ request: CollectionRequest, idName: String, newIDs: NewIDs, limit: Int) {
        self.request = request
        self.idName = idName
        self.newIDs = newIDs
        self.limit = limit
        let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        func decoded(_ text: Substring) -> String {
            String(decoding: PercentEncoding.decode(text.utf8), as: UTF8.self)
        }
        segments = (parts.first ?? "").split(separator: "/").map(decoded)
        items = FormItems.list(parts.count > 1 ? parts[1] : "")
    }

    /// Answers the request and changes the state.
    /// - Parameter size: set to the size of the state after a change.
    func answer(
        _ state: borrowing Mutex<CollectionState>,
        _ size: borrowing Atomic<Int>
    ) throws(CollectionRefusal) -> CollectionAnswer {
        switch request.method {
        case "GET", "HEAD":
            // The state is copied as a value, and read outside of the lock.
            return try read(state.withLock { $0 })
        case "OPTIONS": return try options(state.withLock { $0 })
        case "POST", "PUT", "PATCH", "DELETE":
            let content = request.method == "DELETE" ? ContentTree.null : try content()
            return try state.withLock { state throws(CollectionRefusal) in
                defer { size.store(state.size, ordering: .relaxed) }
                return try change(&state, content)
            }
        default:
            let state = state.withLock { $0 }
            throw notAllowed(methods(of: try target(state), state))
        }
    }

    /// The content of the request; it has to be an object.
    private func content() throws(CollectionRefusal) -> ContentTree {
        let tree: ContentTree
        do throws(TreeError) { tree = try JSONReader.read(request.body) } catch {
            throw CollectionRefusal(400, "Not JSON", "The content of the request is not JSON: \(error)")
        }
        guard tree.members != nil else {
            throw CollectionRefusal(400, "Not an item", "The content of the request is no JSON object; send one")
        }
        return tree
    }

    // MARK: - Where a request goes

    private enum Target {
        case everything
        case resource(String)
        case item(String, id: String)
    }

    private func target(_ state: CollectionState) throws(CollectionRefusal) -> Target {
        let path = state.isOneList ? [""] + segments : segments
        switch path.count {
        case 0: return .everything
        case 1 where state[path[0]] != nil: return .resource(path[0])
        case 2 where state[path[0]] != nil: return .item(path[0], id: path[1])
        default:
            let names = state.resources.map { "/\($0.name)" }.joined(separator: ", ")
            let known = state.isOneList ? "It has items under their \(idName) alone" : "There are \(names)"
            throw CollectionRefusal(
                404,
                "Not found",
                "The collection has nothing at /\(segments.joined(separator: "/")). \(known)."
            )
        }
    }

    /// The methods that a target allows.
    private func methods(of target: Target, _ state: CollectionState) -> [String] {
        switch target {
        case .everything: return ["GET", "HEAD", "OPTIONS"]
        case .resource(let name):
            if case .single(let value)? = state[name] {
                return ["GET", "HEAD"] + (value.members == nil ? [] : ["PUT", "PATCH"]) + ["OPTIONS"]
            }
            return ["GET", "HEAD", "POST", "OPTIONS"]
        case .item: return ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]
        }
    }

    private func options(_ state: CollectionState) throws(CollectionRefusal) -> CollectionAnswer {
        let methods = methods(of: try target(state), state).joined(separator: ", ")
        return CollectionAnswer(204, Fields([("Allow", methods)]), [])
    }

    private func missing(_ id: String) -> CollectionRefusal {
        CollectionRefusal(404, "Not found", "There is no item with the \(idName) '\(id)'")
    }

    private func notAllowed(_ methods: [String]) -> CollectionRefusal {
        var refusal = CollectionRefusal(
            405,
            "Method not allowed",
            "\(request.method) means nothing here; this takes \(methods.joined(separator: ", "))"
        )
        refusal.fields = methods
        return refusal
    }

    // MARK: - Reading

    private func read(_ state: CollectionState) throws(CollectionRefusal) -> CollectionAnswer {
        switch try target(state) {
        case .everything: return ok(state.tree)
        case .resource(let name):
            switch state[name] {
            case .table(let table)?: return try list(table)
            case .single(let value)?: return ok(value)
            case nil: throw missing(name)
            }
        case .item(let name, let id):
            guard case .table(let table)? = state[name], let row = table.row(id) else { throw missing(id) }
            return ok(row)
        }
    }

    private func list(_ table: CollectionTable) throws(CollectionRefusal) -> CollectionAnswer {
        let query = try CollectionQuery(items, idName: idName)
        let (rows, total) = query.select(table.rows)
        var answer = ok(.array(rows))
        answer.fields.append("X-Total-Count", String(total))
        if let page = query.page { answer.fields.append("Link", links(page, total)) }
        return answer
    }

    private func links(_ page: CollectionQuery.Page, _ total: Int) -> String {
        let last = max(1, (total + page.size - 1) / page.size)
        var pages: [(String, Int)] = [("first", 1)]
        if page.number > 1 { pages.append(("prev", min(page.number - 1, last))) }
        if page.number < last { pages.append(("next", page.number + 1)) }
        pages.append(("last", last))
        let path = request.target.prefix { $0 != "?" }
        let others = items.filter { $0.name != "_page" && $0.name != "_limit" }.map { item in
            "\(PercentEncoding.encode(item.name))=\(PercentEncoding.encode(item.value))&"
        }.joined()
        return pages.map { name, number in
            "<\(request.prefix)\(path)?\(others)_page=\(number)&_limit=\(page.size)>; rel=\"\(name)\""
        }.joined(separator: ", ")
    }

    private func ok(_ value: ContentTree, status: Int = 200) -> CollectionAnswer {
        let bytes = JSONWriter.bytes(value)
        let fields = [("Content-Type", "application/json"), ("ETag", DemoFile.entityTag(of: bytes))]
        return CollectionAnswer(status, Fields(fields), bytes)
    }

    // MARK: - Changing

    private func change(_ state: inout CollectionState, _ content: ContentTree) throws(CollectionRefusal)
        -> CollectionAnswer
    {
        let target = try target(state)
        let methods = methods(of: target, state)
        guard methods.contains(request.method) else { throw notAllowed(methods) }
        switch (target, request.method) {
        case (.resource(let name), "POST"): return try create(name, content, &state)
        case (.resource(let name), let method):
            guard case .single(let before)? = state[name] else { throw notAllowed(methods) }
            try check(before)
            let after = method == "PUT" ? content : before.merging(content)
            try grow(&state, from: before, to: after)
            state[name] = .single(after)
            return ok(after)
        case (.item(let name, let id), _):
            guard case .table(var table)? = state[name], let before = table.row(id) else { throw missing(id) }
            try check(before)
            // The state releases its list first, so that the change is made in place.
            state[name] = .single(.null)
            defer { state[name] = .table(table) }
            guard request.method != "DELETE" else {
                table.remove(id)
                try grow(&state, from: before, to: .empty)
                return ok(.empty)
            }
            // The id of an item does not change.
            let own = before[idName] ?? .string(id)
            let after = (request.method == "PUT" ? content : before.merging(content)).setting(idName, to: own)
            try grow(&state, from: before, to: after)
            table.replace(id, with: after)
            return ok(after)
        case (.everything, _): throw notAllowed(methods)
        }
    }

    private func create(
        _ name: String,
        _ content: ContentTree,
        _ state: inout CollectionState
    ) throws(CollectionRefusal) -> CollectionAnswer {
        guard case .table(var table)? = state[name] else { throw missing(name) }
        let given = try givenID(content)
        if let given, table.row(given) != nil {
            throw CollectionRefusal(
                409,
                "Exists already",
                "There is an item with the \(idName) '\(given)' already; send another one, or none"
            )
        }
        let value: ContentTree = given.flatMap { _ in content[idName] } ?? newID(table)
        let row = content.setting(idName, to: value)
        let id = value.scalar ?? ""
        try grow(&state, from: .empty, to: row)
        state[name] = .single(.null)
        table.append(row, id: id)
        state[name] = .table(table)
        var answer = ok(row, status: 201)
        let path = request.target.prefix { $0 != "?" }
        let folder = path.hasSuffix("/") ? path.dropLast() : path
        answer.fields.append("Location", "\(request.prefix)\(folder)/\(PercentEncoding.encode(id))")
        return answer
    }

    /// The id that a new item has in the request; nil if it gets a new one.
    private func givenID(_ content: ContentTree) throws(CollectionRefusal) -> String? {
        guard let value = content[idName], value != .null else { return nil }
        guard let id = CollectionTable.id(value) else {
            throw CollectionRefusal(
                400,
                "Not an id",
                "The \(idName) of the item is neither a text nor a whole number; send another one, or none"
            )
        }
        return id
    }

    private func newID(_ table: CollectionTable) -> ContentTree {
        switch newIDs {
        case .counting: return .number(String(table.nextNumber))
        case .uuid:
            var source = FakeSource(request.bits)
            while true {
                let id = source.draw(.uuid)
                if table.row(id.scalar ?? "") == nil { return id }
            }
        }
    }

    /// Checks If-Match (RFC 9110 section 13.1.1).
    /// - Throws: a refusal if the item is another one than the client knows.
    private func check(_ before: ContentTree) throws(CollectionRefusal) {
        guard let condition = request.ifMatch else { return }
        let tags = condition.split(separator: ",").map { String($0).trimmed }
        guard !tags.contains("*"), !tags.contains(DemoFile.entityTag(of: JSONWriter.bytes(before))) else { return }
        throw CollectionRefusal(
            412,
            "Precondition failed",
            "The item has changed since; get it again, and change what it is now"
        )
    }

    private func grow(
        _ state: inout CollectionState,
        from before: ContentTree,
        to after: ContentTree
    ) throws(CollectionRefusal) {
        let size = state.size - JSONWriter.bytes(before).count + JSONWriter.bytes(after).count
        guard size <= limit || size <= state.size else {
            throw CollectionRefusal(
                507,
                "Full",
                "The collection holds \(limit) bytes at most; delete items, or begin anew with 'drydock demo reset'"
            )
        }
        state.size = size
    }
}

// MARK: - Requests and answers

/// A request to a collection, without its connection.
package struct CollectionRequest: Sendable {
    package var method: String
    /// The path after the service's prefix, with the query.
    package var target: String
    /// The service's prefix, which `Location` and `Link` begin with.
    package var prefix: String
    /// The value of If-Match; nil without one.
    package var ifMatch: String?
    package var body: [UInt8]
    /// The random bits from which a new id is made.
    package var bits: UInt64

    package init(
        method: String,
        target: String,
        prefix: String = "",
        ifMatch: String? = nil,
        body: [UInt8] = [],
        bits: UInt64 = 0
    ) {
        self.method = method
        self.target = target
        self.prefix = prefix
        self.ifMatch = ifMatch
        self.body = body
        self.bits = bits
    }
}

/// The answer of a collection.
package struct CollectionAnswer: Sendable {
    package var status: Int
    package var fields: Fields
    package var body: [UInt8]

    init(_ status: Int, _ fields: Fields, _ body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// The reason why a collection refuses a request, as a problem document (RFC 9457).
struct CollectionRefusal: Error, Equatable {
    let status: Int
    let title: String
    let detail: String
    var fields: [String] = []

    init(_ status: Int, _ title: String, _ detail: String) {
        self.status = status
        self.title = title
        self.detail = detail
    }
}
