// The targets of an endpoint with parameters: the client's target in its parts, the origin's target made of it, and the
// reverse.

import HTTPWire
import Policies
package import Trees

/// The target of the request to the origin.
package struct FilledTarget: Sendable, Equatable {
    /// The target below the base URL, which is empty, or begins with a slash or a question mark.
    package let rest: String
    /// The parameters that are sent in the content.
    package let members: [ContentTree.Member]

    /// The most bytes of a target.
    static let limit = 16 * 1024
}

extension RequestShape {
    /// Fills `to` from the path, the query, the content and the defaults, in this order; other parameters become query
    /// items or members of the content.
    /// - Parameters:
    ///   - rest: the target without the service's prefix; the endpoint's pattern matches it.
    ///   - content: the content of the request; nil if it was not read.
    package func fill(_ rest: String, content: ContentTree? = nil) throws(RequestFault) -> FilledTarget {
        var filling = TargetFilling(self, TargetParts(rest, pattern), content)
        var target = try to.map { to throws(RequestFault) in try filling.path(to) } ?? String(rest.prefix { $0 != "?" })
        let own = try to.map { to throws(RequestFault) in try filling.query(to) } ?? []
        let added = try filling.addRest()
        var items = own + filling.kept + added.items
        if style.isSorted { items = Self.sorted(items) }
        // An empty query is kept if the path is the client's.
        let isOpen = to == nil && rest.contains("?") && filling.hasNoItems
        if !items.isEmpty || isOpen { target += "?" + items.joined(separator: "&") }
        guard target.utf8.count <= FilledTarget.limit else { throw .tooLong(limit: FilledTarget.limit) }
        return FilledTarget(rest: target, members: added.members)
    }

    /// Sorts items by the bytes of their decoded names; items of one name keep their order, which has a meaning.
    private static func sorted(_ items: [String]) -> [String] {
        let named = items.map { (name: TargetParts.Item($0[...]).name, text: $0) }.enumerated()
        return named.sorted { one, other in
            one.element.name == other.element.name
                ? one.offset < other.offset : one.element.name.lexicographicallyPrecedes(other.element.name)
        }.map(\.element.text)
    }
}

/// One filling, with a record of the used parts of the request.
private struct TargetFilling {
    private let shape: RequestShape
    private let request: TargetParts
    private let content: ContentTree?
    /// The indices of items that are not sent as they are.
    private var used: Set<Int> = []
    private var filled: Set<String> = []

    init(_ shape: RequestShape, _ request: TargetParts, _ content: ContentTree?) {
        self.shape = shape
        self.request = request
        self.content = content
    }

    var hasNoItems: Bool { request.items.isEmpty }

    /// The items of the client's query that were not used, unchanged.
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
                // A server that decodes once more must not find a dot segment either.
                if DotSegments.mayOccur(in: path) { throw .unfit(parameter: name) }
            }
        }
        return path
    }

    /// The items of the template's own query; they replace the client's items of the same names.
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
        let indices = request.indices(of: name)
        if let index = indices.first {
            guard indices.count == 1 else { throw .repeated(parameter: name) }
            used.insert(index)
            return request.items[index].value
        }
        let found =
            content?.value(at: name.split(separator: ".")) ?? shape.parameters.first { $0.name == name }?.value
        guard let found else { throw .missing(parameter: name) }
        guard let scalar = found.scalar else { throw .structured(parameter: name) }
        return Array(scalar.utf8)
    }

    /// Where the parameters go that `to` has not used: as items into the query, or as members into the content.
    mutating func addRest() throws(RequestFault) -> (items: [String], members: [ContentTree.Member]) {
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
                for index in request.indices(of: name) {
                    used.insert(index)
                    values.append(try Self.text(request.items[index].value, name))
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

/// The parts of a target without the service's prefix.
struct TargetParts {
    /// An item of the query.
    struct Item {
        /// The item, undecoded.
        let text: Substring
        /// The name, decoded in the form of HTML forms.
        let name: [UInt8]

        var value: [UInt8] {
            guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "=")) else { return [] }
            return PercentEncoding.decode(form: text.utf8[mark...].dropFirst())
        }

        init(_ text: Substring) {
            self.text = text
            name = PercentEncoding.decode(form: text.utf8.prefix { $0 != UInt8(ascii: "=") })
        }
    }

    /// The parameters of the path, decoded.
    private(set) var path: [String: [UInt8]] = [:]
    /// The part that `*` matched, undecoded: empty, or beginning with a slash.
    private(set) var tail = ""
    let items: [Item]

    /// Takes a target apart.
    /// - Parameter pattern: the pattern, which matches the target.
    init(_ rest: String, _ pattern: PathPattern) {
        let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        items = halves.count < 2 ? [] : halves[1].split(separator: "&").map(Item.init)
        var segments = (halves.first ?? "").dropFirst().split(separator: "/", omittingEmptySubsequences: false)[...]
        for segment in pattern.segments {
            if case .rest = segment {
                tail = segments.map { "/" + $0 }.joined()
                // The slash in front of an empty rest belongs to the rest.
                if tail == "/", halves.first?.hasSuffix("/") == false { tail = "" }
                return
            }
            guard let text = segments.popFirst() else { return }
            if case .parameter(let name) = segment { path[name] = PercentEncoding.decode(text.utf8) }
        }
    }

    /// Where items of that name are.
    func indices(of name: String) -> [Int] {
        let name = Array(name.utf8)
        return items.indices.filter { items[$0].name == name }
    }

    /// Whether items name the parameter, or a member of it.
    func names(_ name: String) -> Bool {
        items.contains { item in
            item.name.starts(with: name.utf8)
                && (item.name.count == name.utf8.count || item.name[name.utf8.count] == UInt8(ascii: "["))
        }
    }
}

extension RequestShape {
    /// The client's target that leads to a target on the origin; nil if none of this endpoint does, or if the target
    /// does not determine it.
    /// - Parameter target: the target below the base URL.
    func rest(leadingTo target: String) -> String? {
        guard let to else { return (try? fill(target))?.rest == target ? target : nil }
        let halves = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard var found = Self.match(halves.first ?? "", to.path[...]) else { return nil }
        let own = Self.items(to.query ?? [])
        var extra: [String] = []
        for item in halves.count < 2 ? [] : halves[1].split(separator: "&").map(TargetParts.Item.init) {
            guard let template = own.first(where: { $0.name == item.name }) else {
                extra.append(String(item.text))
                continue
            }
            if let parameter = template.parameter { found.values[parameter] = item.value }
        }
        guard let path = path(found) else { return nil }
        let inPath = Set(pattern.segments.compactMap(\.parameterName))
        var items: [String] = []
        for (name, value) in found.values.sorted(by: { $0.key < $1.key }) where !inPath.contains(name) {
            if parameters.first(where: { $0.name == name })?.value.scalar.map({ Array($0.utf8) }) == value { continue }
            items.append("\(PercentEncoding.encode(name))=\(PercentEncoding.encode(value))")
        }
        items += extra
        let rest = items.isEmpty ? path : path + "?" + items.joined(separator: "&")
        return (try? fill(rest))?.rest == target ? rest : nil
    }

    /// The path of the client's target.
    private func path(_ found: Found) -> String? {
        var path = ""
        for segment in pattern.segments {
            switch segment {
            case .literal(let bytes): path += "/" + String(decoding: bytes, as: UTF8.self)
            case .rest: path += found.tail
            case .parameter(let name):
                guard let value = found.values[name] else { return nil }
                path += "/" + PercentEncoding.encode(value)
            }
        }
        return path.isEmpty ? "/" : path
    }

    /// The values of the parameters that were found in a target.
    private struct Found {
        var values: [String: [UInt8]] = [:]
        var tail = ""
    }

    /// Matches a path; a parameter ends at the first occurrence of the literal that follows.
    private static func match(_ path: Substring, _ pieces: ArraySlice<TargetTemplate.Piece>) -> Found? {
        var (path, pieces, found) = (path, pieces, Found())
        while let piece = pieces.popFirst() {
            switch piece {
            case .literal(let text):
                guard path.hasPrefix(text) else { return nil }
                path = path.dropFirst(text.count)
            case .rest:
                found.tail = String(path)
                return found
            case .parameter(let name):
                var end = path.firstIndex(of: "/") ?? path.endIndex
                if case .literal(let next)? = pieces.first, !next.hasPrefix("/") {
                    guard let position = path.firstRange(of: next)?.lowerBound else { return nil }
                    end = position
                }
                let value = PercentEncoding.decode(path[..<end].utf8)
                if let other = found.values.updateValue(value, forKey: name), other != value { return nil }
                path = path[end...]
            }
        }
        return path.isEmpty ? found : nil
    }

    /// The items of a template's query by their names, each with its parameter if that is the whole value.
    private static func items(_ pieces: [TargetTemplate.Piece]) -> [(name: [UInt8], parameter: String?)] {
        var items: [(name: [UInt8], parameter: String?)] = []
        var (text, parameters): (String, [String]) = ("", [])
        func flush() {
            guard !text.isEmpty || !parameters.isEmpty else { return }
            let isWhole = parameters.count == 1 && text.hasSuffix("=") && text.count { $0 == "=" } == 1
            items.append((TargetParts.Item(text[...]).name, isWhole ? parameters[0] : nil))
            (text, parameters) = ("", [])
        }
        for piece in pieces {
            switch piece {
            case .rest: break
            case .parameter(let name): parameters.append(name)
            case .literal(let literal):
                for (index, part) in literal.split(separator: "&", omittingEmptySubsequences: false).enumerated() {
                    if index > 0 { flush() }
                    // Text after a parameter in the same item makes the parameter a part of the value.
                    text += part
                }
            }
        }
        flush()
        return items
    }
}

extension PathPattern.Segment {
    fileprivate var parameterName: String? {
        if case .parameter(let name) = self { name } else { nil }
    }
}
