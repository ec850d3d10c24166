// Why the body of a response is not what a format reads.

/// A body that is not what was expected.
public enum MappingError: Error, Sendable, Hashable {
    /// There is no body, and a value was to be made of one; ``ResponseFormat/optional`` reads nil then.
    case empty
    /// It is no JSON text: why, and where.
    case invalidJSON(String)
    /// It is JSON, and no object.
    case notAnObject
    /// It is JSON, and no list.
    case notAnArray
    /// It is no text in the character set that it says it has.
    case invalidText(String)
    /// It is a property list that is not decoded: nested more than 128 levels deep, or with more values, where each is
    /// written out, than it has bytes (100,000 are always allowed).
    case invalidPropertyList(String)
    /// It is no image, or its header is cut short.
    case invalidImage
    /// There is nothing at this path of keys.
    case missingValue(String)
    /// A ``ContentMapping`` cannot be applied: the key path and the reason.
    case unmapped(String)
}

extension MappingError: CustomStringConvertible {
    /// What is wrong with the body.
    public var description: String {
        switch self {
        case .empty: "there is no body"
        case .invalidJSON(let reason): "it is no JSON: \(reason)"
        case .notAnObject: "it is JSON, and no object"
        case .notAnArray: "it is JSON, and no array"
        case .invalidText(let reason): "it is no text: \(reason)"
        case .invalidPropertyList(let reason): "the property list cannot be decoded: \(reason)"
        case .invalidImage: "it is no image"
        case .missingValue(let path): "there is nothing at '\(path)'"
        case .unmapped(let reason): "it cannot be mapped: \(reason)"
        }
    }
}
