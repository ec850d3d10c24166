// What one download wants otherwise than its manager has it.

/// The wishes of one download. They are a value: nothing that is downloaded changes them.
///
/// Programs write ``DownloadManager/Options``.
public struct DownloadOptions: Sendable, Hashable {
    /// How long what comes stays valid; nil, the default, is the manager's ``DownloadConfiguration/lifetime``.
    public var lifetime: Duration?
    /// Looks into ``DownloadConfiguration/seeds`` first, if there are any. True by default.
    public var usesSeeds: Bool
    /// Asks the origin, whatever is stored and however valid it is. What comes is stored in the place of the stored
    /// response, which stays until the new one is whole. False by default.
    public var forcesDownload: Bool
    /// Answers from what is stored, or not at all: the origin is never asked, neither for a size nor behind the answer,
    /// and with ``bypassesStore`` only a seed can answer. False by default.
    public var onlyStored: Bool
    /// Leaves what is stored alone: nothing is looked up in memory or on disk, and nothing is kept; seeds are looked up
    /// all the same. False by default.
    public var bypassesStore: Bool
    /// Events begin with the stored response when that is no longer valid, while it is checked. False by default; a
    /// download without events knows only its final result.
    public var yieldsStaleFirst: Bool
    /// What the body should be. One that is something else, such as an error page in the place of an image, is handed
    /// over and not kept, and the log says so. Anything by default.
    public var expectation: Expectation

    /// Wishes; those that are left out are the defaults.
    public init(
        lifetime: Duration? = nil,
        usesSeeds: Bool = true,
        forcesDownload: Bool = false,
        onlyStored: Bool = false,
        bypassesStore: Bool = false,
        yieldsStaleFirst: Bool = false,
        expectation: Expectation = .anything
    ) {
        self.lifetime = lifetime
        self.usesSeeds = usesSeeds
        self.forcesDownload = forcesDownload
        self.onlyStored = onlyStored
        self.bypassesStore = bypassesStore
        self.yieldsStaleFirst = yieldsStaleFirst
        self.expectation = expectation
    }
}

extension DownloadOptions {
    /// What a body should be; gzip, deflate and Brotli are looked through.
    public enum Expectation: String, Sendable, Hashable, CaseIterable {
        /// Whatever comes.
        case anything
        /// A JSON text.
        case json
        /// A JSON text that is an object.
        case jsonObject
        /// A JSON text that is an array.
        case jsonArray
        /// A property list, as XML or binary.
        case propertyList
        /// An image, by its first bytes.
        case image
    }
}
