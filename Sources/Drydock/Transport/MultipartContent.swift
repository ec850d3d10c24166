// The bytes of a form of several parts: each part with its head, between boundaries.

import FoundationEssentials
import ServiceCore

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
