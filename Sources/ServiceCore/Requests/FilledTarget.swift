// The target that an endpoint asks for, filled from a request.

package import Content
import HTTPWire
import Policies

/// What a request asks its origin for.
package struct FilledTarget: Sendable, Equatable {
    /// Below the base URL: begins with a slash, or with a question mark, or is empty.
    package let rest: String
    /// The parameters that go into the content.
    package let members: [ContentTree.Member]

    /// Bytes that a target may have.
    static let limit = 16 * 1024
}

extension RequestShape {
    /// Fills `to` from the path, the query, the content and the defaults, in this order; the parameters that are left
    /// go into the query or the members.
    /// - Parameters:
    ///   - rest: what follows the service's prefix; the endpoint's pattern matches it.
    ///   - content: of the request; nil where it was not read.
    package func fill(_ rest: String, content: ContentTree? = nil) throws(RequestFault) -> FilledTarget {
        var filling = TargetFilling(self, TargetParts(rest, pattern), content)
        var target = try to.map { to throws(RequestFault) in try filling.path(to) } ?? String(rest.prefix { $0 != "?" })
        let own = try to.map { to throws(RequestFault) in try filling.query(to) } ?? []
        let placed = try filling.place()
        var items = own + filling.kept + placed.items
        if style.isSorted { items = Self.sorted(items) }
        // A query without items stays one where the path stays the client's.
        let isOpen = to == nil && rest.contains("?") && filling.hasNoItems
        if !items.isEmpty || isOpen { target += "?" + items.joined(separator: "&") }
        guard target.utf8.count <= FilledTarget.limit else { throw .tooLong(limit: FilledTarget.limit) }
        return FilledTarget(rest: target, members: placed.members)
    }

    /// By the bytes of their decoded names; items of one name keep their order, which has a meaning.
    private static func sorted(_ items: [String]) -> [String] {
        let named = items.map { (name: TargetParts.Item($0[...]).name, text: $0) }.enumerated()
        return named.sorted { one, other in
            one.element.name == other.element.name
                ? one.offset < other.offset : one.element.name.lexicographicallyPrecedes(other.element.name)
        }.map(\.element.text)
    }
}

/// One filling, with what of the request it has used.
private struct TargetFilling {
    private let shape: RequestShape
    private let request: TargetParts
    private let content: ContentTree?
    /// Places of items that go no further.
    private var used: Set<Int> = []
    private var filled: Set<String> = []

    init(_ shape: RequestShape, _ request: TargetParts, _ content: ContentTree?) {
        self.shape = shape
        self.request = request
        self.content = content
    }

    var hasNoItems: Bool { request.items.isEmpty }

    /// The items of the client's query that nobody has used, as they came.
    var kept: [String] { request.items.indices.filter { !used.contains($0) }.map { String(request.items[$0].text) } }

    mutating func path(_ to: TargetTemplate) throws(RequestFault) -> String {
        var path = ""
        for piece in to.path {
            switch piece {
            case .literal(let text): path += text
            case .rest:
                path += request.tail
                if DotSegments.mayOccur(in: path) { throw .unfit(parameter: "*") }
            case .parameter(let name):
                let value = try value(name)
                guard !value.isEmpty else { throw .unfit(parameter: name) }
                path += PercentEncoding.encode(value)
                // A server that decodes once more must find no dot segment either.
                if DotSegments.mayOccur(in: path) { throw .unfit(parameter: name) }
            }
        }
        return path
    }

    /// The items of the template's own query; the client's of the same names give way to them.
    mutating func query(_ to: TargetTemplate) throws(RequestFault) -> [String] {
        var text = ""
        for piece in to.query ?? [] {
            switch piece {
            case .literal(let literal): text += literal
            case .rest: break
            case .parameter(let name): text += PercentEncoding.encode(try value(name))
            }
        }
        let items = text.split(separator: "&").map(String.init)
        let names = Set(items.map { TargetParts.Item($0[...]).name })
        used.formUnion(request.items.indices.filter { names.contains(request.items[$0].name) })
        return items
    }

    private mutating func value(_ name: String) throws(RequestFault) -> [UInt8] {
        filled.insert(name)
        if let value = request.path[name] { return value }
        let places = request.places(of: name)
        if let place = places.first {
            guard places.count == 1 else { throw .repeated(parameter: name) }
            used.insert(place)
            return request.items[place].value
        }
        let found =
            content?.value(at: name.split(separator: ".")) ?? shape.parameters.first { $0.name == name }?.value
        guard let found else { throw .missing(parameter: name) }
        guard let scalar = found.scalar else { throw .structured(parameter: name) }
        return Array(scalar.utf8)
    }

    /// Where the parameters go that `to` has not used: as items into the query, or as members into the content.
    mutating func place() throws(RequestFault) -> (items: [String], members: [ContentTree.Member]) {
        var items: [String] = []
        var members: [ContentTree.Member] = []
        for parameter in shape.parameters where !filled.contains(parameter.name) {
            let name = parameter.name
            let fromPath = try request.path[name].map { value throws(RequestFault) in try Self.text(value, name) }
            switch shape.placement {
            case .query:
                if request.names(name) { continue }
                let tree = ContentTree.object([ContentTree.Member(name, fromPath ?? parameter.value)])
                items += FormItems.items(tree, shape.style).map(\.text)
            case .body:
                var values: [ContentTree] = []
                for place in request.places(of: name) {
                    used.insert(place)
                    values.append(try Self.text(request.items[place].value, name))
                }
                let fromQuery = values.count > 1 ? ContentTree.array(values) : values.first
                members.append(ContentTree.Member(name, fromPath ?? fromQuery ?? parameter.value))
            }
        }
        return (items, members)
    }

    private static func text(_ value: [UInt8], _ name: String) throws(RequestFault) -> ContentTree {
        guard let text = String(validating: value, as: UTF8.self) else { throw .notText(parameter: name) }
        return .string(text)
    }
}
