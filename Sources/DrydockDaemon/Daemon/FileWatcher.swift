// The files of a configuration, watched: which of them have changed, for whoever reads them again.

import EventLoop
import Files
import Glibc
import Logging
import Synchronization

/// What a file was when it was last looked at.
struct FileSignature: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// Follows symbolic links; nil where nothing is there. Blocks.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// Of each file that is there. Blocks.
    static func all(of paths: [String]) -> [String: FileSignature] {
        var signatures: [String: FileSignature] = [:]
        for path in paths { signatures[path] = FileSignature(path: path) }
        return signatures
    }
}

/// Sendable: what changes is under a mutex; the watch is used on its loop alone.
final class FileWatcher: Sendable {
    private struct State {
        var paths: [String] = []
        var signatures: [String: FileSignature] = [:]
        var watch: LoopBox<FolderWatch>?
        /// Folders that are known to have no watch: each is logged once.
        var unwatched: Set<String> = []
    }

    private let pool: IOPool
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter pool: looks at the files.
    init(pool: IOPool, logger: Logger) {
        self.pool = pool
        self.logger = logger
    }

    /// From now on these files are watched, and no others. Any thread; blocks.
    /// - Parameter signatures: what they were before they were read.
    func follow(_ paths: [String], _ signatures: [String: FileSignature]) {
        let watch = state.withLock { state in
            state.paths = paths
            state.signatures = signatures
            return state.watch
        }
        watch?.submit { [self] watch, _ in place(watch) }
    }

    /// - Parameter changed: called on an I/O thread with the files that have changed, those that are gone among them.
    func start(on loop: isolated EventLoop, changed: @escaping @Sendable ([String]) -> Void) {
        do throws(SystemError) {
            let watch = try FolderWatch(on: loop) { [weak self] in
                guard let self else { return }
                pool.submit { [self] in look(changed) }
            }
            state.withLock { $0.watch = LoopBox(watch, on: loop) }
            place(watch)
        } catch {
            logger.warning("changed files are not noticed: \(error); 'drydock reload' reads them")
            return
        }
        // What has changed since it was read.
        pool.submit { [self] in look(changed) }
    }

    /// Before the loop ends.
    func stop(on loop: isolated EventLoop) {
        let box = state.withLock { state in
            defer { state.watch = nil }
            return state.watch
        }
        _ = box?.take(on: loop)
    }

    /// On the loop of the watch.
    private func place(_ watch: FolderWatch) {
        let paths = state.withLock { $0.paths }
        for (folder, error) in watch.watch(filesAt: paths) {
            guard state.withLock({ $0.unwatched.insert(folder).inserted }) else { continue }
            let reason = String(cString: strerror(error))
            logger.warning("changes in \(folder) are not noticed (\(reason)); 'drydock reload' reads its files")
        }
    }

    /// On an I/O thread.
    private func look(_ changed: @Sendable ([String]) -> Void) {
        let (paths, before, watch) = state.withLock { ($0.paths, $0.signatures, $0.watch) }
        let now = FileSignature.all(of: paths)
        let different = paths.filter { before[$0] != now[$0] }
        guard !different.isEmpty else { return }
        let isCurrent = state.withLock { state in
            guard state.paths == paths, state.signatures == before else { return false }
            state.signatures = now
            return true
        }
        // Another look has told it, or a reload has read the files.
        guard isCurrent else { return }
        // A folder that was put into the place of another one is to be watched itself.
        watch?.submit { [self] watch, _ in place(watch) }
        changed(different)
    }
}
