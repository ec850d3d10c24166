// How parameters are written into a query or a form: lists, truth values, order, and which characters are encoded.

import Content
import Policies

/// How parameters are written into a query or a form. An object within is `a[b]=1`, and null is a name alone.
public struct FormEncoding: Sendable, Hashable {
    /// How a list is written.
    public enum Lists: String, Sendable, Hashable, CaseIterable {
        /// `a[]=1&a[]=2`
        case brackets
        /// `a=1&a=2`
        case repeated
        /// `a=1,2`; a list of objects or lists is written with brackets.
        case commas
    }

    /// How true and false are written.
    public enum Booleans: String, Sendable, Hashable, CaseIterable {
        /// `true` and `false`
        case words
        /// `1` and `0`
        case digits
    }

    /// Which characters are percent-encoded.
    public enum Escaping: String, Sendable, Hashable, CaseIterable {
        /// All but the unreserved ones of RFC 3986: letters, digits, `-`, `.`, `_` and `~`. A plus sign is `%2B`.
        case rfc3986
        /// The same, but that a space is `+`, as forms of web pages have it.
        case form
        /// Only what RFC 3986 does not allow in a query, and `&`, `=`, `#` and `%`: `:`, `/`, `?`, `+` and others stay as
        /// they are. A server that reads forms takes a plus sign for a space.
        case readable
    }

    /// With brackets by default.
    public var lists: Lists
    /// Words by default.
    public var booleans: Booleans
    /// As RFC 3986 says by default.
    public var escaping: Escaping
    /// Items go out by the bytes of their names, not in the order that is given. False by default.
    public var isSorted: Bool

    /// An encoding; what is left out is the default.
    public init(
        lists: Lists = .brackets,
        booleans: Booleans = .words,
        escaping: Escaping = .rfc3986,
        isSorted: Bool = false
    ) {
        self.lists = lists
        self.booleans = booleans
        self.escaping = escaping
        self.isSorted = isSorted
    }

    /// As RFC 3986 says; the encoding of a query where nothing else is said.
    public static let rfc3986 = FormEncoding()
    /// As forms of web pages are sent; the encoding of a content where nothing else is said.
    public static let form = FormEncoding(escaping: .form)
    /// As the library Docker does: sorted, lists with brackets, 1 and 0.
    public static let docker = FormEncoding(booleans: .digits, isSorted: true)
    /// As the library MMNetworkingKit does: lists as repeated names, 1 and 0.
    public static let mm = FormEncoding(lists: .repeated, booleans: .digits)
}

extension FormEncoding {
    /// The items as one text; those without a name are left out.
    func text(_ parameters: Parameters) -> String {
        items(parameters).map { item in
            item.value.map { "\(escape(item.name))=\(escape($0))" } ?? escape(item.name)
        }.joined(separator: "&")
    }

    /// Before they are escaped.
    func items(_ parameters: Parameters) -> [FormItem] {
        let style = FormStyle(
            arrays: lists == .repeated ? .repeated : .brackets,
            booleans: booleans == .digits ? .digits : .words
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

    /// With lists of plain values as one value each, where they are written with commas.
    private func joined(_ tree: ContentTree) -> ContentTree {
        guard lists == .commas else { return tree }
        switch tree {
        case .array(let values):
            let texts = values.map { value in
                if case .bool(let value) = value, booleans == .digits { value ? "1" : "0" } else { value.scalar }
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
                    Self.readable.contains(byte) ? [byte] : Array(PercentEncoding.encode(CollectionOfOne(byte)).utf8)
                },
                as: UTF8.self
            )
        }
    }

    /// `pchar`, `/` and `?` (RFC 3986 section 3.4), without what separates items.
    private static let readable: Set<UInt8> = Set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$'()*+,;:@/?".utf8
    )
}
