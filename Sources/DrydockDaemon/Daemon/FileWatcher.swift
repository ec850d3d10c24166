// Watches the files of a configuration, and tells which of them have changed.

import EventLoop
import Files
import Glibc
import Logging
import Synchronization

/// Watches the folders of the files of a configuration.
///
/// Sendable: the mutable state is under a mutex; the watch is used on its loop only.
final class FileWatcher: Sendable {
    private struct State {
        var paths: [String] = []
        var signatures: [String: FileSignature] = [:]
        var watch: LoopBox<FolderWatch>?
        /// Folders that cannot be watched; each is logged once.
        var unwatched: Set<String> = []
    }

    private let pool: IOPool
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter pool: the threads on which the files are looked at.
    init(pool: IOPool, logger: Logger) {
        self.pool = pool
        self.logger = logger
    }

    /// Watches these files from now on, and no others. Any thread; blocks.
    /// - Parameter signatures: the signatures of the files before they were read.
    func follow(_ paths: [String], _ signatures: [String: FileSignature]) {
        let watch = state.withLock { state in
            state.paths = paths
            state.signatures = signatures
            return state.watch
        }
        watch?.submit { [self] watch, _ in replace(watch) }
    }

    /// Starts to watch.
    /// - Parameter changed: called on an I/O thread with the files that have changed or are gone.
    func start(on loop: isolated EventLoop, changed: @escaping @Sendable ([String]) -> Void) {
        do throws(SystemError) {
            let watch = try FolderWatch(on: loop) { [weak self] in
                guard let self else { return }
                pool.submit { [self] in look(changed) }
            }
            state.withLock { $0.watch = LoopBox(watch, on: loop) }
            replace(watch)
        } catch {
            logger.warning("changed files are not noticed: \(error); 'drydock reload' reads them")
            return
        }
        // The first look finds what has changed since the files were read.
        pool.submit { [self] in look(changed) }
    }

    /// Ends the watch; called before the loop ends.
    func stop(on loop: isolated EventLoop) {
        let box = state.withLock { state in
            defer { state.watch = nil }
            return state.watch
        }
        _ = box?.take(on: loop)
    }

    /// Watches the folders of the files. On the loop of the watch.
    private func replace(_ watch: FolderWatch) {
        let paths = state.withLock { $0.paths }
        for (folder, error) in watch.watch(filesAt: paths) {
            guard state.withLock({ $0.unwatched.insert(folder).inserted }) else { continue }
            let reason = String(cString: strerror(error))
            logger.warning("changes in \(folder) are not noticed (\(reason)); 'drydock reload' reads its files")
        }
    }

    /// Compares the files with their signatures, and reports the changed ones. On an I/O thread.
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
        // If the state has changed meanwhile, another look has reported the change, or a reload has read the files.
        guard isCurrent else { return }
        // A folder that was replaced by another one has to be watched itself.
        watch?.submit { [self] watch, _ in replace(watch) }
        changed(different)
    }
}
