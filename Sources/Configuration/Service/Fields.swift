// Changes to the fields and the query of requests.

import Content

extension KeyTable {
    static let headers = SectionDescriptor(
        name: "headers",
        keys: [
            KeyDescriptor(
                "set",
                .map(.fieldName, .text(.fieldValue)),
                "Fields that replace the request's own.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "add",
                .map(.fieldName, .text(.fieldValue)),
                "Field lines that are added to the request.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "remove",
                .list(.text(.token)),
                "Fields that are removed from the request.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "underscore",
                .choice(UnderscorePolicy.allCases.map(\.rawValue)),
                default: "pass",
                "What happens to the client's fields with an underscore in their name, which CGI, WSGI and Rack read as a hyphen: pass removes only those that could change what is stored for others, drop removes all.",
                inherited: .endpoints
            ),
        ]
    )

    static let queryItem = SectionDescriptor(
        name: "query",
        keys: [
            KeyDescriptor("value", .oneOrMore(.text(.any)), "The value, or a list of values.", required: true),
            KeyDescriptor(
                "secret",
                .boolean,
                "Whether the item carries credentials: the service then refuses foreign web pages, and the item is shown nowhere. If this is not set, the name decides."
            ),
        ]
    )
}

/// The treatment of request fields with an underscore in their name.
package enum UnderscorePolicy: String, Sendable, CaseIterable {
    case pass, drop
}

/// The changes to the fields of a request, applied in the order underscore, remove, set, add.
package struct HeaderRules: Sendable, Equatable {
    package var underscore: UnderscorePolicy
    package var set: [HeaderValue]
    package var add: [HeaderValue]
    package var remove: [String]

    package var isEmpty: Bool { self.set.isEmpty && add.isEmpty && remove.isEmpty && underscore == .pass }
}

/// A query item with its values.
package struct QueryRule: Sendable, Hashable {
    package let name: String
    /// The values in the order of the file, not percent-encoded.
    package let values: [String]
    /// Whether the item carries credentials: requests of foreign web pages are refused, and the value is never shown.
    /// Default: decided by the name.
    package let isSecret: Bool

    package init(name: String, values: [String], isSecret: Bool? = nil) {
        self.name = name
        self.values = values
        self.isSecret = isSecret ?? SecretNames.contains(name)
    }
}

extension HeaderRules {
    private static let defaults = HeaderRules(SectionReader(nothingOf: KeyTable.headers))

    package init() { self = .defaults }

    init(_ reader: SectionReader) {
        set = reader.headerValues("set")
        add = reader.headerValues("add")
        remove = reader.texts("remove")
        underscore = reader.choice(always: "underscore")
    }
}

extension Resolver {
    func query(_ reader: SectionReader) -> [QueryRule] {
        reader.map("query").compactMap { entry in
            guard case .section(let entries) = entry.value.content else { return nil }
            let item = SectionReader(entries: entries, section: KeyTable.queryItem)
            let isSecret = item.entry("secret") == nil ? nil : item.bool("secret")
            return QueryRule(name: entry.key, values: item.texts("value"), isSecret: isSecret)
        }
    }
}
