// What a request says besides its path: names with values, in their order, and how they are written into a query or a
// form.

import FoundationEssentials
import HTTPWire
import Policies
import Trees

/// Names with values, in the order in which they are sent.
///
/// ```swift
/// var query: Parameters = ["page": 2, "tags": ["new", "open"]]
/// query["filter"] = ["city": "London"]
/// ```
public struct Parameters: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    private(set) var members: [ParameterMember]

    /// These, in this order. A name may occur several times, which a query and a form can say.
    public init(_ members: [(name: String, value: JSONValue)] = []) {
        self.members = members.map { ParameterMember($0.name, $0.value) }
    }

    init(members: [ParameterMember]) { self.members = members }

    /// These, in this order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        members = elements.map { ParameterMember($0.0, $0.1) }
    }

    /// The properties of a value, packed as a style says.
    /// - Parameters:
    ///   - value: what is encoded as an object.
    ///   - style: how properties are named and written, and which are left out.
    /// - Throws: `ServiceError.encoding` where it cannot be encoded, or is no object.
    public init(encoding value: some Encodable, style: ParameterStyle = ParameterStyle()) throws(ServiceError) {
        let tree = try style.pack(value)
        guard let members = tree.members else { throw .encoding(ParameterFault.noObject("\(type(of: value))")) }
        self.init(members: members.map { ParameterMember($0.name, JSONValue($0.value)) })
    }

    /// The value of a name, the last one where there are several; setting replaces all of them in the place of the
    /// first, and nil removes them.
    public subscript(name: String) -> JSONValue? {
        get { members.last { $0.name.isSameName(as: name) }?.value }
        set {
            let index = members.firstIndex { $0.name.isSameName(as: name) }
            members.removeAll { $0.name.isSameName(as: name) }
            guard let newValue else { return }
            members.insert(ParameterMember(name, newValue), at: index ?? members.count)
        }
    }

    /// Adds a value, whatever is there with its name.
    public mutating func append(_ value: JSONValue, name: String) { members.append(ParameterMember(name, value)) }

    /// These parameters with others, which win over those of the same name.
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

    /// The parameters without those that are null, and without the objects that have no members left, at every depth.
    public func removingNulls() -> Parameters {
        let tree = ContentTree.object(members.map { ContentTree.Member($0.name, $0.value.tree) }).strippingNulls()
        return Parameters(members: (tree.members ?? []).map { ParameterMember($0.name, JSONValue($0.value)) })
    }

    /// Whether there are none.
    public var isEmpty: Bool { members.isEmpty }

    /// In their order.
    public var names: [String] { members.map(\.name) }

    /// The parameters whose names a rule lets through.
    func filter(_ isIncluded: (String) -> Bool) -> Parameters {
        Parameters(members: members.filter { isIncluded($0.name) })
    }

    /// The parameters as an object.
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

/// A name with its value.
struct ParameterMember: Sendable, Hashable {
    var name: String
    var value: JSONValue

    init(_ name: String, _ value: JSONValue) { (self.name, self.value) = (name, value) }
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

// MARK: - How they are written

/// How parameters are written into a query or a form. An object within is `a[b]=1`, and null is a name alone.
///
/// ```swift
/// let query = FormEncoding.rfc3986.repeatingNames.sorted
/// ```
///
/// A list is `a[]=1&a[]=2`, true and false are words, and items keep their order, unless it says otherwise.
public struct FormEncoding: Sendable, Hashable {
    private enum Lists { case brackets, repeated, commas }
    private enum Escaping { case rfc3986, form, readable }

    private var lists = Lists.brackets
    private var escaping: Escaping
    private var writesDigits = false
    private var isSorted = false

    private init(_ escaping: Escaping) { self.escaping = escaping }

    /// Percent-encodes all but the unreserved characters of RFC 3986: letters, digits, `-`, `.`, `_` and `~`. A plus sign is
    /// `%2B`. Queries are written so if nothing else is said.
    public static let rfc3986 = FormEncoding(.rfc3986)

    /// As in RFC 3986, but a space is `+`, as forms of web pages have it. Contents are written so if nothing else is said.
    public static let form = FormEncoding(.form)

    /// Percent-encodes only what RFC 3986 does not allow in a query, and `&`, `=`, `#` and `%`: `:`, `/`, `?`, `+` and others
    /// stay as they are. A server that reads forms takes a plus sign for a space.
    public static let readable = FormEncoding(.readable)

    /// The same with lists as repeated names: `a=1&a=2`.
    public var repeatingNames: Self { with { $0.lists = .repeated } }

    /// The same with a list as one value: `a=1,2`; a list of objects or lists is written with brackets.
    public var joiningLists: Self { with { $0.lists = .commas } }

    /// The same with `1` and `0` for true and false.
    public var writingDigits: Self { with { $0.writesDigits = true } }

    /// The same with the items by the bytes of their names, and not in the order that is given.
    public var sorted: Self { with { $0.isSorted = true } }

    private func with(_ change: (inout Self) -> Void) -> Self {
        var result = self
        change(&result)
        return result
    }
}

extension FormEncoding {
    /// The items as one text; those without a name are left out.
    func text(_ parameters: Parameters) -> String {
        items(parameters).map { item in
            item.value.map { "\(escape(item.name))=\(escape($0))" } ?? escape(item.name)
        }.joined(separator: "&")
    }

    /// The names and values of parameters before they are escaped.
    func items(_ parameters: Parameters) -> [FormItem] {
        let style = FormStyle(
            arrays: lists == .repeated ? .repeated : .brackets,
            booleans: writesDigits ? .digits : .words
        )
        let items = parameters.members.filter { !$0.name.isEmpty }.flatMap { member in
            FormItems.items(.object([ContentTree.Member(member.name, joined(member.value.tree))]), style)
        }
        guard isSorted else { return items }
        return items.enumerated().sorted { one, other in
            one.element.name == other.element.name
                ? one.offset < other.offset
                : one.element.name.utf8.lexicographicallyPrecedes(other.element.name.utf8)
        }.map(\.element)
    }

    /// The tree with each list of plain values as one value, if lists are written with commas.
    private func joined(_ tree: ContentTree) -> ContentTree {
        guard lists == .commas else { return tree }
        switch tree {
        case .array(let values):
            let texts = values.map { value in
                if case .bool(let value) = value, writesDigits { value ? "1" : "0" } else { value.scalar }
            }
            let known = texts.compactMap(\.self)
            return known.count == values.count
                ? .string(known.joined(separator: ",")) : .array(values.map { joined($0) })
        case .object(let members):
            return .object(members.map { ContentTree.Member($0.name, joined($0.value)) })
        default: return tree
        }
    }

    private func escape(_ text: String) -> String {
        switch escaping {
        case .rfc3986: PercentEncoding.encode(text)
        case .form:
            text.split(separator: " ", omittingEmptySubsequences: false).map { PercentEncoding.encode(String($0)) }
                .joined(separator: "+")
        case .readable:
            String(
                decoding: text.utf8.flatMap { byte in
                    Self.plainInQueries.contains(byte)
                        ? [byte] : Array(PercentEncoding.encode(CollectionOfOne(byte)).utf8)
                },
                as: UTF8.self
            )
        }
    }

    /// `pchar`, `/` and `?` (RFC 3986 section 3.4), without what separates items.
    private static let plainInQueries: Set<UInt8> = Set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$'()*+,;:@/?".utf8
    )
}

// MARK: - Properties as parameters

/// How the properties of a value become parameters, or members of a content.
///
/// ```swift
/// let style = ParameterStyle(ignoring: ["draft"]).snakeCase.datesInSeconds
/// ```
///
/// Names stay as they are, and dates are ISO 8601, unless it says otherwise.
public struct ParameterStyle: Sendable {
    /// How a `Date` is written.
    enum Dates {
        /// `2024-05-06T07:08:09Z`, to the second; a property list has a type for it.
        case iso8601
        case seconds
        case milliseconds
    }

    private var names: NameStyle?
    private var dates = Dates.iso8601
    /// Properties that are left out, by their path before they are renamed, such as `address.street`; `*` leaves out all.
    public var ignored: Set<String>
    /// Leaves out what is null, and objects that have no members left, at every depth; lists stay as they are. False by
    /// default. A property that is nil is mostly left out in any case, as the compiler's `encode(to:)` does.
    public var removesNulls: Bool
    /// Changes each property before it is renamed: it has the path of the property, such as `address.street`, and its
    /// value, and nil leaves the property out. It is not asked again about what it makes. None by default.
    public var transform: (@Sendable (_ path: String, _ value: JSONValue) -> JSONValue?)?

    /// A style; what is left out is the default.
    public init(
        ignoring ignored: Set<String> = [],
        removesNulls: Bool = false,
        transform: (@Sendable (_ path: String, _ value: JSONValue) -> JSONValue?)? = nil
    ) {
        self.ignored = ignored
        self.removesNulls = removesNulls
        self.transform = transform
    }

    /// The same with names as `user_id`, `url_string` and `http_server2` for `userID`, `URLString` and `HTTPServer2`, also
    /// within others and in lists.
    public var snakeCase: Self { with { $0.names = .snake } }

    /// The same with names as `userId` for `user_id`, also within others and in lists.
    public var camelCase: Self { with { $0.names = .camel } }

    /// The same with dates as seconds since 1970, as a number.
    public var datesInSeconds: Self { with { $0.dates = .seconds } }

    /// The same with dates as milliseconds since 1970, as a whole number.
    public var datesInMilliseconds: Self { with { $0.dates = .milliseconds } }

    private func with(_ change: (inout Self) -> Void) -> Self {
        var result = self
        change(&result)
        return result
    }
}

extension ParameterStyle {
    /// - Throws: `ServiceError.encoding`.
    func pack(_ value: some Encodable) throws(ServiceError) -> ContentTree {
        do {
            var tree = shaped(try TreeEncoder.tree(of: value, dates: dates), "")
            if removesNulls { tree = tree.strippingNulls() }
            return try names?.renamed(tree) ?? tree
        } catch let error as TreeError {
            throw .encoding(ParameterFault.text(error.description))
        } catch {
            throw .encoding(error)
        }
    }

    /// The tree without what is ignored, and with its values transformed.
    private func shaped(_ tree: ContentTree, _ path: String) -> ContentTree {
        switch tree {
        case .array(let values): return .array(values.map { shaped($0, path) })
        case .object(let members):
            return .object(
                members.compactMap { member in
                    let keyPath = path.isEmpty ? member.name : "\(path).\(member.name)"
                    if ignored.contains(keyPath) || ignored.contains("*") { return nil }
                    guard let transform else { return ContentTree.Member(member.name, shaped(member.value, keyPath)) }
                    let before = JSONValue(member.value)
                    guard let after = transform(keyPath, before) else { return nil }
                    return ContentTree.Member(member.name, after == before ? shaped(member.value, keyPath) : after.tree)
                }
            )
        default: return tree
        }
    }
}

extension ParameterStyle.Dates {
    /// - Throws: `ParameterFault` for a time that no calendar has.
    func tree(_ date: Date) throws -> ContentTree {
        let seconds = date.timeIntervalSince1970
        let range = CalendarTime.range
        guard seconds >= Double(range.lowerBound), seconds <= Double(range.upperBound) else {
            throw ParameterFault.text("a date is \(seconds) seconds from 1970, which no calendar has")
        }
        switch self {
        case .iso8601: return .date(Int64(seconds.rounded(.down)))
        case .seconds: return .number(seconds == seconds.rounded() ? "\(Int64(seconds))" : "\(seconds)")
        case .milliseconds: return .number("\(Int64((seconds * 1000).rounded()))")
        }
    }
}
