// What the first bytes of an image say: its format, and how large it is.

public import FoundationEssentials

/// The format and the size of an image, read from its header.
public struct ImageHeader: Sendable, Hashable {
    /// The media type of the format that the image is written in: `image/png`, `image/jpeg`, `image/gif`, `image/webp`,
    /// `image/bmp`, `image/vnd.microsoft.icon`, `image/avif`, `image/heic` or `image/tiff`.
    public var mediaType: String
    /// Pixels; nil where the header does not say so in a way that is read here, as of an image of which only the
    /// beginning is there. A TIFF may say it at its end, and of several pictures in it the first one counts.
    public var width: Int?
    /// The height in pixels, where ``width`` is known.
    public var height: Int?

    /// A header with these values.
    public init(mediaType: String, width: Int? = nil, height: Int? = nil) {
        self.mediaType = mediaType
        self.width = width
        self.height = height
    }

    /// Reads the header of an image.
    /// - Parameter data: the image, or its beginning.
    /// - Throws: ``MappingError/invalidImage``.
    public init(_ data: Data) throws(MappingError) {
        let bytes = ImageBytes(data)
        guard let (format, size) = bytes.header else { throw .invalidImage }
        self.init(mediaType: format.rawValue, width: size?.width, height: size?.height)
    }
}

/// The bytes of an image, of which any may be missing.
private struct ImageBytes {
    typealias Size = (width: Int, height: Int)

    private let data: Data

    init(_ data: Data) { self.data = data }

    var header: (ImageFormat, Size?)? {
        if has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return (.png, size(big: 16, 20, bytes: 4)) }
        if has("GIF87a") || has("GIF89a") { return (.gif, size(little: 6, 8, bytes: 2)) }
        if has([0xFF, 0xD8, 0xFF]) { return (.jpeg, jpeg) }
        if has("RIFF"), has("WEBP", at: 8) { return (.webp, webp) }
        if has("BM"), has([0, 0, 0, 0], at: 6) { return (.bmp, bmp) }
        if has([0, 0, 1, 0]) { return (.icon, icon) }
        if has([0x49, 0x49, 0x2A, 0x00]) || has([0x4D, 0x4D, 0x00, 0x2A]) { return (.tiff, tiff) }
        guard has("ftyp", at: 4) else { return nil }
        if has("avif", at: 8) || has("avis", at: 8) { return (.avif, extents) }
        let brands = ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"]
        return brands.contains { has($0, at: 8) } ? (.heic, extents) : nil
    }

    private func byte(_ position: Int) -> Int? {
        position >= 0 && position < data.count ? Int(data[data.startIndex + position]) : nil
    }

    private func has(_ bytes: [UInt8], at position: Int = 0) -> Bool {
        position + bytes.count <= data.count && data.dropFirst(position).starts(with: bytes)
    }

    private func has(_ text: String, at position: Int = 0) -> Bool { has(Array(text.utf8), at: position) }

    private func big(_ position: Int, bytes: Int) -> Int? {
        var value = 0
        for offset in 0..<bytes {
            guard let byte = byte(position + offset) else { return nil }
            value = value << 8 | byte
        }
        return value
    }

    private func little(_ position: Int, bytes: Int) -> Int? {
        var value = 0
        for offset in (0..<bytes).reversed() {
            guard let byte = byte(position + offset) else { return nil }
            value = value << 8 | byte
        }
        return value
    }

    private func size(big width: Int, _ height: Int, bytes: Int) -> Size? {
        guard let width = big(width, bytes: bytes), let height = big(height, bytes: bytes) else { return nil }
        return (width, height)
    }

    private func size(little width: Int, _ height: Int, bytes: Int) -> Size? {
        guard let width = little(width, bytes: bytes), let height = little(height, bytes: bytes) else { return nil }
        return (width, height)
    }

    /// The size in the first frame header of a JPEG (ITU T.81 section B.2.2), behind other segments.
    private var jpeg: Size? {
        var position = 2
        while byte(position) == 0xFF, let marker = byte(position + 1) {
            switch marker {
            case 0xFF: position += 1
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                guard let height = big(position + 5, bytes: 2), let width = big(position + 7, bytes: 2) else {
                    return nil
                }
                return (width, height)
            case 0x01, 0xD0...0xD7: position += 2
            // The pixels, or the end: no frame header comes any more.
            case 0xD9, 0xDA: return nil
            default:
                guard let length = big(position + 2, bytes: 2), length >= 2 else { return nil }
                position += 2 + length
            }
        }
        return nil
    }

    /// RFC 9649 section 2.5 to 2.7.
    private var webp: Size? {
        if has("VP8X", at: 12) {
            guard let size = size(little: 24, 27, bytes: 3) else { return nil }
            return (size.width + 1, size.height + 1)
        }
        if has("VP8L", at: 12), has([0x2F], at: 20) {
            guard let bits = little(21, bytes: 4) else { return nil }
            return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        }
        guard has("VP8 ", at: 12), has([0x9D, 0x01, 0x2A], at: 23), let size = size(little: 26, 28, bytes: 2) else {
            return nil
        }
        return (size.width & 0x3FFF, size.height & 0x3FFF)
    }

    /// The height is negative where the rows go from the top.
    private var bmp: Size? {
        guard let length = little(14, bytes: 4) else { return nil }
        if length == 12 { return size(little: 18, 20, bytes: 2) }
        guard let size = size(little: 18, 22, bytes: 4) else { return nil }
        return (
            Int(Int32(truncatingIfNeeded: size.width).magnitude), Int(Int32(truncatingIfNeeded: size.height).magnitude)
        )
    }

    /// The size of the first picture of an icon; 0 is 256.
    private var icon: Size? {
        guard let width = byte(6), let height = byte(7) else { return nil }
        return (width == 0 ? 256 : width, height == 0 ? 256 : height)
    }

    /// The size in the first image file directory (TIFF 6.0 section 2), wherever it is: at most 65 535 entries of 12 bytes each.
    private var tiff: Size? {
        let isLittle = byte(0) == 0x49
        func number(_ position: Int, bytes: Int) -> Int? {
            isLittle ? little(position, bytes: bytes) : big(position, bytes: bytes)
        }
        guard let directory = number(4, bytes: 4), let count = number(directory, bytes: 2) else { return nil }
        var (width, height): (Int?, Int?) = (nil, nil)
        for entry in 0..<count {
            let position = directory + 2 + entry * 12
            guard let tag = number(position, bytes: 2) else { return nil }
            guard tag == 256 || tag == 257, number(position + 4, bytes: 4) == 1 else { continue }
            // A SHORT or a LONG, on the left of its four bytes.
            let value: Int? =
                switch number(position + 2, bytes: 2) {
                case 3: number(position + 8, bytes: 2)
                case 4: number(position + 8, bytes: 4)
                default: nil
                }
            if tag == 256 { width = width ?? value } else { height = height ?? value }
            if let width, let height { return (width, height) }
        }
        return nil
    }

    /// The size of the largest picture: the boxes `ispe` (ISO/IEC 23008-12 section 6.5.3), which stand in the first kilobytes.
    private var extents: Size? {
        let mark = Array("ispe".utf8)
        var found: Size?
        for position in 12..<max(12, min(data.count - 15, 64 << 10))
        where byte(position) == Int(mark[0]) && has(mark, at: position) {
            guard let size = size(big: position + 8, position + 12, bytes: 4) else { break }
            // Of 32 bits each: the product needs all 64.
            let pixels = UInt64(size.width) * UInt64(size.height)
            if pixels > UInt64(found?.width ?? 0) * UInt64(found?.height ?? 0) { found = size }
        }
        return found
    }
}

/// A format of images; the raw value is its media type.
enum ImageFormat: String {
    /// Portable Network Graphics.
    case png = "image/png"
    /// Joint Photographic Experts Group.
    case jpeg = "image/jpeg"
    /// Graphics Interchange Format.
    case gif = "image/gif"
    /// WebP.
    case webp = "image/webp"
    /// Windows bitmap.
    case bmp = "image/bmp"
    /// Icon of Windows.
    case icon = "image/vnd.microsoft.icon"
    /// AV1 in a container of HEIF.
    case avif = "image/avif"
    /// HEVC in a container of HEIF.
    case heic = "image/heic"
    /// Tagged Image File Format.
    case tiff = "image/tiff"
}
