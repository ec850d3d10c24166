// What a request says besides its path: names with values, in their order.

import Content

/// Names with values, in the order in which they are sent.
///
/// ```swift
/// var query: Parameters = ["page": 2, "tags": ["new", "open"]]
/// query["filter"] = ["city": "London"]
/// ```
public struct Parameters: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    private(set) var members: [JSONValue.Member]

    /// These, in this order. A name may occur several times, which a query and a form can say.
    public init(_ members: [JSONValue.Member] = []) { self.members = members }

    /// These, in this order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        members = elements.map { JSONValue.Member($0.0, $0.1) }
    }

    /// The properties of a value, packed as a style says.
    /// - Parameters:
    ///   - value: what is encoded as an object.
    ///   - style: how properties are named and written, and which are left out.
    /// - Throws: `ServiceError.encoding` where it cannot be encoded, or is no object.
    public init(encoding value: some Encodable, style: ParameterStyle = ParameterStyle()) throws(ServiceError) {
        let tree = try style.pack(value)
        guard let members = tree.members else { throw .encoding(ParameterFault.noObject("\(type(of: value))")) }
        self.init(members.map { JSONValue.Member($0.name, JSONValue($0.value)) })
    }

    /// The value of a name, the last one where there are several; setting replaces all of them in the place of the
    /// first, and nil removes them.
    public subscript(name: String) -> JSONValue? {
        get { members.last { $0.name.isSameName(as: name) }?.value }
        set {
            let place = members.firstIndex { $0.name.isSameName(as: name) }
            members.removeAll { $0.name.isSameName(as: name) }
            guard let newValue else { return }
            members.insert(JSONValue.Member(name, newValue), at: place ?? members.count)
        }
    }

    /// Adds a value, whatever is there with its name.
    public mutating func append(_ value: JSONValue, name: String) { members.append(JSONValue.Member(name, value)) }

    /// These with others, which win over those of the same name.
    public func merging(_ others: Parameters) -> Parameters {
        var result = self
        var placed: Set<MemberName> = []
        for member in others.members {
            // Values that others have several times stay several.
            if placed.insert(MemberName(member.name)).inserted {
                result[member.name] = member.value
            } else {
                result.members.append(member)
            }
        }
        return result
    }

    /// Without those that are null, and without the objects that have no members left, at every depth.
    public func removingNulls() -> Parameters {
        let tree = ContentTree.object(members.map { ContentTree.Member($0.name, $0.value.tree) }).strippingNulls()
        return Parameters((tree.members ?? []).map { JSONValue.Member($0.name, JSONValue($0.value)) })
    }

    /// Whether there are none.
    public var isEmpty: Bool { members.isEmpty }

    /// In their order.
    public var names: [String] { members.map(\.name) }

    /// Those whose names a rule lets through.
    func filter(_ isIncluded: (String) -> Bool) -> Parameters { Parameters(members.filter { isIncluded($0.name) }) }

    /// As an object.
    /// - Throws: `ServiceError.encoding` where a name occurs twice.
    var object: ContentTree {
        get throws(ServiceError) {
            var names: Set<MemberName> = []
            for member in members where !names.insert(MemberName(member.name)).inserted {
                throw .encoding(ParameterFault.repeated(member.name))
            }
            return .object(members.map { ContentTree.Member($0.name, $0.value.tree) })
        }
    }
}

/// Why parameters cannot be sent.
enum ParameterFault: Error, Sendable, CustomStringConvertible {
    case noObject(String)
    case repeated(String)
    case number(String)
    case null(String)
    case text(String)

    var description: String {
        switch self {
        case .noObject(let type): "\(type) is not encoded as an object: its parts have no names"
        case .repeated(let name): "'\(name)' occurs twice, and members of an object have names of their own"
        case .number(let text): "\(text) is no number that JSON can write"
        case .null(let name):
            "'\(name)' is null, which a property list cannot write: leave it out, or set ParameterStyle.removesNulls"
        case .text(let text): text
        }
    }
}
