// The rules of a service for its calls: the store, logs, retries, and a call without a response.

public import Drydock

/// Rules for the calls of a service.
public struct ServicePolicy: Sendable {
    /// A call to which no response came is kept, and made again by ``ServiceManager/repeatFailed()``, instead of failing.
    /// False by default.
    ///
    /// It is kept only where its request may be sent again: nothing of it has reached the origin, or its method is
    /// idempotent (RFC 9110 section 9.2.2), or the call's rules for retries name
    /// `DownloadConfiguration.Retry.Methods.any`. A POST whose answer was cut short, or did not come in time,
    /// fails, since the origin may have acted on it.
    public var parksWithoutResponse: Bool
    /// What is stored may answer; without it, the origin is asked in any case. True by default.
    public var readsStore: Bool
    /// What comes may be stored. True by default. With neither this nor ``readsStore``, what is stored is left alone.
    public var writesStore: Bool
    /// The bodies of successes are logged; those of failures are in any case. True by default.
    public var logsBodies: Bool
    /// When a call is made again; nil, the default, is ``ServiceManager/Configuration/retry``.
    public var retry: DownloadConfiguration.Retry?

    /// Rules; what is left out is the default.
    public init(
        parksWithoutResponse: Bool = false,
        readsStore: Bool = true,
        writesStore: Bool = true,
        logsBodies: Bool = true,
        retry: DownloadConfiguration.Retry? = nil
    ) {
        self.parksWithoutResponse = parksWithoutResponse
        self.readsStore = readsStore
        self.writesStore = writesStore
        self.logsBodies = logsBodies
        self.retry = retry
    }
}
