// The JSON form of the admin API's documents, and the document of a problem.

import FoundationEssentials

/// Encodes and decodes the documents of the admin API as JSON: names are in snake_case, members are sorted, and unknown
/// members are ignored.
package enum AdminJSON {
    /// Encodes one document, with a newline at its end.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value)) + [0x0A]
    }

    /// Decodes one document.
    /// - Throws: `DecodingError` if the bytes are not such a document.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }

    /// The error of a decoder in one line, with its place in the document.
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

/// The document of an answer with an error status: problem details (RFC 9457).
package struct AdminProblem: Codable, Sendable, Equatable {
    /// The kind of the problem.
    package var title: String
    /// The problem itself, with advice.
    package var detail: String
    /// The status of the answer; nil if the sender leaves it out.
    package var status: Int?
}
