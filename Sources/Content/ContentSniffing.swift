// What the beginning of a body says about its format: images and property lists, by their first bytes.

/// The verdict on the first bytes of a body.
enum SniffVerdict: Equatable {
    case match
    case mismatch
    /// More bytes are needed.
    case unknown
}

enum ContentSniffing {
    /// Bytes of a beginning that are looked at: text formats may have comments in front.
    static let limit = 4096

    /// A mark: bytes at a place, nil standing for any byte.
    private struct Mark {
        let bytes: [UInt8?]

        init(_ bytes: [UInt8?]) { self.bytes = bytes }

        init(_ text: String) { bytes = text.utf8.map { $0 } }

        func verdict(_ start: [UInt8]) -> SniffVerdict {
            for (wanted, byte) in zip(bytes, start) where wanted != nil && wanted != byte { return .mismatch }
            return start.count < bytes.count ? .unknown : .match
        }
    }

    /// As the MIME Sniffing Standard section 6.1 has them, and some newer formats.
    private static let images: [Mark] = [
        Mark("GIF87a"), Mark("GIF89a"), Mark([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        Mark([0xFF, 0xD8, 0xFF]),
        Mark(Array("RIFF".utf8) + [nil, nil, nil, nil] + Array("WEBPVP".utf8)), Mark([0x00, 0x00, 0x01, 0x00]),
        Mark([0x00, 0x00, 0x02, 0x00]), Mark([0x49, 0x49, 0x2A, 0x00]), Mark([0x4D, 0x4D, 0x00, 0x2A]),
        // BMP: the reserved bytes are zero.
        Mark([0x42, 0x4D, nil, nil, nil, nil, 0, 0, 0, 0]),
        // JPEG XL, bare and in a container; JPEG 2000.
        Mark([0xFF, 0x0A]), Mark([0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        Mark([0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
    ]

    /// Brands of ISO base media files that are images (AVIF, HEIF).
    private static let brands = ["avif", "avis", "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"]

    static func image(_ start: [UInt8]) -> SniffVerdict {
        let box = brands.map { Mark([nil, nil, nil, nil] + Array("ftyp\($0)".utf8)) }
        return best((images + box).map { $0.verdict(start) } + [xml(start, root: "svg")])
    }

    /// Binary, or XML.
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
    /// What follows a document type, which may have declarations of its own in brackets.
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
