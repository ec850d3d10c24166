// The head of a seed: a JSON document beside the body that anything can read and write, or what the file itself says.

import FoundationEssentials
import HTTPCaching
import HTTPWire

/// The document `NAME.head.json`. A lookup needs only `url`; everything else has a default.
struct SeedHead: Codable, Equatable {
    /// The response's URL; a seed is not found for another URL, whatever its name is.
    var url: String?
    /// Default: 200.
    var status: Int?
    var reason: String?
    /// Name and value of each field line, in their order.
    var fields: [[String]]?
    /// The lines of the request that the response varies by (RFC 9111 section 4.1); absent: it answers all requests.
    var request: [[String]]?
    /// When it came from the origin or was last checked, such as `2026-11-21T07:00:00Z`. Default: when the file was
    /// changed.
    var storedAt: String?

    private enum CodingKeys: String, CodingKey {
        case url, status, reason, fields, request
        case storedAt = "stored_at"
    }

    static func decode(_ bytes: [UInt8]) throws -> SeedHead {
        try JSONDecoder().decode(SeedHead.self, from: Data(bytes))
    }

    /// - Throws: never for what ``init(_:url:)`` makes.
    func encode() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0a]
    }

    init() {}

    /// The head of an exported response: without Set-Cookie, which is for one user.
    init(_ head: StoredHead, url: String) {
        self.url = url
        status = head.status
        reason = head.reason.isEmpty ? nil : head.reason
        fields = head.fields.lines.filter { $0.name.lowercased() != "set-cookie" }.map { [$0.name, $0.value] }
        if !head.varyNames.isEmpty { request = head.varyFields.lines.map { [$0.name, $0.value] } }
        storedAt = Date(timeIntervalSince1970: Double(head.validatedAt)).formatted(Self.form)
    }

    /// ISO 8601 in UTC, whole seconds.
    private static let form = Date.ISO8601FormatStyle()

    /// Unix seconds.
    func time(default other: Int64) -> Int64 {
        guard let storedAt, let date = try? Self.form.parse(storedAt) else { return other }
        let seconds = date.timeIntervalSince1970
        return seconds > 0 && seconds < 253_402_300_800 ? Int64(seconds) : other
    }

    /// The head to answer with.
    /// - Parameters:
    ///   - name: of the file; its extension replaces a missing Content-Type.
    ///   - lastModified: Unix seconds, where the layout knows it.
    ///   - validators: makes Last-Modified and ETag of the file's own date and size where there are none: for seeds
    ///     that answer, not for those that an origin validates.
    /// - Returns: nil if the status or a field could not be sent.
    func stored(name: String, _ stamp: SeedStamp, lastModified: Int64?, validators: Bool) -> StoredHead? {
        let status = status ?? 200
        guard (200...599).contains(status), status != 206, status != 304, let given = Self.lines(fields ?? []) else {
            return nil
        }
        let time = time(default: stamp.modifiedSeconds)
        var kept = given
        for field in [KnownField.age, .setCookie, .contentLength] { kept.remove(field) }
        if !kept.contains(.date) { kept.set(.date, HTTPDate.format(time)) }
        if !kept.contains(.contentType), status == 200 { kept.set(.contentType, SeedTypes.mediaType(name)) }
        if let lastModified, !kept.contains(.lastModified) { kept.set(.lastModified, HTTPDate.format(lastModified)) }
        if validators, status == 200 {
            if !kept.contains(.lastModified) { kept.set(.lastModified, HTTPDate.format(stamp.modifiedSeconds)) }
            if !kept.contains(.etag) {
                let size = String(stamp.size, radix: 16)
                kept.set(.etag, "\"\(String(UInt64(bitPattern: stamp.modified), radix: 16))-\(size)\"")
            }
        }
        let selecting = request.flatMap(Self.lines)
        var head = Caching.makeStoredHead(
            request: RequestHead(method: .get, target: "/", fields: selecting ?? Fields()),
            response: ResponseHead(status: status, reason: reason.flatMap(Self.text) ?? "", fields: kept),
            times: ResponseTimes(at: time)
        )
        // Without a word about the request it answers every one.
        if selecting == nil { head.varyNames = [] }
        head.bodyLength = stamp.size
        return head
    }

    /// Nil where one is no field line.
    private static func lines(_ pairs: [[String]]) -> Fields? {
        var fields = Fields()
        for pair in pairs {
            guard pair.count == 2, let value = text(pair[1]), fields.append(pair[0], value) else { return nil }
        }
        return fields
    }

    /// Nil if it does not fit into a field line: with control characters, or outside Latin-1.
    private static func text(_ text: String) -> String? {
        let isFit = text.unicodeScalars.allSatisfy { scalar in
            scalar.value >= 0x20 && scalar.value <= 0xff && scalar.value != 0x7f || scalar.value == 0x09
        }
        return isFit && text.utf8.count <= 65_536 ? text : nil
    }
}

/// Content-Type by the extension of a file's name.
enum SeedTypes {
    private static let byExtension: [String: String] = [
        "avif": "image/avif", "css": "text/css; charset=utf-8", "csv": "text/csv; charset=utf-8", "gif": "image/gif",
        "gz": "application/gzip", "htm": "text/html; charset=utf-8", "html": "text/html; charset=utf-8",
        "ico": "image/x-icon", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript; charset=utf-8",
        "json": "application/json", "md": "text/markdown; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "otf": "font/otf", "pdf": "application/pdf",
        "plist": "application/x-plist", "png": "image/png", "svg": "image/svg+xml", "tar": "application/x-tar",
        "tgz": "application/gzip", "ttf": "font/ttf", "txt": "text/plain; charset=utf-8", "wasm": "application/wasm",
        "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
        "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
    ]

    /// - Parameter name: with a query or without.
    static func mediaType(_ name: String) -> String {
        let file = name.split(separator: "/").last ?? ""
        let path = file.prefix { $0 != "?" }
        guard let dot = path.lastIndex(of: "."), dot != path.startIndex else { return "application/octet-stream" }
        return byExtension[path[path.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }
}
