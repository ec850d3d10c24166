// Looks into a body while it arrives: whether it is what its route expects, with its content codings taken off.

package import HTTPWire

/// What the bodies of a route must be for a response to be stored.
package enum ContentExpectation: String, Sendable, CaseIterable {
    case any
    case json
    case jsonObject = "json-object"
    case jsonArray = "json-array"
    /// A property list, as XML or binary.
    case plist
    /// By its first bytes: PNG, JPEG, GIF, WebP, AVIF, HEIC, BMP, ICO, TIFF, JPEG XL, JPEG 2000, SVG.
    case image

    /// Such as `a JSON text`.
    package var noun: String {
        switch self {
        case .any: "anything"
        case .json: "a JSON text"
        case .jsonObject: "a JSON object"
        case .jsonArray: "a JSON array"
        case .plist: "a property list"
        case .image: "an image"
        }
    }

    /// Whether only the whole body can show it.
    package var needsAll: Bool { self == .json || self == .jsonObject || self == .jsonArray }
}

/// One body under inspection. Used on one loop.
package final class ContentInspection {
    /// The limit of decoded bytes of a JSON text: a longer one counts as complete.
    package static let limit = 8 * 1024 * 1024
    /// Bytes as they arrive that are waited for at most before the beginning is judged.
    static let maximumPreamble = 64 * 1024

    private let limit: Int
    private let expectation: ContentExpectation
    /// Nil when nothing more must be decoded, which frees its buffers.
    private var decoder: ContentDecoder?
    private var start: [UInt8] = []
    private var scanner = JSONScanner()
    private var received = 0
    private var decoded = 0
    private var isPastLimit = false
    /// The beginning has been judged; for what needs no more, all has.
    package private(set) var isBeginningKnown = false
    /// Why the body is not the expected content, such as `begins with "<!do"`; nil as long as it may be.
    package private(set) var mismatch: String?

    /// - Parameters:
    ///   - fields: of the response.
    ///   - limit: bytes of a JSON text, decoded, that are read at most.
    package init(_ expectation: ContentExpectation, _ fields: Fields, limit: Int = ContentInspection.limit) {
        self.limit = limit
        self.expectation = expectation
        let codings = ContentCoding.codings(fields)
        decoder = codings.map { ContentDecoder($0) }
        if codings == nil, expectation != .any {
            let name = fields.combined(.contentEncoding) ?? ""
            refuse("is coded as \(Self.printable(name.utf8.prefix(40))), which cannot be looked into")
        }
    }

    /// Takes the next bytes of the body as it came.
    /// - Returns: whether the beginning has been judged.
    @discardableResult
    package func push(_ bytes: UnsafeRawBufferPointer) -> Bool {
        received += bytes.count
        guard mismatch == nil, !isPastLimit, expectation != .any, expectation.needsAll || !isBeginningKnown, let decoder
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

    /// Called when the body is complete.
    /// - Returns: nil if it is the expected content, otherwise the reason.
    package func finish() -> String? {
        guard mismatch == nil, expectation != .any, !isPastLimit else { return mismatch }
        if expectation.needsAll {
            if let decoder, !decoder.isAtEnd { refuse("ends in the middle of its content coding") }
            if mismatch == nil, !scanner.isComplete { refuse(decoded == 0 ? "is empty" : "ends too early") }
        } else if !isBeginningKnown {
            refuse(unrecognised)
        }
        return mismatch
    }

    /// - Returns: whether more is wanted.
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

    /// Bytes of a stranger as text for a log line.
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
