// Reports changes in the folders of some files, by inotify.

package import EventLoop
import Glibc

/// Watches folders on a loop; loop-bound. It reports only that something changed: the caller looks at the files, so
/// that a file that is written, moved into place or reached through a symbolic link needs no separate case.
package final class FolderWatch: IOHandler {
    /// The nanoseconds without changes before a report: an editor makes several changes for one.
    package static let settling: UInt64 = 50_000_000

    private struct Folder {
        let path: String
        /// The names whose changes count; nil for all.
        var names: Set<String>?
    }

    private let descriptor: Int32
    private let settling: UInt64
    private var folders: [Int32: Folder] = [:]
    private var event: IOEvent?
    private var timer: LoopTimer?
    private var isWaiting = false

    /// - Parameter changed: called on the loop, once for changes that come together; it should not capture the owner of
    ///   the watch strongly.
    /// - Throws: the kernel's error if it has no watches left.
    package init(
        on loop: isolated EventLoop,
        settling: UInt64 = settling,
        changed: @escaping () -> Void
    ) throws(SystemError) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("watch folders") }
        self.settling = settling
        timer = LoopTimer(on: loop) { [weak self] in
            self?.isWaiting = false
            changed()
        }
        event = IOEvent(on: loop, descriptor: descriptor, handler: self)
        event?.watch(.read)
    }

    deinit {
        event?.cancel()
        close(descriptor)
    }

    /// Watches the folders of these files from now on, and no others. The folder above each is watched, too, in case it
    /// is replaced.
    /// - Parameter paths: absolute paths.
    /// - Returns: the folders that cannot be watched, and the errors.
    package func watch(filesAt paths: [String]) -> [(folder: String, error: Int32)] {
        var wanted: [String: Set<String>?] = [:]
        for folder in Set(paths.map(Self.folder)) {
            wanted[folder] = .some(nil)
            let (above, name) = (Self.folder(of: folder), String(folder.split(separator: "/").last ?? ""))
            guard !name.isEmpty else { continue }
            if case .some(.some(let names)) = wanted[above] {
                wanted[above] = names.union([name])
            } else if wanted[above] == nil {
                wanted[above] = [name]
            }
        }
        var watched: [Int32: Folder] = [:]
        var troubles: [(folder: String, error: Int32)] = []
        for (path, names) in wanted {
            let number = inotify_add_watch(descriptor, path, Self.mask)
            if number >= 0 {
                watched[number] = Folder(path: path, names: names)
            } else if names == nil {
                troubles.append((path, errno))
            }
        }
        for number in folders.keys where watched[number] == nil { inotify_rm_watch(descriptor, number) }
        folders = watched
        return troubles.sorted { $0.folder < $1.folder }
    }

    private static let mask = UInt32(
        IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR
    )

    private static func folder(of path: String) -> String {
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        return "/" + folder
    }

    package func ready(_ readiness: IOReadiness) {
        var isMeant = false
        // The event is level-triggered: the rest is read in the next turn.
        var buffer = [UInt8](repeating: 0, count: 16384)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return }
        buffer.withUnsafeBytes { bytes in
            var position = 0
            let header = MemoryLayout<inotify_event>.size
            while position + header <= count {
                let event = bytes.loadUnaligned(fromByteOffset: position, as: inotify_event.self)
                let end = min(position + header + Int(event.len), count)
                let name = bytes[position + header..<end].prefix { $0 != 0 }
                isMeant = isMeant || means(event, name)
                position = end
            }
        }
        guard isMeant, !isWaiting else { return }
        isWaiting = true
        timer?.start(after: settling)
    }

    /// Whether a file that is watched may have changed.
    private func means(_ event: inotify_event, _ name: Slice<UnsafeRawBufferPointer>) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        guard let folder = folders[event.wd] else { return false }
        return folder.names?.contains(String(decoding: name, as: UTF8.self)) ?? true
    }
}

@available(*, unavailable) extension FolderWatch: Sendable {}
