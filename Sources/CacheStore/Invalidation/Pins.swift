// Pinned URLs: their stored responses are not evicted, and not purged for their age.

package import EventLoop
import Files
import Glibc
import Synchronization

/// The reason why a URL is not pinned.
package enum PinError: Error, Sendable, Equatable, CustomStringConvertible {
    case tooMany
    case tooLong(Int)
    /// The pin is in force, but not on the disk.
    case notWritten(SystemError)
    /// The daemon is shutting down.
    case ended

    package var description: String {
        switch self {
        case .tooMany: "\(Pins.most) URLs are pinned already; unpin some of them"
        case .tooLong(let length): "the URL has \(length) bytes; at most \(Pins.longest) can be pinned"
        case .notWritten(let error):
            "in force until the daemon ends, but it could not be written: \(error); make room on the disk, or its folder writable, and say it again"
        case .ended: "the daemon is ending, and pins nothing any more"
        }
    }
}

/// The set of pinned URLs. Sendable: the set is under a mutex; the file is written under another.
package final class Pins: Sendable {
    /// The most URLs.
    package static let most = 1000
    /// The most bytes of one URL.
    package static let longest = 8192

    private let urls = Mutex<Set<[UInt8]>>([])
    /// Whether there are no pins, so that the mutex is not needed.
    private let isEmpty = Atomic<Bool>(true)
    private let path: String?
    private let isOurs: @Sendable () -> Bool
    /// Whether the folder of the file belongs to another owner, so that it is not written; held while the file is
    /// written.
    private let isAway = Mutex(false)

    /// Makes pins in memory only.
    package init() { (path, isOurs) = (nil, { true }) }

    /// Makes pins that a file keeps, one URL per line; blocks.
    /// - Parameter isOurs: returns whether the folder is still the locked one; blocks.
    package init(path: String, isOurs: @escaping @Sendable () -> Bool = { true }) {
        self.path = path
        self.isOurs = isOurs
        let lines = WholeFile.readOwn(path).split(separator: UInt8(ascii: "\n")).map(Array.init)
        update { urls in urls = Set(lines.filter { $0.count <= Self.longest }.prefix(Self.most)) }
    }

    package func contains(_ key: CacheKey) -> Bool {
        if isEmpty.load(ordering: .relaxed) { return false }
        return urls.withLock { $0.contains(Array(key.urlBytes)) }
    }

    /// Whether a URL is pinned.
    /// - Parameter url: the URL in the form of a key.
    package func contains(_ url: String) -> Bool { urls.withLock { $0.contains(Array(url.utf8)) } }

    /// All pinned URLs, in the order of their bytes.
    package var all: [String] { urls.withLock { $0.map { String(decoding: $0, as: UTF8.self) } }.sorted() }

    package var count: Int { urls.withLock { $0.count } }

    /// Pins a URL; returns when the pin has reached the disk; blocks.
    /// - Parameter url: the URL in the form of a key.
    /// - Returns: false if it was pinned already.
    package func add(_ url: String) throws(PinError) -> Bool {
        let bytes = Array(url.utf8)
        if bytes.count > Self.longest { throw .tooLong(bytes.count) }
        let isNew: Bool? = update { urls in
            if urls.contains(bytes) { return false }
            return urls.count < Self.most ? urls.insert(bytes).inserted : nil
        }
        guard let isNew else { throw .tooMany }
        try write()
        return isNew
    }

    /// Unpins a URL; returns when the removal has reached the disk; blocks.
    /// - Returns: false if it was not pinned.
    package func remove(_ url: String) throws(PinError) -> Bool {
        let wasThere = update { $0.remove(Array(url.utf8)) != nil }
        try write()
        return wasThere
    }

    private func update<R>(_ change: (inout Set<[UInt8]>) -> R) -> R {
        urls.withLock { urls in
            defer { isEmpty.store(urls.isEmpty, ordering: .relaxed) }
            return change(&urls)
        }
    }

    /// Sets whether the folder belongs to another owner now, so that nothing is written into it; blocks.
    package func setAway(_ isAway: Bool) { self.isAway.withLock { $0 = isAway } }

    /// Writes the file again after it was removed; blocks.
    package func rewrite() { if !isEmpty.load(ordering: .relaxed) { try? write() } }

    private func write() throws(PinError) {
        guard let path else { return }
        do throws(SystemError) {
            try isAway.withLock { isAway throws(SystemError) in
                if isAway || !isOurs() { throw SystemError("write \(path)", code: ESTALE) }
                let lines = urls.withLock { $0.sorted { $0.lexicographicallyPrecedes($1) } }
                try WholeFile.replace(path, with: lines.flatMap { $0 + [UInt8(ascii: "\n")] })
            }
        } catch {
            throw .notWritten(error)
        }
    }
}
