// A request as conditions see it: its names and values, decoded, and its body where that was read.

import Content
package import HTTPWire

/// A request that conditions are checked with. For one request, on one loop.
package struct RequestParts {
    package let method: String
    /// What follows the service's prefix: path and query as they came.
    package let target: String
    package let fields: Fields
    /// The parameters of the endpoint's path, decoded.
    package let parameters: [String: [UInt8]]
    package var body: Body

    package enum Body {
        /// No condition asks for it, or there was nobody to read it from.
        case unread
        /// It is longer than what is read.
        case tooLong
        case whole(WholeBody)
    }

    package init(
        method: String,
        target: String,
        fields: Fields,
        parameters: [String: [UInt8]] = [:],
        body: Body = .unread
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.parameters = parameters
        self.body = body
    }

    /// The path alone.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The values of the query's items of that name.
    package func query(_ name: String) -> [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.values(of: name, in: target.utf8[mark...].dropFirst())
    }

    /// The values of the cookies of that name (RFC 6265 section 5.4).
    package func cookies(_ name: String) -> [String] {
        fields.all(.cookie).flatMap { line in
            line.split(separator: ";").compactMap { pair -> String? in
                let pair = pair.drop { $0 == " " || $0 == "\t" }
                guard let mark = pair.firstIndex(of: "="), pair[..<mark] == name else { return nil }
                return String(pair[mark...].dropFirst())
            }
        }
    }

    /// The values of items of that name, in a query or in a form.
    static func values(of name: String, in items: some Collection<UInt8>) -> [String] {
        items.split(separator: UInt8(ascii: "&")).compactMap { item -> String? in
            let end = item.firstIndex(of: UInt8(ascii: "="))
            guard PercentEncoding.decode(form: item[..<(end ?? item.endIndex)]).elementsEqual(name.utf8) else {
                return nil
            }
            guard let end else { return "" }
            return String(decoding: PercentEncoding.decode(form: item[end...].dropFirst()), as: UTF8.self)
        }
    }
}

/// A body that was read; it is parsed once, and only if a condition asks for that. Loop-bound.
package final class WholeBody {
    package let bytes: [UInt8]
    /// The body as JSON; nil where it is none.
    private(set) lazy var tree: ContentTree? = try? JSONReader.read(bytes, repeats: true)

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

@available(*, unavailable) extension WholeBody: Sendable {}
