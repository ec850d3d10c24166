// A batch of the daemon with its name and its times, as it is kept over a restart.

import AdminAPI
import DownloadCore

/// The content of one file of the jobs folder.
struct JobRecord: Codable, Sendable, Equatable {
    /// Of this format.
    static let currentVersion = 1

    var version = JobRecord.currentVersion
    var id: String
    var kind: AdminJob.Kind
    var name: String?
    /// Seconds since 1970.
    var created: Int64
    var started: Int64?
    var ended: Int64?
    /// The next step is to download, and not to look for sizes.
    var downloads: Bool
    var batch: Batch
}
