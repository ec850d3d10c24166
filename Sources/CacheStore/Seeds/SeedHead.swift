// The head of a seed: a JSON document beside the body, the file's own properties, or the dates that the old download
// manager kept.

import EventLoop
import FoundationEssentials
import Glibc
import HTTPCaching
import HTTPWire

/// The document `NAME.head.json`. A lookup needs only `url`; everything else has a default.
struct SeedHead: Codable, Equatable {
    /// The URL of the response; with another URL, the seed is not found, whatever its name is.
    var url: String?
    /// The status. Default: 200.
    var status: Int?
    var reason: String?
    /// The names and values of the field lines, in their order.
    var fields: [[String]]?
    /// The lines of the request that the response varies by (RFC 9111 section 4.1); absent if the response answers all
    /// requests.
    var request: [[String]]?
    /// The time of its arrival or last validation, such as `2026-11-21T07:00:00Z`. Default: the last change of the
    /// file.
    var storedAt: String?

    private enum CodingKeys: String, CodingKey {
        case url, status, reason, fields, request
        case storedAt = "stored_at"
    }

    static func decode(_ bytes: [UInt8]) throws -> SeedHead {
        try JSONDecoder().decode(SeedHead.self, from: Data(bytes))
    }

    /// Encodes the document.
    /// - Throws: never for the result of ``init(_:url:)``.
    func encode() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self)) + [0x0a]
    }

    init() {}

    /// Makes the document of an exported response, without Set-Cookie, which is for one user.
    init(_ head: StoredHead, url: String) {
        self.url = url
        status = head.status
        reason = head.reason.isEmpty ? nil : head.reason
        fields = head.fields.lines.filter { $0.name.lowercased() != "set-cookie" }.map { [$0.name, $0.value] }
        if !head.varyNames.isEmpty { request = head.varyFields.lines.map { [$0.name, $0.value] } }
        storedAt = Date(timeIntervalSince1970: Double(head.validatedAt)).formatted(Self.form)
    }

    /// The format of times: ISO 8601 in UTC, whole seconds.
    private static let form = Date.ISO8601FormatStyle()

    /// The time in Unix seconds.
    func time(default other: Int64) -> Int64 {
        guard let storedAt, let date = try? Self.form.parse(storedAt) else { return other }
        let seconds = date.timeIntervalSince1970
        return seconds > 0 && seconds < 253_402_300_800 ? Int64(seconds) : other
    }

    /// Makes the head of the response.
    /// - Parameters:
    ///   - name: the name of the file, whose extension replaces a missing Content-Type.
    ///   - lastModified: the date in Unix seconds, if the layout has it.
    ///   - validators: whether Last-Modified and ETag are made of the file's date and size if they are missing: for
    ///     seeds that answer, not for those that an origin validates.
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
        // A document without request lines answers every request.
        if selecting == nil { head.varyNames = [] }
        head.bodyLength = stamp.size
        return head
    }

    /// The pairs as fields; nil if one of them is no field line.
    private static func lines(_ pairs: [[String]]) -> Fields? {
        var fields = Fields()
        for pair in pairs {
            guard pair.count == 2, let value = text(pair[1]), fields.append(pair[0], value) else { return nil }
        }
        return fields
    }

    /// A text for a field line; nil if it does not fit into one: with control characters, or outside Latin-1.
    private static func text(_ text: String) -> String? {
        let isFit = text.unicodeScalars.allSatisfy { scalar in
            scalar.value >= 0x20 && scalar.value <= 0xff && scalar.value != 0x7f || scalar.value == 0x09
        }
        return isFit && text.utf8.count <= 65_536 ? text : nil
    }
}

/// The Content-Type for the extension of a file's name.
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

    /// The media type of a file.
    /// - Parameter name: the name, with or without a query.
    static func mediaType(_ name: String) -> String {
        let file = name.split(separator: "/").last ?? ""
        let path = file.prefix { $0 != "?" }
        guard let dot = path.lastIndex(of: "."), dot != path.startIndex else { return "application/octet-stream" }
        return byExtension[path[path.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }
}

// MARK: - Dates in property lists

/// The dates of old seeds: `ResourceInfos.plist` has the server's date of each file,
/// `DownloadManagerExpirationDates.plist` the end of its freshness; both are dictionaries from file names to dates, in
/// XML or in binary form.
struct SeedDates: Sendable {
    static let names: Set<String> = [modifiedName, expiryName]
    private static let modifiedName = "ResourceInfos.plist"
    private static let expiryName = "DownloadManagerExpirationDates.plist"

    private var modified: [String: Int64] = [:]
    private var expiries: [String: Int64] = [:]

    init() {}

    /// Reads both files, if they exist; blocks.
    /// - Throws: `SeedError.dates` if one cannot be read.
    init(_ files: SeedFiles) throws(SeedError) {
        modified = try Self.dates(files, Self.modifiedName)
        expiries = try Self.dates(files, Self.expiryName)
    }

    /// The server's date of a file in Unix seconds; nil if unknown.
    func lastModified(_ name: String) -> Int64? { modified[name] }

    /// The end of a file's freshness in Unix seconds; nil if unknown.
    func expiry(_ name: String) -> Int64? { expiries[name] }

    private static func dates(_ files: SeedFiles, _ name: String) throws(SeedError) -> [String: Int64] {
        let bytes: [UInt8]
        do {
            bytes = try files.read(name, limit: 256 << 20)
        } catch {
            if error.code == ENOENT { return [:] }
            throw .folder(error)
        }
        guard isSound(bytes), let entries = try? PropertyListDecoder().decode([String: Entry].self, from: Data(bytes))
        else {
            throw .dates(path: "\(files.root)/\(name)")
        }
        return entries.compactMapValues { entry in
            guard let seconds = entry.date?.timeIntervalSince1970, seconds > 0, seconds < 253_402_300_800 else {
                return nil
            }
            return Int64(seconds)
        }
    }

    /// Whether a list is binary, or XML whose dates have years of four digits and whose lists are not nested deeply:
    /// others can crash the decoder, which overflows at such years and recurses without a limit.
    private static func isSound(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: "bplist".utf8) { return true }
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var rest = bytes.starts(with: mark) ? bytes[mark.count...] : bytes[...]
        // Text that does not begin like XML would be parsed as the old format; a NUL means UTF-16.
        guard rest.first(where: { $0 > 0x20 }) == UInt8(ascii: "<"), !rest.contains(0) else { return false }
        var depth = 0
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[(open + 1)...]
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return true }
            let (tag, after) = (rest[..<end], rest[(end + 1)...])
            if tag.starts(with: "date".utf8) {
                let year = after.prefix(5)
                guard year.count == 5, year.dropLast().allSatisfy({ (0x30...0x39).contains($0) }),
                    year.last == UInt8(ascii: "-")
                else { return false }
            } else if tag.starts(with: "dict".utf8) || tag.starts(with: "array".utf8) {
                if tag.last != UInt8(ascii: "/") { depth += 1 }
                if depth > depthLimit { return false }
            } else if tag.starts(with: "/dict".utf8) || tag.starts(with: "/array".utf8) {
                depth -= 1
            }
        }
        return true
    }

    private static let depthLimit = 64

    private struct Entry: Decodable {
        /// The date; nil if the value is none, which does not affect other entries.
        var date: Date?

        init(from decoder: any Decoder) throws {
            date = try? decoder.singleValueContainer().decode(Date.self)
        }
    }
}
