// The jobs folder beside the disk tier: one JSON document a job, written whole and put in place by a rename.

import DownloadCore
import EventLoop
import Files
import FoundationEssentials
import Glibc
import ProxyServer
import Synchronization

/// The folder in which jobs are kept over a restart. Its functions block: they are called on the I/O pool.
///
/// Sendable: the mutex lets one write happen at a time.
final class JobFolder: Sendable {
    let path: String
    private let prepare: @Sendable () throws -> Void
    private let writing = Mutex(())

    /// - Parameters:
    ///   - path: the jobs folder, which is made when something is written.
    ///   - prepare: called before that; makes the folder above it, and marks it.
    init(path: String, prepare: @escaping @Sendable () throws -> Void) {
        self.path = path
        self.prepare = prepare
    }

    /// Writes the record that `record` returns when the turn comes, so that of two writes the later one wins; nil
    /// writes nothing. The file has reached the disk when this returns.
    /// - Throws: the error of the file system, as a text.
    func write(_ record: () -> JobRecord?) throws {
        try prepare()
        try writing.withLock { _ in
            guard let record = record() else { return }
            try Folders.makeLast(path, mode: 0o700)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // Only the daemon's user may read the file: items may carry credentials.
            try WholeFile.replace(file(record.id), with: Array(try encoder.encode(record)))
        }
    }

    func remove(_ id: String) {
        writing.withLock { _ in _ = unlink(file(id)) }
    }

    /// Loads the kept jobs in the order of their identifiers, with an error line for each file that cannot be read.
    /// Removes temporary files.
    func load() -> (records: [JobRecord], errors: [String]) {
        var records: [JobRecord] = []
        var errors: [String] = []
        for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
            let file = "\(path)/\(name)"
            // Earlier versions wrote drafts with the suffix `.tmp`.
            if name.hasSuffix(".tmp") || name.hasSuffix(".json.new") { unlink(file) }
            guard name.hasSuffix(".json") else { continue }
            let bytes: [UInt8]
            do throws(SystemError) { bytes = try WholeFile.read(file) } catch {
                errors.append(
                    "\(file) cannot be read, and is left alone: \(error.reason); see to its permissions, or remove it"
                )
                continue
            }
            do {
                let record = try JSONDecoder().decode(JobRecord.self, from: Data(bytes))
                guard record.version == JobRecord.currentVersion, name == "\(record.id).json" else {
                    errors.append("\(file) is of another version, and is left alone")
                    continue
                }
                records.append(record)
            } catch {
                errors.append("\(file) cannot be read as a job, and is left alone; remove it (\(error))")
            }
        }
        return (records.sorted { (Int($0.id) ?? 0) < (Int($1.id) ?? 0) }, errors)
    }

    private func file(_ id: String) -> String { "\(path)/\(id).json" }
}

/// The content of one file of the jobs folder.
struct JobRecord: Codable, Sendable, Equatable {
    /// The version of the format that this code writes and reads.
    static let currentVersion = 1

    var version = JobRecord.currentVersion
    var id: String
    var kind: AdminJob.Kind
    var name: String?
    /// The time at which the job was made, in seconds since 1970.
    var created: Int64
    var started: Int64?
    var ended: Int64?
    /// True if the next step is to download, false if it is to look up sizes.
    var downloads: Bool
    var batch: Batch
}
