// Multipart contents (RFC 7578): the heads of parts; fields, files and a client's content as parts.

import HTTPWire
import Policies
import Trees
import Upstream

/// The multipart content of one request.
struct MultipartContent {
    private let boundary: String
    /// The parts with fields and files, without the last boundary.
    private let parts: [UInt8]
    private let upload: UploadPart?
    private let uploadType: String

    /// Makes a content whose parts are all known.
    init(_ tree: ContentTree, _ files: [FilePart], _ style: FormStyle) {
        // The boundary depends on the parts only, so that the same request has the same bytes.
        var number: UInt64 = 0xCBF2_9CE4_8422_2325
        let plain = Self.parts(tree, files, style, boundary: "")
        for byte in plain { number = (number ^ UInt64(byte)) &* 0x100_0000_01B3 }
        var boundary = MultipartHead.boundary(number)
        while plain.contains(Array(boundary.utf8)) {
            number &+= 1
            boundary = MultipartHead.boundary(number)
        }
        self.boundary = boundary
        parts = Self.parts(tree, files, style, boundary: boundary)
        upload = nil
        uploadType = ""
    }

    /// Makes a content with an upload, a part that is not known yet and follows the fields.
    /// - Parameter type: the type of the client's content.
    init(_ tree: ContentTree, _ files: [FilePart], _ style: FormStyle, _ upload: UploadPart, type: String?) {
        // The boundary is random, so that the sender of the content cannot know it.
        boundary = MultipartHead.randomBoundary()
        parts = Self.parts(tree, files, style, boundary: boundary)
        self.upload = upload
        uploadType = upload.type ?? type ?? "application/octet-stream"
    }

    var type: String { MultipartHead.type(boundary) }

    /// The whole content, if there is no upload.
    var whole: [UInt8] { parts + end }

    private var end: [UInt8] { MultipartHead.end(boundary) }

    /// The bytes before the client's content, and those after it.
    var around: (before: [UInt8], after: [UInt8]) {
        guard let upload else { return (parts, end) }
        let head = MultipartHead.bytes(boundary, upload.name, filename: upload.filename, type: uploadType)
        return (parts + head, Array("\r\n".utf8) + end)
    }

    private static func parts(
        _ tree: ContentTree,
        _ files: [FilePart],
        _ style: FormStyle,
        boundary: String
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        for member in tree.members ?? [] {
            if case .data(let data) = member.value {
                bytes += MultipartHead.bytes(
                    boundary,
                    member.name,
                    filename: member.name,
                    type: "application/octet-stream"
                )
                bytes += data + Array("\r\n".utf8)
                continue
            }
            for item in FormItems.items(.object([member]), style) {
                bytes += MultipartHead.bytes(boundary, item.name)
                bytes += Array((item.value ?? "").utf8) + Array("\r\n".utf8)
            }
        }
        for file in files {
            bytes += MultipartHead.bytes(boundary, file.name, filename: file.filename, type: file.type)
            bytes += file.bytes + Array("\r\n".utf8)
        }
        return bytes
    }
}

/// A content with further bytes after it. Loop-bound.
final class FollowedSource: RequestBodySource {
    private let first: any RequestBodySource
    private let rest: any RequestBodySource
    private var isBehind = false

    init(_ first: any RequestBodySource, then rest: any RequestBodySource) {
        self.first = first
        self.rest = rest
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        if !isBehind {
            let read = first.read(into: buffer)
            guard read == .end else { return read }
            isBehind = true
        }
        return rest.read(into: buffer)
    }
}

@available(*, unavailable) extension FollowedSource: Sendable {}

package enum MultipartHead {
    /// The media type of a form with this boundary.
    package static func type(_ boundary: String) -> String { "multipart/form-data; boundary=\(boundary)" }

    /// A boundary that the sender of a part cannot know.
    package static func randomBoundary() -> String {
        boundary(UInt64.random(in: .min ... .max)) + hex(UInt64.random(in: .min ... .max))
    }

    static func boundary(_ number: UInt64) -> String { "drydock-" + hex(number) }

    /// The boundary and the head of a part, which its content and a line end follow.
    /// - Parameter type: the media type, in visible ASCII.
    package static func bytes(
        _ boundary: String,
        _ name: String,
        filename: String? = nil,
        type: String? = nil
    ) -> [UInt8] {
        var text = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(escaped(name))\""
        if let filename { text += "; filename=\"\(escaped(filename))\"" }
        if let type { text += "\r\nContent-Type: \(type)" }
        return Array((text + "\r\n\r\n").utf8)
    }

    /// The bytes after the last part.
    package static func end(_ boundary: String) -> [UInt8] { Array("--\(boundary)--\r\n".utf8) }

    private static func hex(_ number: UInt64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// A name with the escapes that browsers use (HTML, "multipart form data").
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        // The text is read by scalars, because CR LF is one Character.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\r": escaped += "%0D"
            case "\n": escaped += "%0A"
            case "\"": escaped += "%22"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
