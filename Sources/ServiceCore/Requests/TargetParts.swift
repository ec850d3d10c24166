// A client's target by its parameters: those of the endpoint's path, and the items of the query.

import Content

/// What follows the service's prefix in a target, taken apart.
struct TargetParts {
    /// An item of the query.
    struct Item {
        /// As it came.
        let text: Substring
        /// Decoded as forms are.
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
    /// What `*` matched, as it came: empty, or beginning with a slash.
    private(set) var tail = ""
    let items: [Item]

    /// - Parameter pattern: matches the target.
    init(_ rest: String, _ pattern: PathPattern) {
        let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        items = halves.count < 2 ? [] : halves[1].split(separator: "&").map(Item.init)
        var segments = (halves.first ?? "").dropFirst().split(separator: "/", omittingEmptySubsequences: false)[...]
        for segment in pattern.segments {
            if case .rest = segment {
                tail = segments.map { "/" + $0 }.joined()
                // The slash before nothing belongs to the rest.
                if tail == "/", halves.first?.hasSuffix("/") == false { tail = "" }
                return
            }
            guard let text = segments.popFirst() else { return }
            if case .parameter(let name) = segment { path[name] = PercentEncoding.decode(text.utf8) }
        }
    }

    /// Where items of that name are.
    func places(of name: String) -> [Int] {
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
