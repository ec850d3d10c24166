// How the parts of a form are told from one another, and what stands in front of each (RFC 7578).

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
