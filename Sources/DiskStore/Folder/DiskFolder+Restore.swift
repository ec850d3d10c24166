// Makes a folder whole again from which somebody removes files while it is in use.

import EventLoop
import Files
import Glibc
import Synchronization

extension DiskFolder {
    /// The files and folders that must exist while the folder is in use.
    private static let lasting = FolderMark.names + ["secret", "lock"] + folders

    /// What somebody has removed, by name; blocks.
    func missing() -> [String] {
        let isHeld = lock.withLock { $0?.holds(path) ?? true }
        // What cannot be looked at is not gone.
        return Self.lasting.filter { name in
            !isHeld || access("\(path)/\(name)", F_OK) != 0 && [ENOENT, ENOTDIR].contains(errno)
        }
    }

    /// Makes missing files and folders, with the same secret, and locks the folder again if it was replaced; blocks.
    /// - Returns: the names that were missing.
    /// - Throws: `DiskTierError`: `.inUse` where another daemon has taken the place of the folder, `.notTaken` where
    ///   somebody has put something else there.
    func restore() throws(DiskTierError) -> [String] {
        let missing = missing()
        guard !missing.isEmpty else { return [] }
        try lock.withLock { held throws(DiskTierError) in
            guard let lock = held else { throw .closed }
            if !lock.holds(path) {
                try Self.makeFolders(path, calls)
                guard
                    try DiskTierError.mark({ () throws(FolderError) in
                        try FolderMark.inspect(path, kind, newest: format)
                    }) == .empty
                else {
                    throw .folder(SystemError("use \(path), which is another store now", code: ESTALE))
                }
                held = try FolderLock(path)
                lock.release()
            }
            try DiskTierError.mark { () throws(FolderError) in try FolderMark.restore(path, kind, format: format) }
            try held?.takeFile(path, calls)
            for name in Self.folders { try Self.makeFolders("\(path)/\(name)", calls) }
            do throws(SystemError) {
                try WholeFile.replace("\(path)/secret", with: secret)
            } catch {
                throw .folder(error)
            }
        }
        return missing
    }
}
