// A form of several parts, as browsers send forms with files.

import FoundationEssentials

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
    public struct Part: Sendable {
        /// Of the field. Quotes and line ends are encoded as browsers do.
        public var name: String
        /// Of the file; nil, the default, is a part without one.
        public var filename: String?
        /// Its content. Its ``RequestBody/contentType`` is that of the part; without one a part with a filename is
        /// `application/octet-stream`, and any other is text.
        public var body: RequestBody

        /// A part of this name and content.
        public init(name: String, filename: String? = nil, body: RequestBody) {
            self.name = name
            self.filename = filename
            self.body = body
        }
    }

    /// What is sent, in this order.
    public var parts: [Part]

    /// A form of these parts; none by default.
    public init(_ parts: [Part] = []) { self.parts = parts }

    /// Adds a field with a text.
    public mutating func append(_ value: String, name: String) { append(.data(Data(value.utf8)), name: name) }

    /// Adds a part with a content.
    /// - Parameters:
    ///   - body: such as `.data(bytes, contentType: "image/png")`, or `.file(url)`.
    ///   - name: of the field.
    ///   - filename: nil, the default, is that of the file where the content is one, else none.
    public mutating func append(_ body: RequestBody, name: String, filename: String? = nil) {
        var filename = filename
        if filename == nil, case .file(let file) = body.source { filename = file.lastPathComponent }
        parts.append(Part(name: name, filename: filename, body: body))
    }
}
