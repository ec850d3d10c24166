// What is known of a failed answer, as the document that an error mapping takes its values from.

import HTTPWire

/// Sendable: a value.
package struct ErrorDocument: Sendable, Equatable {
    /// Who found the failure: the raw value is what the document says.
    package enum Source: String, Sendable {
        /// The origin answered, with a status that is no success.
        case origin
        /// There is no answer of the origin's.
        case drydock
    }

    package var status: Int
    /// The error type of Proxy-Status (RFC 9209 section 2.3), or `http_` and the status of the origin.
    package var code: String
    package var message: String
    package var service: String
    /// Nil where the request is none of an endpoint's.
    package var endpoint: String?
    package var source: Source
    /// A JSON text; nil where there is no content, or none that is text and short enough.
    package var body: [UInt8]?

    package init(
        status: Int,
        code: String,
        message: String,
        service: String,
        endpoint: String?,
        source: Source,
        body: [UInt8]? = nil
    ) {
        self.status = status
        self.code = code
        self.message = message
        self.service = service
        self.endpoint = endpoint
        self.source = source
        self.body = body
    }

    /// The content of an answer as JSON: JSON and property lists as they are, other text as a string.
    /// - Parameters:
    ///   - bytes: all of it, without content codings.
    ///   - mediaType: the value of Content-Type; nil where there is none.
    /// - Returns: nil where it is empty, or no text.
    package static func body(_ bytes: [UInt8], mediaType: String?) -> [UInt8]? {
        guard let first = bytes.first(where: { !JSONSkipper.isSpace($0) }) else { return nil }
        let type = (mediaType ?? "").prefix { $0 != ";" }.lowercased()
        let isList = bytes.withUnsafeBytes { MappingPlan.isPropertyList($0) }
        if isList || type.contains("json") || first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
            let document = document(bytes)
        {
            return document
        }
        if String(validating: bytes, as: UTF8.self) != nil { return JSONText.quoted(bytes) }
        // A charset is not looked up: of text that is no UTF-8, most is in the 8-bit sets of the west.
        return type.hasPrefix("text/") ? JSONText.quoted(bytes.withUnsafeBytes { Latin1.string($0) }.utf8) : nil
    }

    /// JSON, whether the bytes are that or a property list; nil where they are neither.
    private static func document(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBytes { bytes in
            do throws(MappingFailure) {
                return try MappingPlan(MappingRule()).map(bytes, limit: bytes.count)
            } catch {
                return nil
            }
        }
    }

    /// The document that clients get: of the plan, or, where the values do not fit it, this one with the reason as
    /// `mapping`.
    package func mapped(by plan: MappingPlan) -> [UInt8] {
        let whole = json()
        let made: Result<[UInt8], MappingFailure> = whole.withUnsafeBytes { bytes in
            do throws(MappingFailure) {
                return .success(try plan.map(bytes, limit: max(bytes.count, 4096)))
            } catch {
                return .failure(error)
            }
        }
        switch made {
        case .success(let bytes): return bytes
        case .failure(let failure):
            return json(trouble: "\(failure); compare 'error.map' with the other members of this document")
        }
    }

    /// The document itself.
    func json(trouble: String? = nil) -> [UInt8] {
        var members: [(String, [UInt8])] = [
            ("status", Array("\(status)".utf8)), ("code", JSONText.quoted(code.utf8)),
            ("message", JSONText.quoted(message.utf8)), ("service", JSONText.quoted(service.utf8)),
            ("endpoint", endpoint.map { JSONText.quoted($0.utf8) } ?? JSONText.null),
            ("source", JSONText.quoted(source.rawValue.utf8)), ("body", body ?? JSONText.null),
        ]
        if let trouble { members.append(("mapping", JSONText.quoted(trouble.utf8))) }
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in members {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += JSONText.quoted(name.utf8) + [UInt8(ascii: ":")] + value
        }
        return bytes + [UInt8(ascii: "}")]
    }
}
