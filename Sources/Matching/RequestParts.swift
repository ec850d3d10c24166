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
    /// What the patterns of all conditions that are checked with the request take together.
    let patternTime = PatternTime()

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
        return RequestParts.items(in: target.utf8[mark...].dropFirst()) { $0.elementsEqual(name.utf8) }.map(\.value)
    }

    /// The names of the query's items, in their order; those of an item without a name are empty.
    package var queryNames: [String] {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [] }
        return RequestParts.items(in: target.utf8[mark...].dropFirst()).map { String(decoding: $0.name, as: UTF8.self) }
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

    /// The items of a query or a form whose decoded name will do.
    fileprivate static func items(
        in bytes: some Collection<UInt8>,
        where isWanted: ([UInt8]) -> Bool = { _ in true }
    ) -> [(name: [UInt8], value: String)] {
        bytes.split(separator: UInt8(ascii: "&")).compactMap { item in
            let end = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            let name = PercentEncoding.decode(form: item[..<end])
            guard isWanted(name) else { return nil }
            return (name, String(decoding: PercentEncoding.decode(form: item[end...].dropFirst()), as: UTF8.self))
        }
    }
}

/// A body that was read; it is parsed once, and only if a condition asks for that. Loop-bound.
package final class WholeBody {
    package let bytes: [UInt8]
    /// The body as JSON; nil where it is none.
    private(set) lazy var tree: ContentTree? = try? JSONReader.read(bytes, repeats: true)
    private lazy var form: [[UInt8]: [String]] = Dictionary(grouping: RequestParts.items(in: bytes), by: \.name)
        .mapValues { $0.map(\.value) }

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The values of the form's items of that name.
    func form(_ name: String) -> [String] { form[Array(name.utf8)] ?? [] }
}

@available(*, unavailable) extension WholeBody: Sendable {}
