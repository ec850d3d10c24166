// How parameters are written into queries and contents.

/// Where the parameters of an endpoint go.
package enum ParameterPlacement: String, Sendable, CaseIterable {
    case query, body
}

/// How a list is written in a query and a form.
package enum FormArrays: String, Sendable, CaseIterable {
    /// `a[]=1&a[]=2`
    case brackets
    /// `a=1&a=2`
    case repeated
}

/// How true and false are written in a query and a form.
package enum FormBooleans: String, Sendable, CaseIterable {
    /// `true` and `false`
    case words
    /// `1` and `0`
    case digits
}

/// The order in which items of a query, and members of a content, are sent.
package enum ParameterOrder: String, Sendable, CaseIterable {
    case given, sorted
}

/// How a tree becomes items of a query or a form.
package struct FormStyle: Sendable, Hashable {
    package var arrays: FormArrays
    package var booleans: FormBooleans
    package var order: ParameterOrder

    package init(
        arrays: FormArrays = .brackets,
        booleans: FormBooleans = .words,
        order: ParameterOrder = .given
    ) {
        self.arrays = arrays
        self.booleans = booleans
        self.order = order
    }

    package var isSorted: Bool { order == .sorted }
}

/// What the content of a request is sent as.
package enum ContentEncodingFormat: String, Sendable, CaseIterable {
    case json, form, multipart, plist
}

/// How members of objects are named.
package enum NameStyle: String, Sendable, CaseIterable {
    case snake, camel
}

/// How a time is sent.
package enum DateForm: Sendable, Hashable {
    /// Whole seconds, or milliseconds, since 1970, as a number.
    case seconds, milliseconds
    /// `2024-05-06T07:08:09Z`
    case iso8601
    /// By a pattern with `%Y %m %d %H %M %S` and `%%`, in UTC.
    case pattern(String)

    /// `seconds`, `milliseconds`, `iso8601` or a pattern; nil for a text that has none of these directives, or another
    /// one.
    package init?(_ text: String) {
        switch text {
        case "seconds": self = .seconds
        case "milliseconds": self = .milliseconds
        case "iso8601": self = .iso8601
        default:
            let parts = text.split(separator: "%", omittingEmptySubsequences: false)
            guard parts.count > 1 else { return nil }
            var isEscaped = false
            for part in parts.dropFirst() {
                if isEscaped {
                    isEscaped = false
                } else if part.isEmpty {
                    isEscaped = true
                } else if !"YmdHMS".contains(part[part.startIndex]) {
                    return nil
                }
            }
            guard !isEscaped else { return nil }
            self = .pattern(text)
        }
    }
}
