// What went wrong on the disk, for the log: said once, not once a file.

import EventLoop
import Files
import Glibc
import Synchronization

/// Something that the disk did to a stored response, and that cost nothing but the stored copy.
package struct DiskTrouble: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// A head record, or a block of a body, does not match its checksum, or the file is shorter than it says.
        case damaged
        /// A file that the index knows is not there any more.
        case missing
        /// Somebody has removed what is in the folder, under the daemon.
        case removed
        /// A file cannot be opened or read.
        case unreadable
        /// A file cannot be made, written, renamed or removed.
        case unwritable
        /// The file system has less than min_free left.
        case full
        /// The index cannot be written, or was damaged.
        case index
        /// The folder was written by another version of Drydock.
        case format

        /// It concerns one stored response, which goes: each of them is worth a line.
        fileprivate var isOfOneEntry: Bool { self == .damaged || self == .missing }
    }

    package let kind: Kind
    /// What happened, to what, and what follows.
    package let text: String
    /// How many more of this kind there were since one was told.
    package let untold: Int

    package var description: String {
        untold == 0 ? text : "\(text) (and \(untold) more like it that were not logged)"
    }
}

/// Keeps a disk that fails from filling the log.
///
/// Sendable: what has been told is under a mutex.
final class TroubleTeller: Sendable {
    private struct Told {
        /// Monotonic nanoseconds at which this minute of the kind began.
        var since: UInt64
        var count: Int
        var untold: Int
    }

    private static let minute: UInt64 = 60_000_000_000
    private let told = Mutex<[DiskTrouble.Kind: Told]>([:])
    private let total = Atomic<Int>(0)
    private let tell: @Sendable (DiskTrouble) -> Void
    private let clock: @Sendable () -> UInt64

    /// - Parameters:
    ///   - clock: monotonic nanoseconds.
    ///   - tell: called on I/O threads.
    init(clock: @escaping @Sendable () -> UInt64 = Monotonic.now, _ tell: @escaping @Sendable (DiskTrouble) -> Void) {
        self.clock = clock
        self.tell = tell
    }

    /// All of them, told or not.
    var count: Int { total.load(ordering: .relaxed) }

    /// In a minute, ten of what concerns one stored response, and one of what concerns the disk, are told.
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

    /// What whoever runs the daemon can do.
    package var advice: String { advice(to: .shared) }

    /// What whoever runs the owner of a store can do.
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
