// What became of seeds: stored responses into a folder, and a folder into the store.

/// The answer of `POST /v1/seed?export=DIR`.
package struct AdminSeedExport: Codable, Sendable, Equatable {
    /// Responses in the folder now.
    package var written = 0
    /// Of their bodies.
    package var bytes = 0
    /// Responses that are somebody's own, or that have gone meanwhile.
    package var skipped = 0
    package var failed = 0
    /// Why the first one failed.
    package var firstError: String?

    package init() {}
}

/// The answer of `POST /v1/seed?import=DIR`.
package struct AdminSeedImport: Codable, Sendable, Equatable {
    package var imported = 0
    /// Something as new was stored already.
    package var kept = 0
    /// Files whose URL cannot be told from their name, or that no route asks for.
    package var unknown = 0
    /// The rules of their route do not allow them to be stored.
    package var refused = 0
    package var failed = 0
    /// Why the first one failed.
    package var firstError: String?

    package init() {}
}
