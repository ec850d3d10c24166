// Keeps a folder of recordings tidy: finds contents that were changed, and removes contents that no head names.

import EventLoop
import Files
import Glibc
import HTTPCaching
import Synchronization

/// Looks at the files that ``RecordingFolder`` has named, and leaves all others alone.
///
/// Sendable: the table of reported files is under a mutex; the rest is atomic.
final class RecordingSweep: Sendable {
    private let path: String
    private let isSwept = Atomic<Bool>(false)
    /// The contents whose changes were reported, and the long ones that were looked at.
    private let told = Mutex<Set<String>>([])
    /// The largest number of entries in ``told``; it is emptied then, and changes are reported again.
    private static let mostTold = 4096

    init(_ path: String) { self.path = path }

    /// The part of a content's SHA-256 that is in the name of its file.
    static func digest(of content: [UInt8]) -> String { content.withUnsafeBytes { digest(of: $0) } }

    static func digest(of content: UnsafeRawBufferPointer) -> String { begin(ContentDigest.sha256.hex(content)) }

    private static func begin(_ digest: String?) -> String { String((digest ?? "").prefix(8)) }

    /// The parts of the name of a content's file: the recording's name, and the digest; nil for a name of another form.
    private static func parts(of file: Substring) -> (name: String, digest: String)? {
        let parts = file.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1].utf8.count == 16, parts[2].utf8.count == 8, !parts[0].isEmpty,
            (parts[1] + parts[2]).utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
        else { return nil }
        return ("\(parts[0]).\(parts[1])", String(parts[2]))
    }

    /// The prefix of a file that is unlinked as soon as it is open, and becomes a content later.
    static let nameless = ".recording-"

    private static func isNameless(_ file: String) -> Bool {
        file.hasPrefix(nameless) && UInt64(file.dropFirst(nameless.count), radix: 16) != nil
    }

    /// The beginning of a content's digest if it is not the one in the name; nil if it is, if the name has none, and if
    /// it was reported before.
    func difference(of content: [UInt8], from file: String) -> String? {
        guard let named = Self.parts(of: file[...])?.digest else { return nil }
        let found = Self.digest(of: content)
        return found != named && isNews("\(file) \(found)") ? found : nil
    }

    /// The beginning of the digest as ``difference(of:from:)`` has it, for a content that is read in parts; the same
    /// file is read only once.
    func difference(ofOpen descriptor: Int32, from file: String) -> String? {
        guard let named = Self.parts(of: file[...])?.digest else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        let time = status.st_mtim
        guard isNews("\(file) \(status.st_ino) \(status.st_size) \(time.tv_sec).\(time.tv_nsec)") else { return nil }
        var offset = 0
        let digest = ContentDigest.sha256.hex { part in
            var count = pread(descriptor, part.baseAddress, part.count, offset)
            while count < 0, errno == EINTR { count = pread(descriptor, part.baseAddress, part.count, offset) }
            offset += max(0, count)
            return count
        }
        // A content that cannot be read is reported when it is sent.
        guard let digest else { return nil }
        let found = Self.begin(digest)
        return found != named && isNews("\(file) \(found)") ? found : nil
    }

    private func isNews(_ text: String) -> Bool {
        told.withLock { told in
            if told.count >= Self.mostTold { told = [] }
            return told.insert(text).inserted
        }
    }

    /// Locks the folder against other processes that sweep it or write in it. Blocks, for two seconds at most, since
    /// any process that can read the folder can hold its lock. One caller at a time.
    /// - Returns: the argument of ``unlock(_:)``; nil if the folder cannot be locked.
    func lock() -> Int32? {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return nil }
        for _ in 0..<200 {
            if flock(folder, LOCK_EX | LOCK_NB) == 0 { return folder }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            usleep(10_000)
        }
        close(folder)
        return nil
    }

    func unlock(_ folder: Int32?) { if let folder { close(folder) } }

    /// Removes, once, the files that a killed process has left: contents that no head names, since a content is written
    /// before its head, and files that were not renamed yet. The caller has the lock.
    func removeOrphans() {
        guard !isSwept.exchange(true, ordering: .relaxed) else { return }
        let files = FolderNames.of(path)
        var named: Set<String> = []
        var unreadable: Set<String> = []
        for file in files where file.hasSuffix(RecordingFolder.headSuffix) {
            let bytes = try? WholeFile.readEdited("\(path)/\(file)")
            if let document = bytes.flatMap({ try? RecordingDocument.decode($0) }) {
                if let content = document.content { named.insert(content) }
            } else {
                // The contents of an unreadable head are kept: a person may be about to correct it.
                unreadable.insert(String(file.dropLast(RecordingFolder.headSuffix.count)))
            }
        }
        for file in files where !named.contains(file) {
            let isUnfinished = file.hasSuffix(".new")
            let whole = isUnfinished ? file.dropLast(4) : file[...]
            if let name = Self.parts(of: whole)?.name {
                if !unreadable.contains(name) { unlink("\(path)/\(file)") }
            } else if isUnfinished && whole.hasSuffix(RecordingFolder.headSuffix) || Self.isNameless(file) {
                unlink("\(path)/\(file)")
            }
        }
    }
}

/// The folders of recordings in use, one object for each path, so that all writers of a folder wait for each other: the
/// routes of a service, and those of the previous plan whose requests are under way.
///
/// Sendable: the table and the preparation are each under a mutex.
package final class RecordingFolders: Sendable {
    private struct Entry {
        weak var folder: RecordingFolder?
    }

    /// The closure that prepares folders. It is in an object, since a closure directly under a mutex would be wrapped
    /// once more at each look.
    private final class Preparation: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let preparation = Mutex<Preparation?>(nil)
    private let table = Mutex<[String: Entry]>([:])

    package init() {}

    /// Sets the closure that is called before a folder is made: the store's folder, in which it may lie, has to be
    /// marked before.
    package func prepare(by run: @escaping @Sendable () -> Void) { preparation.exchange(Preparation(run)) }

    /// Calls the closure that prepares folders. Blocks.
    package func prepare() { preparation.withLock { $0 }?.run() }

    /// The folder of a path; it is made if it is not in use.
    package func folder(_ path: String, _ make: () -> RecordingFolder) -> RecordingFolder {
        table.withLock { table in
            if let known = table[path]?.folder { return known }
            table = table.filter { $0.value.folder != nil }
            let made = make()
            table[path] = Entry(folder: made)
            return made
        }
    }
}
