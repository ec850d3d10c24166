// The documents of the admin API as JSON, and the one that says why there is none.

import FoundationEssentials

/// The documents of the admin API as JSON: names in snake_case, members sorted; unknown members are ignored.
package enum AdminJSON {
    /// One document with a newline at its end.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value)) + [0x0A]
    }

    /// - Throws: `DecodingError` where the bytes are no such document.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }

    /// A decoder's error in one line, with its place in the document.
    package static func reason(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        let (context, missing): (DecodingError.Context, String?) =
            switch error {
            case .keyNotFound(let key, let context): (context, key.stringValue)
            case .valueNotFound(_, let context), .typeMismatch(_, let context), .dataCorrupted(let context):
                (context, nil)
            @unknown default: (DecodingError.Context(codingPath: [], debugDescription: "\(error)"), nil)
            }
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        let place = path.isEmpty ? "" : " at \(path.hasPrefix(".") ? String(path.dropFirst()) : path)"
        return missing.map { "'\($0)' is missing\(place)" } ?? "\(context.debugDescription)\(place)"
    }
}

/// Any answer with an error status: problem details (RFC 9457).
package struct AdminProblem: Codable, Sendable, Equatable {
    /// What kind of problem it is.
    package var title: String
    /// What happened, and what to do about it.
    package var detail: String
    /// The status of the answer; nil if the sender leaves it out.
    package var status: Int?
}
