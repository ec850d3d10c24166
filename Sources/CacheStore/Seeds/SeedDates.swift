// The dates that the old download manager kept in property lists beside its files.

import EventLoop
import FoundationEssentials
import Glibc

/// `ResourceInfos.plist` has the server's date of each file, `DownloadManagerExpirationDates.plist` until when it is fresh;
/// both are dictionaries from file names to dates, in XML or in binary form.
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

    /// Unix seconds; nil where nobody knows.
    func lastModified(_ name: String) -> Int64? { modified[name] }

    /// Unix seconds; nil where nobody knows.
    func expiry(_ name: String) -> Int64? { expiries[name] }

    private static func dates(_ files: SeedFiles, _ name: String) throws(SeedError) -> [String: Int64] {
        let bytes: [UInt8]
        do {
            bytes = try files.read(name, limit: 256 << 20)
        } catch {
            if error.code == ENOENT { return [:] }
            throw .folder(error)
        }
        guard let entries = try? PropertyListDecoder().decode([String: Entry].self, from: Data(bytes)) else {
            throw .dates(path: "\(files.root)/\(name)")
        }
        return entries.compactMapValues { entry in
            guard let seconds = entry.date?.timeIntervalSince1970, seconds > 0, seconds < 253_402_300_800 else {
                return nil
            }
            return Int64(seconds)
        }
    }

    private struct Entry: Decodable {
        /// Nil where it is something else, which says nothing about the others.
        var date: Date?

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            do {
                date = try value.decode(Date.self)
            } catch DecodingError.typeMismatch {
                date = nil
            }
        }
    }
}
