// The names under which programs write the types of a manager's settings.
//
// The settings stand outside the manager, so that what is below it knows them and not the manager.

extension DownloadManager {
    /// The settings of a manager.
    public typealias Configuration = DownloadConfiguration
    /// The wishes of one download.
    public typealias Options = DownloadOptions
    /// Who says how long a response stays valid.
    public typealias Mode = DownloadConfiguration.Mode
    /// How a stored response is checked that is no longer valid.
    public typealias Check = DownloadConfiguration.Check
    /// What a check by HEAD compares with what is stored.
    public typealias Comparison = DownloadConfiguration.Comparison
    /// What becomes of a stored response when a check answers 404 or 410.
    public typealias Gone = DownloadConfiguration.Gone
    /// What becomes of a transfer when everybody who waited for it has left.
    public typealias Leaving = DownloadConfiguration.Leaving
    /// A folder of resources that are there before anything is downloaded.
    public typealias Seeds = DownloadConfiguration.Seeds
    /// What may be kept in memory.
    public typealias MemoryLimits = DownloadConfiguration.MemoryLimits
    /// What may be kept on disk, and where.
    public typealias DiskStore = DownloadConfiguration.DiskStore
    /// How long an origin may take.
    public typealias Timeouts = DownloadConfiguration.Timeouts
    /// What a stored response is found by, besides its URL.
    public typealias Keys = DownloadConfiguration.Keys
    /// How a request that failed is made again.
    public typealias Retry = DownloadConfiguration.Retry
    /// When an origin that fails is left alone.
    public typealias Breaker = DownloadConfiguration.Breaker
    /// How an `https` origin is verified, and how the program shows itself to it.
    public typealias TLS = DownloadConfiguration.TLS
    /// Who comes first where downloads wait for one another.
    public typealias Priority = DownloadOptions.Priority
    /// What a body should be.
    public typealias Expectation = DownloadOptions.Expectation
}
