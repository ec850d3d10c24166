// A seed folder on its way into the store: each file once, under the key of the request that would ask for it.

package import CacheStore
package import HTTPCaching

/// Where a seed is stored, and what it must be.
package struct SeedPlace: Sendable {
    package let key: CacheKey
    package let policy: CachePolicy
    /// Nil: anything.
    package let expectation: SeedExpectation?

    package init(key: CacheKey, policy: CachePolicy, expectation: SeedExpectation?) {
        self.key = key
        self.policy = policy
        self.expectation = expectation
    }
}

/// What an import came to.
package struct SeedCopies: Sendable, Equatable {
    package var imported = 0
    /// Something as new was stored already.
    package var kept = 0
    /// Files whose URL cannot be told from their name, or that nobody asks for.
    package var unknown = 0
    /// The rules for their URL do not allow them to be stored.
    package var refused = 0
    package var failed = 0
    /// Why the first one failed.
    package var firstError: String?

    package init() {}

    /// Stores each response of a folder of which none is stored yet.
    /// - Parameters:
    ///   - parents: URLs of folders that names of layout `docker` may come from.
    ///   - isEnding: asked before each file; true leaves out the rest.
    ///   - place: where a file is stored that may be the body of one of these URLs; nil where nobody asks for any.
    package init(
        of folder: SeedFolder,
        into core: DownloadCore,
        parents: [String],
        isEnding: @Sendable () -> Bool,
        place: @Sendable ([String]) -> SeedPlace?
    ) async {
        // While a tier is finding out what it holds, a stored response may look like an absent one, and would be
        // replaced.
        while core.statistics.isRebuilding, !isEnding() { try? await Task.sleep(for: .milliseconds(100)) }
        let (entries, unknown) = await folder.entries(parents: parents)
        self.unknown = unknown
        for entry in entries where !isEnding() {
            guard let place = place(entry.urls) else {
                self.unknown += 1
                continue
            }
            guard let copy = await folder.take(entry.name, as: place.key, expecting: place.expectation) else {
                fail("\(entry.name) cannot be used; the log says why")
                continue
            }
            switch await core.adopt(copy, as: place.key, place.policy) {
            case .imported: imported += 1
            case .kept: kept += 1
            case .refused: refused += 1
            case .failed(let reason): fail("\(entry.name): \(reason)")
            }
        }
    }

    private mutating func fail(_ reason: String) {
        failed += 1
        firstError = firstError ?? reason
    }
}
