// The dates that the old download manager kept in property lists beside its files.

import EventLoop
import FoundationEssentials
import Glibc

/// `ResourceInfos.plist` has the server's date of each file, `DownloadManagerExpirationDates.plist` until when it is
/// fresh; both are dictionaries from file names to dates, in XML or in binary form.
struct SeedDates: Sendable {
    static let names: Set<String> = [modifiedName, expiryName]
    private static let modifiedName = "ResourceInfos.plist"
    private static let expiryName = "DownloadManagerExpirationDates.plist"

    private var modified: [String: Int64] = [:]
    private var expiries: [String: Int64] = [:]

    init() {}

    /// Reads both where they are; blocks.
    /// - Throws: `SeedError.dates` where one cannot be read.
    init(_ files: SeedFiles) throws(SeedError) {
        modified = try Self.dates(files, Self.modifiedName)
        expiries = try Self.dates(files, Self.expiryName)
    }

    /// Unix seconds; nil if unknown.
    func lastModified(_ name: String) -> Int64? { modified[name] }

    /// Unix seconds; nil if unknown.
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
        /// Nil if the value is no date; other entries are not affected.
        var date: Date?

        init(from decoder: any Decoder) throws {
            date = try? decoder.singleValueContainer().decode(Date.self)
        }
    }
}
