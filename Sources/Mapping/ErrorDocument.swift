// The description of a failed answer, as the document from which an error mapping takes its values.

import HTTPWire
import Trees

/// The description of a failure. Sendable: a value.
package struct ErrorDocument: Sendable, Equatable {
    /// The source of the failure; the raw value is the word in the document.
    package enum Source: String, Sendable {
        /// The origin answered, with a status that is not a success.
        case origin
        /// The origin gave no answer.
        case drydock
    }

    /// A member of the document, by its name; a path of a mapping begins with one.
    package enum Member: String, CaseIterable {
        case status, code, message, service, endpoint, source, body
    }

    package var status: Int
    /// The error type of Proxy-Status (RFC 9209 section 2.3), or `http_` and the status of the origin.
    package var code: String
    package var message: String
    package var service: String
    /// The name of the endpoint; nil if the request does not belong to one.
    package var endpoint: String?
    package var source: Source
    /// The content as a JSON text; nil if there is none, or if it is not text or too long.
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

    /// The content of an answer as JSON: JSON and property lists as values, other text as a string.
    /// - Parameters:
    ///   - bytes: the whole content, without content codings.
    ///   - mediaType: the value of Content-Type; nil if there is none.
    /// - Returns: nil if it is empty, or not text.
    package static func body(_ bytes: [UInt8], mediaType: String?) -> [UInt8]? {
        guard let first = bytes.first(where: { !JSONTokenizer.isSpace($0) }) else { return nil }
        let type = (mediaType ?? "").prefix { $0 != ";" }.lowercased()
        let isList = bytes.withUnsafeBytes { MappingPlan.isPropertyList($0) }
        if isList || type.contains("json") || first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
            let document = document(bytes)
        {
            return document
        }
        if String(validating: bytes, as: UTF8.self) != nil { return JSONWriter.quoted(bytes) }
        // The charset is not looked up: most text that is not UTF-8 is in 8-bit sets of western languages.
        return type.hasPrefix("text/") ? JSONWriter.quoted(bytes.withUnsafeBytes { Latin1.string($0) }) : nil
    }

    /// The bytes as JSON, from JSON or a property list; nil if they are neither.
    private static func document(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBytes { bytes in
            do throws(MappingFailure) {
                return try MappingPlan(MappingRule()).map(bytes, limit: bytes.count)
            } catch {
                return nil
            }
        }
    }

    /// The document for clients: mapped by the plan, or, if the values do not fit it, this one with the reason as
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

    /// The document as JSON, without a mapping.
    func json(trouble: String? = nil) -> [UInt8] {
        var members = Member.allCases.map { ($0.rawValue, value(of: $0)) }
        if let trouble { members.append(("mapping", JSONWriter.quoted(trouble))) }
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in members {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += JSONWriter.quoted(name) + [UInt8(ascii: ":")] + value
        }
        return bytes + [UInt8(ascii: "}")]
    }

    private func value(of member: Member) -> [UInt8] {
        switch member {
        case .status: Array("\(status)".utf8)
        case .code: JSONWriter.quoted(code)
        case .message: JSONWriter.quoted(message)
        case .service: JSONWriter.quoted(service)
        case .endpoint: endpoint.map { JSONWriter.quoted($0) } ?? JSONWriter.null
        case .source: JSONWriter.quoted(source.rawValue)
        case .body: body ?? JSONWriter.null
        }
    }
}
