// The form of parameters in queries and contents.

/// The part of a request with an endpoint's parameters.
package enum ParameterPlacement: String, Sendable, CaseIterable {
    case query, body
}

/// The form of a list in a query and a form.
package enum FormArrays: String, Sendable, CaseIterable {
    /// The name has brackets, as in `a[]=1&a[]=2`.
    case brackets
    /// The name is repeated, as in `a=1&a=2`.
    case repeated
}

/// The form of true and false in a query and a form.
package enum FormBooleans: String, Sendable, CaseIterable {
    /// The words `true` and `false`.
    case words
    /// The digits `1` and `0`.
    case digits
}

/// The order in which items of a query, and members of a content, are sent.
package enum ParameterOrder: String, Sendable, CaseIterable {
    case given, sorted
}

/// The style in which a tree becomes items of a query or a form.
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

/// The format of a request's content.
package enum ContentEncodingFormat: String, Sendable, CaseIterable {
    case json, form, multipart, plist
}

/// The style of the names of members.
package enum NameStyle: String, Sendable, CaseIterable {
    case snake, camel
}

/// The form in which a time is sent.
package enum DateForm: Sendable, Hashable {
    /// A number of whole seconds, or milliseconds, since 1970.
    case seconds, milliseconds
    /// ISO 8601, such as `2024-05-06T07:08:09Z`.
    case iso8601
    /// A pattern with `%Y %m %d %H %M %S` and `%%`, in UTC.
    case pattern(String)

    /// Reads `seconds`, `milliseconds`, `iso8601` or a pattern; nil for a text without these directives, or with
    /// another one.
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
