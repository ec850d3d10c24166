// A folder of responses that exist before the first fetch: looked up by URL, opened on demand, and copied into the
// store.

package import EventLoop
package import HTTPCaching
package import HTTPWire
package import Policies
import Synchronization

/// The files of a folder as they were listed when it was opened: a new file is found at the next reload, a changed one
/// at once.
///
/// Sendable: the names never change; heads, failures and copies are under a mutex.
package final class SeedFolder: Sendable, Equatable {
    /// The number of unreadable seeds that are remembered, so that each is reported once.
    private static let longestMemory = 4096

    private struct Memory {
        /// The heads by file name, each with the file's stamp when it was read.
        var heads: [String: (stamp: SeedStamp, head: StoredHead)] = [:]
        /// The results of inspections by name and expectation.
        var verdicts: [String: SeedVerdict] = [:]
        var troubles: Set<String> = []
        /// The names that have been copied into the store.
        var taken: Set<String> = []
    }

    /// The path of the folder, as the configuration names it.
    package let path: String
    package let layout: SeedLayout
    package let mode: SeedUse
    /// A number that differs each time a folder is opened, and is never 0: a head that was prepared for an earlier
    /// state of the folder must not be used.
    package let identity: UInt64
    let files: SeedFiles
    let names: Set<String>
    let pool: IOPool
    let dates: SeedDates
    private let onTrouble: @Sendable (String) -> Void
    private let memory = Mutex(Memory())
    private static let opened = Atomic<UInt64>(0)

    /// Lists a folder; blocks, so not on a loop.
    /// - Parameter onTrouble: called once for each unreadable seed, with the remedy; any thread.
    /// - Throws: `SeedError`.
    package init(
        path: String,
        layout: SeedLayout = .url,
        mode: SeedUse = .pinned,
        pool: IOPool,
        onTrouble: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(SeedError) {
        files = try SeedFiles(path)
        dates = layout == .hashed ? try SeedDates(files) : SeedDates()
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

    /// The number of bodies in the folder.
    package let count: Int

    /// Whether a lookup would open a file. Any thread; no disk access.
    package func mayHave(_ key: CacheKey) -> Bool { !candidates("\(key)").isEmpty }

    /// Whether a pinned seed may come before the stored responses of a key. Any thread; no disk access.
    package func shadows(_ key: CacheKey) -> Bool { mode == .pinned && mayHave(key) }

    /// The seed that a request selects, with tier `.seed`; nil if there is no readable one. Any thread: the files are
    /// opened on the I/O pool.
    /// - Parameter expectation: the expected content; other seeds are left out, and each file is inspected once.
    package func lookup(
        _ key: CacheKey,
        request: RequestHead,
        expecting expectation: SeedExpectation? = nil
    ) async -> StoredResponse? {
        let url = "\(key)"
        let candidates = candidates(url)
        if candidates.isEmpty { return nil }
        let found = try? await pool.run { [self] in
            candidates.compactMap { load($0, key, url, expectation) }
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

    /// Opens one seed; on an I/O thread.
    /// - Returns: nil if it belongs to another URL, is unreadable, or does not meet the expectation.
    func load(_ name: String, _ key: CacheKey, _ url: String, _ expectation: SeedExpectation?) -> StoredResponse? {
        do {
            let (descriptor, stamp) = try files.open(name)
            let file = SharedFile(descriptor: descriptor, pool: pool)
            guard let head = try head(name, stamp, url) else { return nil }
            if let expectation, let found = try verdict(name, stamp, head, file, expectation) {
                throw SeedTrouble(reason: "it \(found), which is not what its route expects")
            }
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

    /// Reads the head of a seed; on an I/O thread.
    /// - Returns: nil if it names another URL.
    private func head(_ name: String, _ stamp: SeedStamp, _ url: String) throws -> StoredHead? {
        let headName = name + SeedNames.headSuffix
        let hasHead = names.contains(headName)
        // A head may be edited without a change of the body, so the stamp of its own file is compared, too.
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
        // A hashed name does not show the URL, so the head must have it.
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

    /// Inspects a body, once for each state of its file; on an I/O thread.
    private func verdict(
        _ name: String,
        _ stamp: SeedStamp,
        _ head: StoredHead,
        _ file: SharedFile,
        _ expectation: SeedExpectation
    ) throws -> String? {
        let key = "\(name) \(expectation.name)"
        if let known = memory.withLock({ $0.verdicts[key] }), known.stamp == stamp, known.head == head {
            return known.found
        }
        var offset: Int64 = 0
        let found = try expectation.inspect(head) {
            let count = Int(min(64 * 1024, stamp.size - offset))
            guard count > 0 else { return [] }
            defer { offset += Int64(count) }
            return try file.read(offset: offset, count: count).withBytes { Array($0) }
        }
        memory.withLock { memory in
            if memory.verdicts.count >= Self.longestMemory { memory.verdicts = [:] }
            memory.verdicts[key] = SeedVerdict(stamp: stamp, head: head, found: found)
        }
        return found
    }

    /// Claims a name for a copy; false if it was claimed before.
    func claim(_ name: String) -> Bool { memory.withLock { $0.taken.insert(name).inserted } }

    /// Reports a failure, once for each file.
    private func tell(_ name: String, _ reason: String) {
        let isNew = memory.withLock { memory in
            memory.troubles.count < Self.longestMemory && memory.troubles.insert(name).inserted
        }
        if isNew {
            onTrouble("seed \(files.root)/\(name) is left out: \(reason); mend the file, or remove it and reload")
        }
    }
}

/// The reason why one seed is left out.
struct SeedTrouble: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
}

// MARK: - What a route expects

/// The conditions for a seed that answers for a route.
package struct SeedExpectation: Sendable {
    /// An inspection of a seed: it gets the head, and a function that reads on in the body, which returns nil at its
    /// end.
    package typealias Inspection = @Sendable (_ head: StoredHead, _ next: () throws -> [UInt8]) throws -> String?

    /// The name, which is equal only for equivalent expectations.
    package let name: String
    /// The reason why a seed does not meet the expectation, such as `begins with "<!do"`; nil if it does. Called on an
    /// I/O thread.
    let inspect: Inspection

    package init(name: String, inspect: @escaping Inspection) {
        self.name = name
        self.inspect = inspect
    }

    /// The reason why a response in memory does not meet the expectation; nil if it does. Any thread.
    package func mismatch(_ head: StoredHead, _ content: [UInt8]) -> String? {
        var rest = content
        // The content is in memory, so that reading it cannot fail.
        let found = try? inspect(head) {
            defer { rest = [] }
            return rest
        }
        return found ?? nil
    }
}

/// The result of an inspection, valid as long as the file does not change.
struct SeedVerdict {
    let stamp: SeedStamp
    /// The head at that time: its fields determine the coding of the body.
    let head: StoredHead
    let found: String?
}

// MARK: - Copies for the store

/// A seed that is to be copied into the store.
package struct SeedCopy: Sendable {
    /// The head in the folder, with the times of the seed.
    package let head: StoredHead
    package let body: Body
    /// The time until which it is fresh, in Unix seconds; nil if it is not fresh at all.
    package let expiry: Int64?
}

/// A file of a folder, and the URLs that it may belong to, the likeliest first.
package struct SeedEntry: Sendable, Equatable {
    package let name: String
    package let urls: [String]
}

extension SeedFolder {
    /// Detects the layout of a folder by its names; blocks.
    /// - Throws: `SeedError` if the path is no folder that can be read.
    package static func layout(of path: String) throws(SeedError) -> SeedLayout {
        let names = try SeedFiles(path).list(deep: false)
        let isOld = !names.isDisjoint(with: SeedDates.names) || names.contains(where: SeedNames.isDocker)
        return isOld ? .hashed : .url
    }

    /// The seeds of a URL that were not taken before; they count as taken from now on.
    /// - Parameter expectation: the expected content; other seeds are left out.
    package func take(_ key: CacheKey, expecting expectation: SeedExpectation? = nil) async -> [SeedCopy] {
        let url = "\(key)"
        let names = candidates(url).filter(claim)
        if names.isEmpty { return [] }
        return (try? await pool.run { [self] in names.compactMap { copy($0, key, url, expectation) } }) ?? []
    }

    /// Takes one seed for a URL; nil if it belongs to another URL, is unreadable, does not meet the expectation, or was
    /// taken before.
    package func take(
        _ name: String,
        as key: CacheKey,
        expecting expectation: SeedExpectation? = nil
    ) async -> SeedCopy? {
        guard claim(name) else { return nil }
        return try? await pool.run { [self] in copy(name, key, "\(key)", expectation) }
    }

    private func copy(
        _ name: String,
        _ key: CacheKey,
        _ url: String,
        _ expectation: SeedExpectation?
    ) -> SeedCopy? {
        load(name, key, url, expectation).map { SeedCopy(head: $0.head, body: $0.body, expiry: dates.expiry(name)) }
    }

    /// Lists the folder. With layout `docker` a name has only a hash of the URL, so that URLs are known only below the
    /// given parents.
    /// - Parameter parents: the URLs of folders, such as `https://a.example/images`.
    /// - Returns: the entries by name, and the number of files whose URL is unknown.
    package func entries(parents: [String] = []) async -> (known: [SeedEntry], unknown: Int) {
        let found = try? await pool.run { [self] in
            let bodies = names.filter { !$0.hasSuffix(SeedNames.headSuffix) }.sorted()
            let known = SeedNames.parents(parents)
            return (bodies.map { SeedEntry(name: $0, urls: urls($0, known)) }.filter { !$0.urls.isEmpty }, bodies.count)
        }
        guard let (known, count) = found else { return ([], 0) }
        return (known, count - known.count)
    }

    private func urls(_ name: String, _ parents: [String: String]) -> [String] {
        if layout == .hashed { return SeedNames.dockerURL(name, parents).map { [$0] } ?? [] }
        let headName = name + SeedNames.headSuffix
        if names.contains(headName), let bytes = try? files.read(headName), let url = try? SeedHead.decode(bytes).url {
            return [url]
        }
        return SeedNames.urls(name)
    }
}

extension SeedCopy {
    /// The body in memory.
    package func chunk() async throws -> Chunk {
        guard case .file(let file, let offset, let length) = body.source else {
            guard let chunk = body.wholeChunk else { throw BodyError.abandoned }
            return chunk
        }
        return try await file.load(offset: offset, count: Int(clamping: length))
    }
}
