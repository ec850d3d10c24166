// A folder of responses that are there before anything was fetched: looked up by URL, opened when they are asked for.

package import EventLoop
import HTTPCaching
package import HTTPWire
package import Policies
import Synchronization

/// The files of a folder as they were listed when it was opened: a new one is found at the next reload, a changed one at
/// once.
///
/// Sendable: the names never change; what is remembered of heads, of troubles and of copies is under a mutex.
package final class SeedFolder: Sendable, Equatable {
    /// The names of seeds that could not be read are told once each, up to so many.
    private static let longestMemory = 4096

    private struct Memory {
        /// By name: what a file was when its head was read.
        var heads: [String: (stamp: SeedStamp, head: StoredHead)] = [:]
        var troubles: Set<String> = []
        /// Names that have been copied into the store.
        var taken: Set<String> = []
    }

    /// As the configuration names it.
    package let path: String
    package let layout: SeedLayout
    package let mode: SeedMode
    /// Another one each time a folder is opened, never 0: what was made ready for one state of a folder is not for another.
    package let identity: UInt64
    let files: SeedFiles
    let names: Set<String>
    let pool: IOPool
    let dates: SeedDates
    private let onTrouble: @Sendable (String) -> Void
    private let memory = Mutex(Memory())
    private static let opened = Atomic<UInt64>(0)

    /// Lists a folder; blocks, so not on a loop.
    /// - Parameter onTrouble: told once of each seed that cannot be read, what to do about it, too; any thread.
    /// - Throws: `SeedError`.
    package init(
        path: String,
        layout: SeedLayout = .url,
        mode: SeedMode = .pinned,
        pool: IOPool,
        onTrouble: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(SeedError) {
        files = try SeedFiles(path)
        dates = layout == .docker ? try SeedDates(files) : SeedDates()
        names = try files.list(deep: layout == .url).filter { !SeedDates.names.contains($0) }
        count = names.count { !$0.hasSuffix(SeedNames.headSuffix) }
        self.path = path
        self.layout = layout
        self.mode = mode
        self.pool = pool
        self.onTrouble = onTrouble
        identity = Self.opened.wrappingAdd(1, ordering: .relaxed).newValue
    }

    package static func == (left: SeedFolder, right: SeedFolder) -> Bool { left === right }

    /// Bodies in the folder.
    package let count: Int

    /// Whether a lookup would have a file to open. Any thread; asks no disk.
    package func mayHave(_ key: CacheKey) -> Bool { !candidates("\(key)").isEmpty }

    /// Whether what is stored under a key may stand behind a pinned seed. Any thread; asks no disk.
    package func shadows(_ key: CacheKey) -> Bool { mode == .pinned && mayHave(key) }

    /// The seed that a request selects, with tier `.seed`; nil where there is none, or none that can be read. Any thread:
    /// the files are opened on the I/O pool.
    package func lookup(_ key: CacheKey, request: RequestHead) async -> StoredResponse? {
        let url = "\(key)"
        let candidates = candidates(url)
        if candidates.isEmpty { return nil }
        let found = try? await pool.run { [self] in
            candidates.compactMap { load($0, key, url) }
        }
        guard let found else { return nil }
        return Caching.select(from: found.map(\.head), request: request).map { found[$0] }
    }

    /// The names of files that may be those of a URL.
    func candidates(_ url: String) -> [String] {
        var candidates = SeedNames.candidates(url, layout).filter(names.contains)
        guard layout == .url else { return candidates }
        var number = 0
        var name = SeedNames.hashed(url)
        while names.contains(name) {
            candidates.append(name)
            number += 1
            name = SeedNames.hashed(url, number)
        }
        return candidates
    }

    /// Opens one seed; I/O thread.
    /// - Returns: nil where it is another URL's, or cannot be read.
    func load(_ name: String, _ key: CacheKey, _ url: String) -> StoredResponse? {
        do {
            let (descriptor, stamp) = try files.open(name)
            let file = SharedFile(descriptor: descriptor, pool: pool)
            guard let head = try head(name, stamp, url) else { return nil }
            return StoredResponse(
                key: key,
                head: head,
                body: .file(file, offset: 0, length: stamp.size),
                preparedHead: [],
                hot: nil,
                tier: .seed
            )
        } catch {
            tell(name, "\(error)")
            return nil
        }
    }

    /// What is known of a file; I/O thread.
    /// - Returns: nil where its head names another URL.
    private func head(_ name: String, _ stamp: SeedStamp, _ url: String) throws -> StoredHead? {
        let headName = name + SeedNames.headSuffix
        let hasHead = names.contains(headName)
        // A head is changed by hand without a change of the body, so that its own state counts, too.
        let known = memory.withLock { $0.heads[name] }
        if let known, known.stamp == stamp, !hasHead { return known.head }
        var document = SeedHead()
        if hasHead {
            do {
                document = try SeedHead.decode(try files.read(headName))
            } catch {
                throw SeedTrouble(reason: "\(headName) is not a head: \(error)")
            }
        }
        if let other = document.url, other != url { return nil }
        // What has a name that says nothing has to say whose it is.
        if document.url == nil, name.split(separator: "/").last?.first == "~" { return nil }
        let head = document.stored(
            name: name,
            stamp,
            lastModified: dates.lastModified(name),
            validators: mode == .pinned
        )
        guard let head else { throw SeedTrouble(reason: "\(headName) has a status or a field that cannot be sent") }
        if !hasHead {
            memory.withLock { memory in
                if memory.heads.count >= Self.longestMemory { memory.heads = [:] }
                memory.heads[name] = (stamp, head)
            }
        }
        return head
    }

    /// Takes a name for a copy; false where it has been taken before.
    func claim(_ name: String) -> Bool { memory.withLock { $0.taken.insert(name).inserted } }

    /// Once for each file.
    private func tell(_ name: String, _ reason: String) {
        let isNew = memory.withLock { memory in
            memory.troubles.count < Self.longestMemory && memory.troubles.insert(name).inserted
        }
        if isNew {
            onTrouble("seed \(files.root)/\(name) is left out: \(reason); mend the file, or remove it and reload")
        }
    }
}

/// Why one seed is left out.
struct SeedTrouble: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
}
