// Locks a folder against other daemons. The lock is on the folder itself, so that removing a file
// in it does not release it.

import CacheStore
import EventLoop
import Glibc

/// A value that holds descriptors: its owner must call ``release()`` once.
struct FolderLock: Sendable {
    private let folder: Int32
    /// The lock on the file `lock`, the only one that version 0.1.0 checks; -1 if it is not held.
    private var file: Int32 = -1

    /// Takes the folder and changes nothing in it; blocks.
    /// - Throws: `DiskTierError.inUse` where another process has it.
    init(_ path: String) throws(DiskTierError) {
        folder = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder < 0 { throw .folder(SystemError("open \(path)")) }
        // Some network file systems lock only files that are open for writing: there the lock file must do.
        guard flock(folder, LOCK_EX | LOCK_NB) != 0, [EWOULDBLOCK, EINTR].contains(errno) else { return }
        close(folder)
        throw .inUse(path: path)
    }

    /// Locks the file, too, and makes it if it is missing; blocks.
    mutating func takeFile(_ path: String, _ calls: FileCalls) throws(DiskTierError) {
        if file >= 0 { close(file) }
        file = calls.open("\(path)/lock", O_RDWR | O_CREAT, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)/lock")) }
        if flock(file, LOCK_EX | LOCK_NB) == 0 { return }
        throw errno == EWOULDBLOCK ? .inUse(path: path) : .folder(SystemError("flock \(path)/lock"))
    }

    /// Whether the folder of that name is still the one that is locked; blocks.
    func holds(_ path: String) -> Bool {
        var (mine, there) = (stat(), stat())
        guard fstat(folder, &mine) == 0, stat(path, &there) == 0 else { return false }
        return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino
    }

    /// Lets another process use the folder.
    func release() {
        for descriptor in [file, folder] where descriptor >= 0 {
            // Closing alone would not do while a child that was just forked has a copy of the descriptor.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }
}
