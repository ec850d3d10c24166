// The query of a demo collection, which selects items: filters, full text, order and pages.

import Trees

/// The query of a list.
struct CollectionQuery: Equatable {
    enum Comparison: String, CaseIterable {
        case atLeast = "_gte"
        case atMost = "_lte"
        case above = "_gt"
        case below = "_lt"
        case differs = "_ne"
        case contains = "_like"
    }

    struct Filter: Equatable {
        let path: [String]
        /// The comparison of the values; nil for equality.
        let comparison: Comparison?
        /// The values; an item needs one of them, with `differs` none of them.
        var values: [String]
    }

    struct Order: Equatable {
        let path: [String]
        let isDescending: Bool
    }

    /// A page of a list.
    struct Page: Equatable {
        let number: Int
        let size: Int
    }

    private(set) var filters: [Filter] = []
    /// The texts of a full-text query in lower case.
    private(set) var texts: [String] = []
    private(set) var orders: [Order] = []
    private(set) var page: Page?
    /// The part of the list to return, without pages; an end of nil is that of the list.
    private(set) var slice: (start: Int, end: Int?) = (0, nil)

    /// The items on a page if the query does not set it.
    private static let pageSize = 10
    private static let largest = 1_000_000
    /// The most parameters, since each is compared with every item.
    private static let most = 100

    static func == (first: CollectionQuery, second: CollectionQuery) -> Bool {
        first.filters == second.filters && first.texts == second.texts && first.orders == second.orders
            && first.page == second.page && first.slice == second.slice
    }

    /// - Parameters:
    ///   - items: the decoded items of the query, in their order.
    ///   - idName: the name of the id member, which is a filter even if it begins like a parameter.
    init(_ items: [(name: String, value: String)], idName: String) throws(CollectionRefusal) {
        guard items.count <= Self.most else {
            throw CollectionRefusal(400, "Too many parameters", "A list takes \(Self.most) parameters at most")
        }
        var sorts: [String] = []
        var directions: [String] = []
        var numbers: [String: Int] = [:]
        for (name, value) in items {
            switch name {
            case "q": texts.append(value.lowercased())
            case "_sort": sorts += value.split(separator: ",").map(String.init)
            case "_order": directions += value.split(separator: ",").map(String.init)
            case "_page", "_limit", "_start", "_end": numbers[name] = try Self.number(name, value)
            // Scripts send such a parameter to avoid cached answers.
            case "_": break
            case _ where name.hasPrefix("_") && Self.split(name).member != idName:
                throw CollectionRefusal(
                    400,
                    "Unknown parameter",
                    "A list does not know '\(name)'; it knows _sort, _order, _page, _limit, _start, _end, q, and names of members"
                )
            default: add(name, value)
            }
        }
        orders = try Self.orders(sorts, directions)
        let limit = numbers["_limit"]
        if let number = numbers["_page"] {
            page = Page(number: max(1, number), size: max(1, limit ?? Self.pageSize))
        } else {
            let start = numbers["_start"] ?? 0
            slice = (start, numbers["_end"] ?? limit.map { start + $0 })
        }
    }

    private mutating func add(_ name: String, _ value: String) {
        let (member, comparison) = Self.split(name)
        let path = member.split(separator: ".").map(String.init)
        if let index = filters.firstIndex(where: { $0.path == path && $0.comparison == comparison }) {
            filters[index].values.append(value)
        } else {
            filters.append(Filter(path: path, comparison: comparison, values: [value]))
        }
    }

    /// The member and the comparison in a name: `age_gte` is the member `age` and a comparison.
    private static func split(_ name: String) -> (member: Substring, Comparison?) {
        let comparison = Comparison.allCases.first { name.hasSuffix($0.rawValue) }
        return (name.dropLast(comparison?.rawValue.count ?? 0), comparison)
    }

    private static func number(_ name: String, _ text: String) throws(CollectionRefusal) -> Int {
        guard let number = Int(text), 0...largest ~= number else {
            throw CollectionRefusal(
                400,
                "Not a number",
                "'\(name)' takes a whole number up to \(largest), not '\(text)'"
            )
        }
        return number
    }

    /// The orders in `_sort=-age,name` or `_sort=age,name&_order=desc,asc`.
    private static func orders(_ sorts: [String], _ directions: [String]) throws(CollectionRefusal) -> [Order] {
        var orders: [Order] = []
        for (index, name) in sorts.enumerated() {
            let direction = directions.indices.contains(index) ? directions[index].lowercased() : "asc"
            guard direction == "asc" || direction == "desc" else {
                throw CollectionRefusal(400, "Unknown order", "'_order' takes asc or desc, not '\(directions[index])'")
            }
            let isReversed = name.hasPrefix("-")
            let path = name.drop { $0 == "-" }.split(separator: ".").map(String.init)
            orders.append(Order(path: path, isDescending: isReversed != (direction == "desc")))
        }
        return orders
    }

    // MARK: - Selecting

    /// The selected items, and the number of items on all pages.
    func select(_ rows: [ContentTree]) -> (rows: [ContentTree], total: Int) {
        var found = rows.filter(matches)
        if !orders.isEmpty {
            // The sort is stable: items that compare equal keep their order.
            let sorted = found.enumerated().sorted { precedes($0, $1) }
            found = sorted.map(\.element)
        }
        let start = page.map { ($0.number - 1) * $0.size } ?? slice.start
        let end = page.map { $0.number * $0.size } ?? slice.end ?? found.count
        let range = min(start, found.count)..<max(min(start, found.count), min(end, found.count))
        return (Array(found[range]), found.count)
    }

    func matches(_ row: ContentTree) -> Bool {
        filters.allSatisfy { Self.holds($0, row) } && texts.allSatisfy { Self.contains(row, $0) }
    }

    private static func holds(_ filter: Filter, _ row: ContentTree) -> Bool {
        let value = row.value(at: filter.path)
        let text = value?.scalar ?? (value == .null ? "null" : nil)
        switch filter.comparison {
        case nil: return text.map { filter.values.contains($0) } ?? false
        case .differs: return text.map { !filter.values.contains($0) } ?? true
        case .contains:
            guard let text = text?.lowercased() else { return false }
            return filter.values.contains { text.contains($0.lowercased()) }
        case .atLeast: return isEach(filter, value) { $0 >= 0 }
        case .atMost: return isEach(filter, value) { $0 <= 0 }
        case .above: return isEach(filter, value) { $0 > 0 }
        case .below: return isEach(filter, value) { $0 < 0 }
        }
    }

    /// Whether the order of the value to each value of a filter is a wanted one.
    private static func isEach(_ filter: Filter, _ value: ContentTree?, _ isWanted: (Int) -> Bool) -> Bool {
        guard let value else { return false }
        return filter.values.allSatisfy { isWanted(order(value, $0)) }
    }

    /// Whether a text or a number in the value, at any depth, contains the text.
    private static func contains(_ value: ContentTree, _ text: String) -> Bool {
        switch value {
        case .array(let values): values.contains { contains($0, text) }
        case .object(let members): members.contains { contains($0.value, text) }
        default: value.scalar?.lowercased().contains(text) ?? false
        }
    }

    private func precedes(
        _ first: (offset: Int, element: ContentTree),
        _ second: (offset: Int, element: ContentTree)
    ) -> Bool {
        for order in orders {
            let (left, right) = (first.element.value(at: order.path), second.element.value(at: order.path))
            let result = Self.order(left, right)
            if result != 0 { return order.isDescending ? result > 0 : result < 0 }
        }
        return first.offset < second.offset
    }

    /// The order of a value to a text: a number is compared by value with a text that is a number, everything else by
    /// its text.
    private static func order(_ value: ContentTree, _ text: String) -> Int {
        guard case .number(let digits) = value, let order = order(digits, text) else {
            return compare(value.scalar ?? "", text)
        }
        return order
    }

    /// The order of two values: numbers before texts, and missing values last.
    private static func order(_ first: ContentTree?, _ second: ContentTree?) -> Int {
        let (left, right) = (rank(first), rank(second))
        guard left == right else { return compare(left, right) }
        if case .number(let left)? = first, case .number(let right)? = second {
            return order(left, right) ?? 0
        }
        return compare(first?.scalar ?? "", second?.scalar ?? "")
    }

    /// Compares two texts by their values as numbers, exactly; nil if one of them is not a number.
    private static func order(_ first: String, _ second: String) -> Int? {
        // Most numbers are short integers.
        if let left = Int(first), let right = Int(second) { return compare(left, right) }
        guard let left = DecimalNumber(first), let right = DecimalNumber(second) else { return nil }
        return compare(left, right)
    }

    private static func rank(_ value: ContentTree?) -> Int {
        switch value {
        case .number?: 0
        case .bool?: 1
        case .string?, .date?, .data?: 2
        case .array?, .object?: 3
        case .null?, nil: 4
        }
    }

    private static func compare<T: Comparable>(_ first: T, _ second: T) -> Int {
        first < second ? -1 : first == second ? 0 : 1
    }
}
