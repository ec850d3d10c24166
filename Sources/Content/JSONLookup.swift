// One value of a JSON text, found by keys and positions, and a text as it stands in a JSON string.

import FoundationEssentials

/// Why a JSON text has no such value.
package struct JSONLookupError: Error, Sendable, Equatable {
    /// In words, without anything of the text.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}

/// Looks into JSON texts. It decodes the whole text: not for long ones on a loop.
package enum JSONLookup {
    /// The text, number or truth value at the end of a path of keys of objects and positions in arrays, as a text.
    /// - Throws: that the bytes are no JSON text, or that there is no such value.
    package static func text(at path: [String], in bytes: [UInt8]) throws(JSONLookupError) -> String {
        let decoder = JSONDecoder()
        if let key = Found.path { decoder.userInfo[key] = path }
        do {
            return try decoder.decode(Found.self, from: Data(bytes)).text
        } catch let error as JSONLookupError {
            throw error
        } catch {
            throw JSONLookupError("it is not JSON")
        }
    }

    /// A text as it stands between the quotes of a JSON string.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 32:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Passed: Decodable { init(from decoder: any Decoder) {} }

    /// What is at the end of the path in `userInfo`; the values beside it are not read.
    private struct Found: Decodable {
        static let path = CodingUserInfoKey(rawValue: "path")
        let text: String

        init(from decoder: any Decoder) throws {
            let path = Self.path.flatMap { decoder.userInfo[$0] } as? [String] ?? []
            text = try Self.text(path[...], decoder)
        }

        private static func text(_ path: ArraySlice<String>, _ decoder: any Decoder) throws -> String {
            guard let key = path.first else { return try scalar(decoder) }
            if let object = try? decoder.container(keyedBy: AnyKey.self) {
                let key = AnyKey(stringValue: key)
                guard object.contains(key) else { throw JSONLookupError("there is no '\(key.stringValue)'") }
                return try text(path.dropFirst(), try object.superDecoder(forKey: key))
            }
            if var array = try? decoder.unkeyedContainer() {
                guard let position = Int(key), position >= 0, position < array.count ?? 0 else {
                    throw JSONLookupError("an array has no position '\(key)'")
                }
                for _ in 0..<position { _ = try array.decode(Passed.self) }
                return try text(path.dropFirst(), try array.superDecoder())
            }
            throw JSONLookupError("there is nothing within a text or a number, and so no '\(key)'")
        }

        private static func scalar(_ decoder: any Decoder) throws -> String {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) { return text }
            if let truth = try? value.decode(Bool.self) { return "\(truth)" }
            if let number = try? value.decode(Int64.self) { return "\(number)" }
            if let number = try? value.decode(UInt64.self) { return "\(number)" }
            if let number = try? value.decode(Double.self) { return "\(number)" }
            throw JSONLookupError("it is null, an object or an array, and no text, number or truth value")
        }
    }
}
