// What the file of a URL is called in a seed folder: readable names, or those of the old download manager.

import HTTPCaching
import Policies

/// Pure functions from URLs, as cache keys have them, to names relative to the folder. No name leads out of it: every
/// part of one is checked by ``isSafe(_:)``.
enum SeedNames {
    /// The end of the name of a head beside its body.
    static let headSuffix = ".head.json"
    /// A file name has 255 bytes at most, and the suffix has to fit.
    private static let longestPart = 240
    /// Readable names never begin with it.
    private static let hashMark: UInt8 = UInt8(ascii: "~")

    /// The names under which a URL may be found, the likeliest first.
    static func candidates(_ url: String, _ layout: SeedLayout) -> [String] {
        switch layout {
        case .url: unique([plain(url), decoded(url)].compactMap { $0 })
        case .docker: docker(url)
        }
    }

    // MARK: - Layout `url`

    /// `HOST[:PORT]/PATH[?QUERY]`, byte for byte; a path that ends with a slash has the file `index.html` in it.
    /// - Returns: nil where a part of the path is no name for a file.
    static func plain(_ url: String) -> String? {
        guard let parts = split(url) else { return nil }
        return parts.allSatisfy { isSafe($0) && isPrintable($0) } ? join(parts) : nil
    }

    /// The same with `%20` and the like decoded, for files that somebody named by hand.
    static func decoded(_ url: String) -> String? {
        guard let parts = split(url) else { return nil }
        var result: [[UInt8]] = []
        for part in parts {
            guard let part = percentDecoded(part), isSafe(part) else { return nil }
            result.append(part)
        }
        return join(result)
    }

    /// A unique name for any URL; `number` counts the variants of one URL from 0 on.
    static func hashed(_ url: String, _ number: Int = 0) -> String {
        // Without a digest, only the number makes names unique.
        let name = "~" + (ContentDigest.sha256.hex(url.utf8) ?? "") + (number == 0 ? "" : ".\(number)")
        guard let host = split(url)?.first, isSafe(host), isPrintable(host) else { return name }
        return String(decoding: host, as: UTF8.self) + "/" + name
    }

    /// Host, folders and file name; nil if it is no absolute URL.
    private static func split(_ url: String) -> [[UInt8]]? {
        let bytes = Array(url.utf8)
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: Array("://".utf8))
        else {
            return nil
        }
        let rest = bytes[(colon + 3)...]
        let hostEnd = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        let pathEnd = rest[hostEnd...].firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        var parts = [Array(rest[..<hostEnd])]
        let path = rest[hostEnd..<pathEnd].dropFirst()
        parts += path.split(separator: slash, omittingEmptySubsequences: false).map { Array($0) }
        if parts.count == 1 || parts[parts.count - 1].isEmpty { parts[parts.count - 1] = Array("index.html".utf8) }
        parts[parts.count - 1] += rest[pathEnd...]
        return parts
    }

    // MARK: - Layout `docker`

    /// The parent with runs of slashes made one, as the old library's path functions did, hashed; and the last
    /// component with its escapes escaped. The app's request may have been encoded or not, so both forms are tried.
    private static func docker(_ url: String) -> [String] {
        var names: [String] = []
        for text in unique([url, percentDecoded(Array(url.utf8)).map { String(decoding: $0, as: UTF8.self) } ?? url]) {
            guard let (parent, last) = dockerParts(text) else { continue }
            guard let hash = ContentDigest.md5.hex(parent.utf8) else { continue }
            for name in [escaped(last), last] { names.append(hash + "_" + name) }
        }
        return unique(names).filter { isSafe(Array($0.utf8), upTo: 255) }
    }

    /// The parent and the last component of a URL as path functions see it.
    static func dockerParts(_ url: String) -> (parent: String, last: String)? {
        let components = url.split(separator: "/")
        guard let last = components.last, components.count > 1 else { return nil }
        return (components.dropLast().joined(separator: "/"), String(last))
    }

    /// Whether a name is a hash and a name.
    static func isDocker(_ name: String) -> Bool {
        guard let line = name.firstIndex(of: "_"), name.utf8.distance(from: name.startIndex, to: line) == 32 else {
            return false
        }
        return name[..<line].allSatisfy(\.isHexDigit)
    }

    /// By their hash.
    static func parents(_ urls: [String]) -> [String: String] {
        var parents: [String: String] = [:]
        for url in urls {
            let folder = url.hasSuffix("/") ? String(url.dropLast()) : url
            guard let (parent, _) = dockerParts(folder + "/x") else { continue }
            if let hash = ContentDigest.md5.hex(parent.utf8) { parents[hash] = folder }
        }
        return parents
    }

    /// The URL behind an old name, where its parent is known by hash.
    static func dockerURL(_ name: String, _ parents: [String: String]) -> String? {
        guard let line = name.firstIndex(of: "_"), let parent = parents[String(name[..<line])] else { return nil }
        let last = Array(name[name.index(after: line)...].utf8)
        if last.isEmpty { return nil }
        // A name with escapes that are escaped is that of a URL that was encoded already.
        let isEncoded = name.contains("%25")
        let bytes = isEncoded ? percentDecoded(last) ?? last : last
        return parent + "/" + String(decoding: bytes, as: UTF8.self)
    }

    /// The URLs, with each scheme, that ``plain(_:)`` may have made a name of.
    static func urls(_ name: String) -> [String] {
        guard let slash = name.firstIndex(of: "/"), !name.contains("/~"), !name.hasPrefix("~") else { return [] }
        let host = String(name[..<slash])
        var path = escaped(String(name[slash...]), keepingEscapes: true)
        if path.hasSuffix("/index.html") { path.removeLast("index.html".utf8.count) }
        return ["https://", "http://"].map { $0 + host + path }
    }

    /// Percent-encodes characters that are not allowed in a URL, including `%`.
    /// - Parameter keepingEscapes: leaves `%` alone.
    private static func escaped(_ text: String, keepingEscapes: Bool = false) -> String {
        var result = ""
        for byte in text.utf8 {
            let isOdd = byte <= 0x20 || byte >= 0x7f || "\"#%<>[\\]^`{|}".utf8.contains(byte)
            if isOdd, !(keepingEscapes && byte == UInt8(ascii: "%")) {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            } else {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return result
    }

    // MARK: - Parts

    /// Whether a file may have this name: one component that does not leave the folder, and no
    /// name that Drydock reserves.
    static func isSafe(_ part: [UInt8]) -> Bool { isSafe(part, upTo: longestPart) && part.first != hashMark }

    private static func isSafe(_ part: [UInt8], upTo longest: Int) -> Bool {
        if part.isEmpty || part.count > longest || part == [0x2e] || part == [0x2e, 0x2e] { return false }
        if part.suffix(headSuffix.utf8.count).elementsEqual(headSuffix.utf8) { return false }
        return part.allSatisfy { $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") }
    }

    private static func isPrintable(_ part: [UInt8]) -> Bool { part.allSatisfy { $0 > 0x20 && $0 < 0x7f } }

    private static func join(_ parts: [[UInt8]]) -> String {
        String(decoding: Array(parts.joined(separator: [0x2f])), as: UTF8.self)
    }

    /// Nil if an escape is invalid, or the bytes are no UTF-8.
    static func percentDecoded(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < bytes.count, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2])
                else {
                    return nil
                }
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return String(validating: result, as: UTF8.self) == nil ? nil : result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}
