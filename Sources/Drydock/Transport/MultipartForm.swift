// A form of several parts, as browsers send forms with files, and its bytes: each part with its head, between
// boundaries.

import FoundationEssentials
import ServiceCore

/// The parts of a form, in the order in which they are sent (RFC 7578).
///
/// ```swift
/// var form = MultipartForm()
/// form.append("A photo", name: "title")
/// form.append(.file(photo, contentType: "image/jpeg"), name: "photo", filename: "photo.jpg")
/// let request = TransportRequest(head, body: .multipart(form))
/// ```
public struct MultipartForm: Sendable {
    /// One part: a field of the form, or a file.
    struct Part: Sendable {
        let name: String
        /// The name of the file; nil is a part without one.
        let filename: String?
        /// The content, whose media type is that of the part.
        let body: RequestBody
    }

    /// What is sent, in this order.
    private(set) var parts: [Part] = []

    /// A form without parts.
    public init() {}

    /// Adds a field with a text.
    public mutating func append(_ value: String, name: String) { append(.data(Data(value.utf8)), name: name) }

    /// Adds a part with a content: a field of the form, or a file.
    /// - Parameters:
    ///   - body: such as `.data(bytes, contentType: "image/png")`, or `.file(url)`. Its ``RequestBody/contentType`` is
    ///     that of the part; without one a part with a filename is `application/octet-stream`, and any other is text.
    ///   - name: of the field. Quotes and line ends are encoded as browsers do.
    ///   - filename: nil, the default, is that of the file where the content is one, else none.
    public mutating func append(_ body: RequestBody, name: String, filename: String? = nil) {
        var filename = filename
        if filename == nil, case .file(let file) = body.source { filename = file.lastPathComponent }
        parts.append(Part(name: name, filename: filename, body: body))
    }
}

// MARK: - Its bytes

/// Sendable: nothing in it changes.
struct MultipartContent: Sendable {
    private let parts: [MultipartForm.Part]
    private let boundary: String

    init(_ form: MultipartForm) {
        parts = form.parts
        boundary = MultipartHead.randomBoundary()
    }

    var type: String { MultipartHead.type(boundary) }

    /// Whether a Content-Type of the program's own names the boundary.
    func isNamed(by type: String) -> Bool { type.contains(boundary) }

    var isRepeatable: Bool { parts.allSatisfy(\.body.isRepeatable) }

    /// Bytes of the whole; nil where that of a part is not known.
    var length: Int64? {
        var length = Int64(end.count)
        for part in parts {
            guard let body = part.body.length else { return nil }
            length += Int64(head(of: part).count + Self.lineEnd.count) + body
        }
        return length
    }

    /// Why it cannot be sent; nil where it can.
    var fault: String? {
        for part in parts {
            if let type = part.body.contentType, !type.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
                return "the part '\(part.name)' of its form has a media type that is not visible ASCII"
            }
            if case .multipart(let inner) = part.body.source, let fault = inner.fault { return fault }
        }
        return nil
    }

    /// - Throws: why the content of a part cannot be had, and what the sink throws.
    func write(to sink: any ContentSink, _ files: BlockingWork) async throws {
        for part in parts {
            try await sink.put(head(of: part))
            try await part.body.write(to: sink, files: files)
            try await sink.put(Self.lineEnd)
        }
        try await sink.put(end)
    }

    private static let lineEnd = Data("\r\n".utf8)
    private var end: Data { Data(MultipartHead.end(boundary)) }

    private func head(of part: MultipartForm.Part) -> Data {
        let type = part.body.contentType ?? (part.filename == nil ? nil : "application/octet-stream")
        return Data(MultipartHead.bytes(boundary, part.name, filename: part.filename, type: type))
    }
}
