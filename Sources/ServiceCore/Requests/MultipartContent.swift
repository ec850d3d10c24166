// Contents of several parts (RFC 7578): the heads of the parts, and fields, files and a client's content as parts.

import Content
import HTTPWire
import Policies
import Upstream

/// Made for one request.
struct MultipartContent {
    private let boundary: String
    /// Fields and files, without the last boundary.
    private let parts: [UInt8]
    private let upload: UploadPart?
    private let uploadType: String

    /// All parts are known.
    init(_ tree: ContentTree, _ files: [FilePart], _ style: FormStyle) {
        // The same parts have the same boundary, so that the same request has the same bytes.
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

    /// With a part that is not known yet, which follows the fields.
    /// - Parameter type: of the client's content.
    init(_ tree: ContentTree, _ files: [FilePart], _ style: FormStyle, _ upload: UploadPart, type: String?) {
        // Nobody who sends the content can know it.
        boundary = MultipartHead.randomBoundary()
        parts = Self.parts(tree, files, style, boundary: boundary)
        self.upload = upload
        uploadType = upload.type ?? type ?? "application/octet-stream"
    }

    var type: String { MultipartHead.type(boundary) }

    /// All of it, where there is no upload.
    var whole: [UInt8] { parts + end }

    private var end: [UInt8] { MultipartHead.end(boundary) }

    /// What stands before the client's content, and what behind it.
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

/// A content with something behind it. Loop-bound.
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

    /// A boundary that nobody who sends a part can know.
    package static func randomBoundary() -> String {
        boundary(UInt64.random(in: .min ... .max)) + hex(UInt64.random(in: .min ... .max))
    }

    static func boundary(_ number: UInt64) -> String { "drydock-" + hex(number) }

    /// The boundary of a part, and its head up to its content, which a line end follows.
    /// - Parameter type: visible ASCII.
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

    /// What follows the last part.
    package static func end(_ boundary: String) -> [UInt8] { Array("--\(boundary)--\r\n".utf8) }

    private static func hex(_ number: UInt64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }

    /// As browsers write names (HTML, "multipart form data").
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        // By scalars: CR LF is one Character, and would be neither.
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
