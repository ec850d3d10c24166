// JSON or a property list in another shape: the mapping of the daemon's configuration as a value of Swift.

import Drydock
public import FoundationEssentials
import Mapping

/// What becomes of a document, before it is read: JSON of another shape, as the key `map` of the daemon makes it.
///
/// ```swift
/// let users: ContentMapping = .each("result.users", [
///     "name": "name.first",
///     "born": .date("birthday", format: "dd.MM.yyyy").omittedIfMissing,
/// ])
/// let format = ResponseFormat<[User]>.json.mapped(by: users)
/// ```
///
/// A text is the value at that path: names with dots between them, `[0]` an element, `\.` a dot within a name, and `.`
/// the value itself. A value that is not there, or is null, becomes null, unless the mapping says otherwise.
public struct ContentMapping: Sendable {
    private let rule: MappingRule
    private let plan: MappingPlan
    /// Why it is no mapping; nil: it is one.
    let fault: String?

    private init(_ rule: MappingRule, fault: String? = nil) {
        self.rule = rule
        self.fault = fault
        plan = MappingPlan(rule)
    }

    /// The value at a path, as it is.
    public static func value(_ path: String) -> Self { at(path, .same, fault: nil) }

    /// The value at a path as a text.
    public static func string(_ path: String) -> Self { converted(path, .string) }

    /// The value at a path as a number.
    public static func number(_ path: String) -> Self { converted(path, .number) }

    /// The value at a path as a truth value.
    public static func bool(_ path: String) -> Self { converted(path, .bool) }

    /// The value at a path as an absolute URL, as it is written.
    public static func url(_ path: String) -> Self { converted(path, .url) }

    /// The value at a path as a date: RFC 3339 in UTC.
    /// - Parameters:
    ///   - path: of the value.
    ///   - format: of the value: `unix`, `unix-ms`, `iso8601`, `http` or a pattern such as `yyyy-MM-dd HH:mm:ss`; nil, the
    ///     default, is Unix seconds or ISO 8601.
    public static func date(_ path: String, format: String? = nil) -> Self { converted(path, .date, format) }

    /// The value at a path as Base64 of its bytes.
    /// - Parameters:
    ///   - path: of the value.
    ///   - format: of the value: `base64`, `base64url` or `hex`; nil, the default, is Base64.
    public static func data(_ path: String, format: String? = nil) -> Self { converted(path, .data, format) }

    /// An object with these members, each of which takes what it needs from the value at a path.
    /// - Parameters:
    ///   - path: of the value that the members are taken from; `.` is the value itself, as with a dictionary alone.
    ///   - members: names, and what becomes of the value.
    public static func object(_ path: String, _ members: KeyValuePairs<String, ContentMapping>) -> Self {
        let shape = MappingRule.Shape.object(
            members.map { MappingRule.Member(name: $0.key, rule: $0.value.rule) }
        )
        let fault = members.isEmpty ? "an object has no members" : members.lazy.compactMap { $0.value.fault }.first
        return at(path, shape, fault: fault)
    }

    /// An array, each element of which a mapping makes from one element.
    /// - Parameters:
    ///   - path: of an array; `.` is the value itself.
    ///   - element: what becomes of each element.
    public static func each(_ path: String, _ element: ContentMapping) -> Self {
        at(path, .each(element.rule), fault: element.fault)
    }

    /// The same mapping; the member, or the element, is left out where its value is not there.
    public var omittedIfMissing: Self { missing(.omit) }

    /// The same mapping; the document cannot be mapped where the value is not there.
    public var required: Self { missing(.error) }

    /// The same mapping, with another value in the place of one that is not there.
    public func or(_ standIn: JSONValue) -> Self {
        Self(
            MappingRule(from: rule.from, rule.shape, missing: rule.missing, standIn: Array(standIn.data)),
            fault: fault
        )
    }

    private func missing(_ missing: MissingValue) -> Self {
        Self(MappingRule(from: rule.from, rule.shape, missing: missing, standIn: rule.standIn), fault: fault)
    }

    private static func converted(_ path: String, _ type: MappedType, _ format: String? = nil) -> Self {
        do throws(ValueFormat.Malformed) {
            guard let format else { return at(path, .converted(type, .usual), fault: nil) }
            return at(path, .converted(type, try ValueFormat(format, of: type)), fault: nil)
        } catch {
            return at(path, .same, fault: "the format '\(format ?? "")' of '\(path)' \(error.reason)")
        }
    }

    private static func at(_ path: String, _ shape: MappingRule.Shape, fault: String?) -> Self {
        do throws(MappingPath.Malformed) {
            return Self(MappingRule(from: try MappingPath(path), shape), fault: fault)
        } catch {
            return Self(MappingRule(shape), fault: "the path '\(path)' \(error.reason)")
        }
    }

    /// Maps a document.
    /// - Parameter document: JSON, or a property list as XML or binary; at most 64 MiB.
    /// - Returns: JSON.
    /// - Throws: ``MappingError/unmapped(_:)``, with the key path.
    public func map(_ document: Data) throws(MappingError) -> Data {
        if let fault { throw .unmapped(fault) }
        let mapped = document.withUnsafeBytes { bytes -> Result<[UInt8], MappingFailure> in
            do throws(MappingFailure) { return .success(try plan.map(bytes, limit: 64 << 20)) } catch {
                return .failure(error)
            }
        }
        switch mapped {
        case .success(let bytes): return Data(bytes)
        case .failure(let failure): throw .unmapped(failure.description)
        }
    }

    /// A digest of the mapping, the same for equal ones.
    var digest: String { plan.digest }
}

extension ContentMapping: ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral {
    /// The value at a path.
    public init(stringLiteral path: String) { self = .value(path) }

    /// An object with these members.
    public init(dictionaryLiteral members: (String, ContentMapping)...) {
        let shape = MappingRule.Shape.object(members.map { MappingRule.Member(name: $0.0, rule: $0.1.rule) })
        let fault = members.isEmpty ? "an object has no members" : members.lazy.compactMap { $0.1.fault }.first
        self.init(MappingRule(shape), fault: fault)
    }
}
