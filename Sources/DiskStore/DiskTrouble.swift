// The reports of the disk tier: failures of the disk, one line for many files, in the words of the store's owner.

import EventLoop
import Files
import Glibc
import Synchronization

/// A failure of the disk that affects stored responses only: every client got its answer.
package struct DiskTrouble: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// A head record, or a block of a body, does not match its checksum, or the file is shorter than it says.
        case damaged
        /// A file that the index names does not exist.
        case missing
        /// The folder's content was removed under the running daemon.
        case removed
        /// A file cannot be opened or read.
        case unreadable
        /// A file cannot be created, written, renamed or removed.
        case unwritable
        /// The file system has less than min_free left.
        case full
        /// The index cannot be written, or was damaged.
        case index
        /// The file of rules is damaged or gone.
        case rules
        /// The folder was written by another version of Drydock.
        case format

        /// Whether the failure affects one stored response, which is removed: each of them gets a line.
        fileprivate var isOfOneEntry: Bool { self == .damaged || self == .missing }
    }

    package let kind: Kind
    /// The failure, its file or folder, and the consequence.
    package let text: String
    /// The count of unreported failures of this kind since the last report.
    package let untold: Int

    package var description: String {
        untold == 0 ? text : "\(text) (and \(untold) more like it that were not logged)"
    }
}

/// Limits the reports, so that a failing disk does not fill the log.
///
/// Sendable: its state is under a mutex.
final class TroubleTeller: Sendable {
    private struct Told {
        /// The beginning of the current minute of the kind, in monotonic nanoseconds.
        var since: UInt64
        var count: Int
        var untold: Int
    }

    private static let minute: UInt64 = 60_000_000_000
    private let told = Mutex<[DiskTrouble.Kind: Told]>([:])
    private let total = Atomic<Int>(0)
    private let tell: @Sendable (DiskTrouble) -> Void
    private let clock: @Sendable () -> UInt64

    /// Makes a reporter.
    /// - Parameters:
    ///   - clock: the monotonic time in nanoseconds.
    ///   - tell: called on I/O threads.
    init(clock: @escaping @Sendable () -> UInt64 = Monotonic.now, _ tell: @escaping @Sendable (DiskTrouble) -> Void) {
        self.clock = clock
        self.tell = tell
    }

    /// The count of all failures, reported or not.
    var count: Int { total.load(ordering: .relaxed) }

    /// Reports at most ten failures of single responses, and one failure of the disk, in a minute.
    func note(_ kind: DiskTrouble.Kind, _ text: String) {
        total.wrappingAdd(1, ordering: .relaxed)
        let now = clock()
        let untold: Int? = told.withLock { told in
            var state = told[kind] ?? Told(since: now, count: 0, untold: 0)
            defer { told[kind] = state }
            if now &- state.since >= Self.minute { state = Told(since: now, count: 0, untold: state.untold) }
            guard state.count < (kind.isOfOneEntry ? 10 : 1) else {
                state.untold += 1
                return nil
            }
            state.count += 1
            defer { state.untold = 0 }
            return state.untold
        }
        if let untold { tell(DiskTrouble(kind: kind, text: text, untold: untold)) }
    }
}

extension SystemError {
    /// The error's name and meaning, such as `ENOSPC (No space left on device)`.
    var named: String {
        let names = [
            ENOSPC: "ENOSPC", EIO: "EIO", EROFS: "EROFS", EACCES: "EACCES", EPERM: "EPERM", EDQUOT: "EDQUOT",
            EMFILE: "EMFILE", ENFILE: "ENFILE", ENOENT: "ENOENT", EFBIG: "EFBIG", ESTALE: "ESTALE", ENODEV: "ENODEV",
            ELOOP: "ELOOP", EISDIR: "EISDIR", ENXIO: "ENXIO",
        ]
        return names[code].map { "\($0) (\(reason))" } ?? reason
    }

    /// The remedy for the operator of the daemon.
    package var advice: String { advice(to: .shared) }

    /// The remedy for the operator of the store's owner.
    func advice(to kind: StoreKind) -> String {
        switch code {
        case ENOSPC, EDQUOT:
            "make room on the file system, or inodes, or raise the quota; or lower \(kind.size) or raise \(kind.minFree)"
        case ENOENT: "leave the folder to \(kind.owner) while it runs"
        case EISDIR, ENOTDIR: "remove what is in the place of the file"
        case ESTALE: "restart \(kind.owner)"
        case EROFS, EACCES, EPERM: "make the folder writable for \(kind.owner)'s user"
        case EMFILE, ENFILE: "raise the limit of open files"
        default: "look at the disk"
        }
    }
}

// MARK: - The owner's words

extension StoreKind {
    var owner: String {
        switch self {
        case .shared: "the daemon"
        case .private: "the program"
        }
    }

    /// The name of the setting that limits all files.
    var size: String {
        switch self {
        case .shared: "cache.disk.size"
        case .private: "DiskStore.size"
        }
    }

    /// The name of the setting for the free space on the file system.
    var minFree: String {
        switch self {
        case .shared: "cache.disk.min_free"
        case .private: "DiskStore.minimumFree"
        }
    }

    /// The advice to use something else than removing files from the folder.
    var insteadOfRemoving: String {
        switch self {
        case .shared: "use 'drydock purge --all' to empty a cache, and stop the daemon before its folder is removed"
        case .private: "use removeAll() to empty a store, and close the manager before its folder is removed"
        }
    }
}
