// A tree as the items of a query or a form, and back: nested names, lists, percent-encoding.

package import Policies

/// A name with its value, which is nil for a name alone.
package struct FormItem: Sendable, Equatable {
    package let name: String
    package let value: String?

    package init(_ name: String, _ value: String?) {
        self.name = name
        self.value = value
    }

    /// The item percent-encoded: `name=value`, or the name alone.
    package var text: String {
        value.map { "\(PercentEncoding.encode(name))=\(PercentEncoding.encode($0))" } ?? PercentEncoding.encode(name)
    }
}

package enum FormItems {
    /// The items of an object's members: `a=1`, `a[b]=1` for an object in it, and for a list `a[]=1` or a repeated
    /// `a=1`, as the style says. Null gives a name alone.
    package static func items(_ tree: ContentTree, _ style: FormStyle) -> [FormItem] {
        var items: [FormItem] = []
        for member in (style.isSorted ? tree.sorted() : tree).members ?? [] {
            append(member.value, member.name, style, to: &items)
        }
        return items
    }

    /// The items as one text.
    package static func text(_ tree: ContentTree, _ style: FormStyle) -> String {
        items(tree, style).map(\.text).joined(separator: "&")
    }

    private static func append(_ tree: ContentTree, _ name: String, _ style: FormStyle, to items: inout [FormItem]) {
        switch tree {
        case .object(let members):
            for member in members { append(member.value, "\(name)[\(member.name)]", style, to: &items) }
        case .array(let values):
            for value in values { append(value, style.arrays == .brackets ? name + "[]" : name, style, to: &items) }
        case .bool(let value) where style.booleans == .digits: items.append(FormItem(name, value ? "1" : "0"))
        default: items.append(FormItem(name, tree.scalar))
        }
    }

    // MARK: - Reading

    /// The items of a query or a form as they are, decoded; a name alone has an empty value.
    package static func list(_ text: Substring) -> [(name: String, value: String)] {
        text.utf8.split(separator: UInt8(ascii: "&")).map { item in
            let end = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            func decoded(_ part: Substring.UTF8View) -> String {
                String(decoding: PercentEncoding.decode(form: part), as: UTF8.self)
            }
            return (decoded(item[..<end]), decoded(item[end...].dropFirst()))
        }
    }

    /// Reads a form as a tree: `a[b]` is a member of an object, `a[]` and a repeated name are lists, and every value is
    /// a text.
    /// - Throws: an error if the bytes are not UTF-8, names contradict one another, or a limit is exceeded.
    package static func read(_ bytes: [UInt8], limits: TreeLimits = TreeLimits()) throws(TreeError) -> ContentTree {
        let root = FormNode()
        var count = 0
        for item in bytes.split(separator: UInt8(ascii: "&")) {
            count += 1
            guard count <= limits.values else { throw TreeError("the form has more than \(limits.values) items") }
            let mark = item.firstIndex(of: UInt8(ascii: "="))
            let value = try mark.map { mark throws(TreeError) in try text(item[(mark + 1)...]) }
            let name = try text(item[..<(mark ?? item.endIndex)])
            let path = path(of: name)
            guard path.count <= limits.depth else { throw TreeError("'\(name)' is nested too deep") }
            guard root.insert(value.map { .string($0) } ?? .null, at: path[...]) else {
                throw TreeError("'\(name)' contradicts another item, which has no members or no list")
            }
        }
        return root.tree ?? .empty
    }

    private static func text(_ bytes: ArraySlice<UInt8>) throws(TreeError) -> String {
        guard let text = String(validating: PercentEncoding.decode(form: bytes), as: UTF8.self) else {
            throw TreeError("the form is not UTF-8")
        }
        return text
    }

    /// The path of a name: `a[b][]` is `a`, `b` and an empty name; a name of another form is its own path.
    private static func path(of name: String) -> [String] {
        guard name.hasSuffix("]"), let open = name.firstIndex(of: "["), open > name.startIndex else { return [name] }
        let inner = name[name.index(after: open)...].dropLast()
        let parts = inner.split(separator: "][", omittingEmptySubsequences: false).map(String.init)
        return parts.contains { $0.contains("[") || $0.contains("]") } ? [name] : [String(name[..<open])] + parts
    }
}

/// A value of a form that grows; each item takes the same time, however many there are.
private final class FormNode {
    private var values: [ContentTree] = []
    private var isList = false
    /// The names in the order in which they came.
    private var names: [String] = []
    private var members: [MemberName: FormNode] = [:]

    /// Inserts a value.
    /// - Returns: false if there is another kind of value.
    func insert(_ value: ContentTree, at path: ArraySlice<String>) -> Bool {
        guard let first = path.first, !(first.isEmpty && path.count == 1) else {
            guard members.isEmpty else { return false }
            isList = isList || !path.isEmpty || !values.isEmpty
            values.append(value)
            return true
        }
        guard values.isEmpty else { return false }
        if let member = members[MemberName(first)] { return member.insert(value, at: path.dropFirst()) }
        let member = FormNode()
        names.append(first)
        members[MemberName(first)] = member
        return member.insert(value, at: path.dropFirst())
    }

    /// The items as a tree; nil without a value.
    var tree: ContentTree? {
        if isList { return .array(values) }
        if let value = values.first { return value }
        if names.isEmpty { return nil }
        return .object(
            names.compactMap { name in members[MemberName(name)]?.tree.map { ContentTree.Member(name, $0) } }
        )
    }
}

@available(*, unavailable) extension FormNode: Sendable {}

/// Percent-encoding (RFC 3986 section 2.1).
package enum PercentEncoding {
    /// Whether a byte is never encoded (RFC 3986 section 2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Encodes all but unreserved characters as `%XX`.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in bytes {
            if isUnreserved(byte) {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    package static func encode(_ text: String) -> String { encode(text.utf8) }

    /// Decodes bytes; a percent sign without two hexadecimal digits stays.
    package static func decode(_ bytes: some Collection<UInt8>) -> [UInt8] { decode(bytes, plusIsSpace: false) }

    /// Decodes bytes of a form, in which a plus sign is a space.
    package static func decode(form bytes: some Collection<UInt8>) -> [UInt8] { decode(bytes, plusIsSpace: true) }

    private static func decode(_ bytes: some Collection<UInt8>, plusIsSpace: Bool) -> [UInt8] {
        let bytes = Array(bytes)
        var result: [UInt8] = []
        var position = 0
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "%"), position + 2 < bytes.count, let high = digit(bytes[position + 1]),
                let low = digit(bytes[position + 2])
            {
                result.append(high << 4 | low)
                position += 3
                continue
            }
            result.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            position += 1
        }
        return result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
