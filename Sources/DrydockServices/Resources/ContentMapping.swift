// JSON or a property list in another shape: the mapping of the daemon's configuration as a value of Swift.

import Drydock
public import FoundationEssentials
import Mapping

/// What becomes of a document, before it is read: JSON of another shape, as the key `map` of the daemon makes it.
///
/// ```swift
/// let users: ContentMapping = .each("result.users", [
///     "name": "name.first",
///     "born": .value("birthday", as: .date, format: "dd.MM.yyyy"),
/// ])
/// let format = ResponseFormat<[User]>.json.mapped(by: users)
/// ```
///
/// A text is the value at that path: names with dots between them, `[0]` an element, `\.` a dot within a name, and `.`
/// the value itself.
public struct ContentMapping: Sendable {
    /// What a value becomes.
    public enum Conversion: String, Sendable, Hashable, CaseIterable {
        /// A text.
        case string
        /// A number.
        case number
        /// A truth value.
        case bool
        /// RFC 3339 in UTC.
        case date
        /// An absolute URL, as it is written.
        case url
        /// Base64, as a text.
        case data
    }

    /// What a value means that is not there; a null is not there either.
    public enum Missing: String, Sendable, Hashable, CaseIterable {
        /// Null.
        case null
        /// The member, or the element, is left out.
        case omit
        /// The document cannot be mapped.
        case error
    }

    private let rule: MappingRule
    private let plan: MappingPlan
    /// Why it is no mapping; nil: it is one.
    let fault: String?

    private init(_ rule: MappingRule, fault: String? = nil) {
        self.rule = rule
        self.fault = fault
        plan = MappingPlan(rule)
    }

    /// The value at a path.
    /// - Parameters:
    ///   - path: of the value.
    ///   - conversion: what it becomes; nil, the default, leaves it as it is.
    ///   - format: of a date: `unix`, `unix-ms`, `iso8601`, `http` or a pattern such as `yyyy-MM-dd HH:mm:ss`; of data:
    ///     `base64`, `base64url` or `hex`; nil, the default, is Unix seconds or ISO 8601, and Base64.
    ///   - missing: what it means that nothing is there.
    ///   - standIn: stands in for a value that is not there.
    public static func value(
        _ path: String,
        as conversion: Conversion? = nil,
        format: String? = nil,
        missing: Missing = .null,
        default standIn: JSONValue? = nil
    ) -> Self {
        var (shape, fault) = (MappingRule.Shape.same, format == nil ? nil : "'format' needs a conversion")
        if let conversion, let type = MappedType(rawValue: conversion.rawValue) {
            do throws(ValueFormat.Malformed) {
                shape = .converted(
                    type,
                    try format.map { text throws(ValueFormat.Malformed) in
                        try ValueFormat(text, of: type)
                    } ?? .usual
                )
                fault = nil
            } catch {
                fault = "the format '\(format ?? "")' of '\(path)' \(error.reason)"
            }
        }
        return at(path, shape, missing: missing, standIn: standIn, fault: fault)
    }

    /// An object with these members, each of which takes what it needs from the value at a path.
    /// - Parameters:
    ///   - path: of the value that the members are taken from; `.` is the value itself, as with a dictionary alone.
    ///   - members: names, and what becomes of the value.
    ///   - missing: what it means that nothing is there.
    public static func object(
        _ path: String,
        _ members: KeyValuePairs<String, ContentMapping>,
        missing: Missing = .null
    ) -> Self {
        let shape = MappingRule.Shape.object(
            members.map { MappingRule.Member(name: $0.key, rule: $0.value.rule) }
        )
        let fault = members.isEmpty ? "an object has no members" : members.lazy.compactMap { $0.value.fault }.first
        return at(path, shape, missing: missing, fault: fault)
    }

    /// An array, each element of which a mapping makes from one element.
    /// - Parameters:
    ///   - path: of an array; `.` is the value itself.
    ///   - element: what becomes of each element.
    ///   - missing: what it means that nothing is there.
    public static func each(_ path: String, _ element: ContentMapping, missing: Missing = .null) -> Self {
        at(path, .each(element.rule), missing: missing, fault: element.fault)
    }

    private static func at(
        _ path: String,
        _ shape: MappingRule.Shape,
        missing: Missing,
        standIn: JSONValue? = nil,
        fault: String?
    ) -> Self {
        let missing = MissingValue(rawValue: missing.rawValue) ?? .null
        do throws(MappingPath.Malformed) {
            let rule = MappingRule(
                from: try MappingPath(path),
                shape,
                missing: missing,
                standIn: standIn.map { Array($0.data) }
            )
            return Self(rule, fault: fault)
        } catch {
            return Self(MappingRule(shape, missing: missing), fault: "the path '\(path)' \(error.reason)")
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
