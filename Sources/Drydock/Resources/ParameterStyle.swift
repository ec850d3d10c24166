// How the properties of a program's own type become parameters: their names, their values, and which are left out.

import Content
import FoundationEssentials
import HTTPWire
import Policies

/// How the properties of a value become parameters, or members of a content.
public struct ParameterStyle: Sendable {
    /// How properties are named.
    public enum Names: String, Sendable, Hashable, CaseIterable {
        /// As they are.
        case asTheyAre
        /// `userID`, `URLString` and `HTTPServer2` are `user_id`, `url_string` and `http_server2`.
        case snakeCase
        /// `user_id` is `userId`.
        case camelCase
    }

    /// How a `Date` is written.
    public enum Dates: String, Sendable, Hashable, CaseIterable {
        /// `2024-05-06T07:08:09Z`, to the second; a property list has a type for it.
        case iso8601
        /// Seconds since 1970, as a number.
        case seconds
        /// Milliseconds since 1970, as a whole number.
        case milliseconds
    }

    /// Changes a value: it has the path of the property, such as `address.street`, and nil leaves the property out.
    public typealias Transform = @Sendable (_ path: String, _ value: JSONValue) -> JSONValue?

    /// Of all properties, within others and in lists, too. As they are by default.
    public var names: Names
    /// Properties that are left out, by their path before they are renamed, such as `address.street`; `*` leaves out all.
    public var ignored: Set<String>
    /// As ISO 8601 by default.
    public var dates: Dates
    /// Leaves out what is null, and objects that have no members left, at every depth; lists stay as they are. False by
    /// default. A property that is nil is mostly left out in any case, as the compiler's `encode(to:)` does.
    public var removesNulls: Bool
    /// Asked about each property before it is renamed; it is not asked again about what it makes. None by default.
    public var transform: Transform?

    /// A style; what is left out is the default.
    public init(
        names: Names = .asTheyAre,
        ignoring ignored: Set<String> = [],
        dates: Dates = .iso8601,
        removesNulls: Bool = false,
        transform: Transform? = nil
    ) {
        self.names = names
        self.ignored = ignored
        self.dates = dates
        self.removesNulls = removesNulls
        self.transform = transform
    }
}

extension ParameterStyle {
    /// - Throws: `ServiceError.encoding`.
    func pack(_ value: some Encodable) throws(ServiceError) -> ContentTree {
        do {
            var tree = shaped(try TreeEncoder.tree(of: value, dates: dates), "")
            if removesNulls { tree = tree.strippingNulls() }
            return try style?.renamed(tree) ?? tree
        } catch let error as TreeError {
            throw .encoding(ParameterFault.text(error.description))
        } catch {
            throw .encoding(error)
        }
    }

    private var style: NameStyle? {
        switch names {
        case .asTheyAre: nil
        case .snakeCase: .snake
        case .camelCase: .camel
        }
    }

    /// Without what is ignored, and transformed.
    private func shaped(_ tree: ContentTree, _ path: String) -> ContentTree {
        switch tree {
        case .array(let values): return .array(values.map { shaped($0, path) })
        case .object(let members):
            return .object(
                members.compactMap { member in
                    let place = path.isEmpty ? member.name : "\(path).\(member.name)"
                    if ignored.contains(place) || ignored.contains("*") { return nil }
                    guard let transform else { return ContentTree.Member(member.name, shaped(member.value, place)) }
                    let before = JSONValue(member.value)
                    guard let after = transform(place, before) else { return nil }
                    return ContentTree.Member(member.name, after == before ? shaped(member.value, place) : after.tree)
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
