// Seeds on their way into the store: which URLs a folder has, and each file once.

import EventLoop
package import HTTPCaching
package import Policies
import Synchronization

/// One seed to be copied into the store.
package struct SeedCopy: Sendable {
    /// As the folder has it; its times are those of the seed.
    package let head: StoredHead
    package let body: Body
    /// Until when it is fresh, Unix seconds; nil: not at all.
    package let expiry: Int64?
}

/// A file of a folder and the URLs that it may be the body of, the likeliest first.
package struct SeedEntry: Sendable, Equatable {
    package let name: String
    package let urls: [String]
}

extension SeedFolder {
    /// Detects the layout of a folder by its names; blocks.
    /// - Throws: `SeedError` where the path is no folder that can be read.
    package static func layout(of path: String) throws(SeedError) -> SeedLayout {
        let names = try SeedFiles(path).list(deep: false)
        let isOld = !names.isDisjoint(with: SeedDates.names) || names.contains(where: SeedNames.isDocker)
        return isOld ? .docker : .url
    }

    /// The seeds of a URL that were not taken before; they count as taken from now on.
    /// - Parameter expectation: a seed that is something else is left out.
    package func take(_ key: CacheKey, expecting expectation: SeedExpectation? = nil) async -> [SeedCopy] {
        let url = "\(key)"
        let names = candidates(url).filter(claim)
        if names.isEmpty { return [] }
        return (try? await pool.run { [self] in names.compactMap { copy($0, key, url, expectation) } }) ?? []
    }

    /// Takes one seed for a URL; nil if it belongs to another URL, is unreadable, is not what is expected, or was taken
    /// before.
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

    /// Lists the folder. With layout `docker` a name has only a hash of the URL, so that URLs are known
    /// only below the given parents.
    /// - Parameter parents: URLs of folders, such as `https://a.example/images`.
    /// - Returns: the entries by name, and how many files have a URL that is not known.
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
        if layout == .docker { return SeedNames.dockerURL(name, parents).map { [$0] } ?? [] }
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
