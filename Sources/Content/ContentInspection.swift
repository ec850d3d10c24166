// Inspects a body while it arrives: whether it has the content that its route expects, after its content codings are
// decoded.

package import HTTPWire
package import Policies

/// One body under inspection. Used on one loop.
package final class ContentInspection {
    /// The most decoded bytes of a JSON text that are read: a longer one counts as complete.
    package static let limit = 8 * 1024 * 1024
    /// The most bytes that may arrive before the beginning has to be judged.
    static let maximumPreamble = 64 * 1024

    private let limit: Int
    private let expectation: ContentExpectation
    /// The decoder; nil when nothing more must be decoded, which frees its buffers.
    private var decoder: ContentDecoder?
    private var start: [UInt8] = []
    private var scanner = JSONScanner()
    private var received = 0
    private var decoded = 0
    private var isPastLimit = false
    /// Whether the beginning has been judged; an expectation that needs only that is decided.
    package private(set) var isBeginningKnown = false
    /// The reason why the body is not the expected content, such as `begins with "<!do"`; nil as long as it may be.
    package private(set) var mismatch: String?

    /// - Parameters:
    ///   - fields: the fields of the response.
    ///   - limit: the most decoded bytes of a JSON text that are read.
    package init(_ expectation: ContentExpectation, _ fields: Fields, limit: Int = ContentInspection.limit) {
        self.limit = limit
        self.expectation = expectation
        let codings = ContentCoding.codings(fields)
        decoder = codings.map { ContentDecoder($0) }
        if codings == nil, expectation != .anything {
            let name = fields.combined(.contentEncoding) ?? ""
            refuse("is coded as \(Self.printable(name.utf8.prefix(40))), which cannot be looked into")
        }
    }

    /// Inspects the next bytes of the body, as received.
    /// - Returns: whether the beginning has been judged.
    @discardableResult
    package func push(_ bytes: UnsafeRawBufferPointer) -> Bool {
        received += bytes.count
        guard mismatch == nil, !isPastLimit, expectation != .anything, expectation.needsAll || !isBeginningKnown,
            let decoder
        else { return true }
        do throws(ContentDecoder.Malformed) {
            try decoder.push(bytes) { take($0) }
        } catch {
            refuse("does not decode as its Content-Encoding says")
        }
        if !isBeginningKnown, received >= Self.maximumPreamble { refuse(unrecognised) }
        if mismatch != nil || isPastLimit || !expectation.needsAll && isBeginningKnown { self.decoder = nil }
        return isBeginningKnown
    }

    /// Ends the inspection of a complete body.
    /// - Returns: nil if it is the expected content, otherwise the reason.
    package func finish() -> String? {
        guard mismatch == nil, expectation != .anything, !isPastLimit else { return mismatch }
        if expectation.needsAll {
            if let decoder, !decoder.isAtEnd { refuse("ends in the middle of its content coding") }
            if mismatch == nil, !scanner.isComplete { refuse(decoded == 0 ? "is empty" : "ends too early") }
        } else if !isBeginningKnown {
            refuse(unrecognised)
        }
        return mismatch
    }

    /// Inspects decoded bytes.
    /// - Returns: whether more are needed.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if start.count < ContentSniffing.limit { start += bytes.prefix(ContentSniffing.limit - start.count) }
        guard expectation.needsAll else { return sniff() }
        let rest = limit - decoded
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(rest))
        decoded += part.count
        guard scanner.push(part) else {
            refuse(isBeginningKnown || scanner.root != nil ? "is not well-formed JSON text" : unrecognised)
            return false
        }
        if let root = scanner.root, !isBeginningKnown {
            let isRight =
                expectation == .json || root == (expectation == .jsonObject ? JSONScanner.Root.object : .array)
            if !isRight { refuse(unrecognised) }
            isBeginningKnown = true
        }
        if part.count < bytes.count || decoded == limit { isPastLimit = true }
        return mismatch == nil && !isPastLimit
    }

    private func sniff() -> Bool {
        let verdict = expectation == .image ? ContentSniffing.image(start) : ContentSniffing.propertyList(start)
        switch verdict {
        case .match: isBeginningKnown = true
        case .mismatch: refuse(unrecognised)
        case .unknown where start.count >= ContentSniffing.limit: refuse(unrecognised)
        case .unknown: return true
        }
        return false
    }

    private var unrecognised: String {
        start.isEmpty ? "is empty" : "begins with \(Self.printable(start.prefix(16)))"
    }

    private func refuse(_ reason: String) {
        mismatch = reason
        isBeginningKnown = true
    }

    /// Bytes from a stranger as text for a log line.
    private static func printable(_ bytes: some Sequence<UInt8>) -> String {
        let text = bytes.map { byte in
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return "\\" + String(UnicodeScalar(byte)) }
            let isPlain = (0x20..<0x7F).contains(byte)
            let hex = String(byte, radix: 16)
            return isPlain ? String(UnicodeScalar(byte)) : "\\x" + (hex.count == 1 ? "0" + hex : hex)
        }
        return "\"\(text.joined())\""
    }
}

@available(*, unavailable) extension ContentInspection: Sendable {}

// MARK: - First bytes

/// The verdict on the first bytes of a body.
enum SniffVerdict: Equatable {
    case match
    case mismatch
    /// More bytes are needed for a verdict.
    case unknown
}

enum ContentSniffing {
    /// The most bytes of a beginning that are examined: text formats may have comments first.
    static let limit = 4096

    /// A signature: bytes at an offset, with nil for any byte.
    private struct Mark {
        let bytes: [UInt8?]

        init(_ bytes: [UInt8?]) { self.bytes = bytes }

        init(_ text: String) { bytes = text.utf8.map { $0 } }

        func verdict(_ start: [UInt8]) -> SniffVerdict {
            for (wanted, byte) in zip(bytes, start) where wanted != nil && wanted != byte { return .mismatch }
            return start.count < bytes.count ? .unknown : .match
        }
    }

    /// The first bytes of images in the MIME Sniffing Standard section 6.1, and of some newer formats.
    private static let images: [Mark] = [
        Mark("GIF87a"), Mark("GIF89a"), Mark([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        Mark([0xFF, 0xD8, 0xFF]),
        Mark(Array("RIFF".utf8) + [nil, nil, nil, nil] + Array("WEBPVP".utf8)), Mark([0x00, 0x00, 0x01, 0x00]),
        Mark([0x00, 0x00, 0x02, 0x00]), Mark([0x49, 0x49, 0x2A, 0x00]), Mark([0x4D, 0x4D, 0x00, 0x2A]),
        // The reserved bytes of a BMP are zero.
        Mark([0x42, 0x4D, nil, nil, nil, nil, 0, 0, 0, 0]),
        // These are JPEG XL, bare and in a container, and JPEG 2000.
        Mark([0xFF, 0x0A]), Mark([0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        Mark([0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
    ]

    /// The brands of ISO base media files that are images (AVIF, HEIF).
    private static let brands = ["avif", "avis", "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"]

    static func image(_ start: [UInt8]) -> SniffVerdict {
        let box = brands.map { Mark([nil, nil, nil, nil] + Array("ftyp\($0)".utf8)) }
        return best((images + box).map { $0.verdict(start) } + [xml(start, root: "svg")])
    }

    /// Whether the bytes are a property list, binary or in XML.
    static func propertyList(_ start: [UInt8]) -> SniffVerdict {
        best([Mark("bplist0").verdict(start), xml(start, root: "plist")])
    }

    private static func best(_ verdicts: [SniffVerdict]) -> SniffVerdict {
        verdicts.contains(.match) ? .match : verdicts.contains(.unknown) ? .unknown : .mismatch
    }

    /// Whether the bytes are an XML document whose root element has this name, after any declaration, comments,
    /// processing instructions and document type.
    static func xml(_ start: [UInt8], root: String) -> SniffVerdict {
        var rest = start[...]
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if rest.starts(with: mark) { rest = rest.dropFirst(3) } else if mark.starts(with: rest) { return .unknown }
        while true {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            guard let first = rest.first else { return .unknown }
            guard first == UInt8(ascii: "<") else { return .mismatch }
            guard let second = rest.dropFirst().first else { return .unknown }
            switch second {
            case UInt8(ascii: "?"):
                guard let after = rest.after("?>") else { return .unknown }
                rest = after
            case UInt8(ascii: "!"):
                let isComment = rest.starts(with: "<!--".utf8)
                let mayBeComment = "<!--".utf8.starts(with: rest)
                if mayBeComment, !isComment { return .unknown }
                guard isComment || rest.starts(with: "<!DOCTYPE".utf8) || "<!DOCTYPE".utf8.starts(with: rest) else {
                    return .mismatch
                }
                guard let after = isComment ? rest.after("-->") : rest.afterDocumentType else { return .unknown }
                rest = after
            default:
                let name = rest.dropFirst().prefix { isNameByte($0) }
                // A name at the end of the bytes may continue, or be a prefix.
                if name.endIndex == rest.endIndex { return name.count < 64 ? .unknown : .mismatch }
                let local = name.split(separator: UInt8(ascii: ":")).last ?? name
                return local.elementsEqual(root.utf8) ? .match : .mismatch
            }
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x80...: true
        default: false
        }
    }
}

extension ArraySlice<UInt8> {
    /// The bytes after a document type, which may have declarations of its own in brackets.
    fileprivate var afterDocumentType: ArraySlice<UInt8>? {
        guard let mark = first(where: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: ">") }) else { return nil }
        return mark == UInt8(ascii: "[") ? after("]")?.after(">") : after(">")
    }

    /// The bytes after the first occurrence of `text`; nil if there is none.
    fileprivate func after(_ text: StaticString) -> ArraySlice<UInt8>? {
        let wanted = Array(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        var position = startIndex
        while position + wanted.count <= endIndex {
            if self[position..<position + wanted.count].elementsEqual(wanted) {
                return self[(position + wanted.count)...]
            }
            position += 1
        }
        return nil
    }
}

// MARK: - Expected media types

/// The expected media types, which a configuration writes as `[application/json, text/*]`. Parameters such as `charset`
/// are ignored.
package struct ExpectedTypes: Sendable, Equatable, CustomStringConvertible {
    /// The patterns in lower case; at least one.
    private let patterns: [String]

    /// - Parameter patterns: texts for which ``isPattern(_:)`` is true, in any case.
    /// - Returns: nil if there are none, so that any type is expected.
    package init?(_ patterns: [String]) {
        guard !patterns.isEmpty else { return nil }
        self.patterns = patterns.map { $0.lowercased() }
    }

    /// The types in words, such as `application/json or text/*`.
    package var description: String { patterns.joined(separator: " or ") }

    /// Whether a text is `TYPE/SUBTYPE`, `TYPE/*` or `*/*`, without parameters.
    package static func isPattern(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ isToken($0) }) else { return false }
        return !parts[0].contains("*") ? !parts[1].contains("*") || parts[1] == "*" : text == "*/*"
    }

    /// The unexpected media type, such as `the type text/html`, or `no Content-Type`; nil if the type is expected.
    package func mismatch(_ fields: Fields) -> String? {
        let values = fields.all(.contentType)
        guard let value = values.first else { return "no Content-Type" }
        // Clients differ in which of several fields they use.
        if values.count > 1 { return "\(values.count) Content-Type fields" }
        let type = value.prefix { $0 != ";" && $0 != "," }.filter { $0 != " " && $0 != "\t" }.lowercased()
        let top = type.prefix { $0 != "/" } + "/*"
        let isExpected = type.contains("/") && patterns.contains { $0 == type || $0 == top || $0 == "*/*" }
        return isExpected ? nil : "the type \(value.prefix(80))"
    }

    private static func isToken(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
