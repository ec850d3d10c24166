// What a seed folder is used for, and how its files are named.

/// How the files of a seed folder are named.
package enum SeedLayout: String, Sendable, CaseIterable {
    /// `HOST[:PORT]/PATH[?QUERY]`, beside it `….head.json` with what the file itself cannot say.
    case url
    /// `MD5(URL up to the last slash)_LAST`, with the dates in property lists: the folders of the old download manager.
    case docker
}

/// What a seed folder is used for.
package enum SeedMode: String, Sendable, CaseIterable {
    /// Looked at first, before memory and disk; its answers are never checked and never too old.
    case pinned
    /// Seeds that are not stored are copied into the store as stale, so that the first use validates them.
    case `import`
}
