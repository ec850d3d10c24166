// What a program does to downloads under way and to what is stored, besides downloading: looked at, ended, removed.

import CacheStore
import DownloadCore
public import FoundationEssentials
import HTTPCaching
public import HTTPTypes

extension DownloadManager {
    /// What is stored: listed, removed, pinned, copied into files, exported and imported as seeds.
    public var store: ResponseStore {
        ResponseStore(
            configuration: configuration,
            sessions: sessions,
            logger: logger,
            engine: { [self] () throws(DownloadError) in try await engine() }
        )
    }

    /// The cookies that origins have set, or the program.
    public var cookies: CookieStore {
        CookieStore(configuration: configuration) { [self] () throws(DownloadError) in try await engine() }
    }

    /// The state of a resource as it is stored. No origin is asked, and nothing changes.
    /// - Parameters:
    ///   - url: `http` or `https`; a fragment is left out.
    ///   - options: what a download of it would want otherwise than the manager has it.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`, `.cancelled`.
    public func state(of url: URL, options: DownloadOptions = DownloadOptions()) async throws(DownloadError)
        -> StoredState
    {
        let session = try await begin(try DownloadRequest(url, configuration, options))
        return try await session.storedState()
    }

    /// The state of what is stored for a request. No origin is asked, and nothing changes.
    /// - Parameters:
    ///   - request: GET, HEAD, and in ``DownloadConfiguration/Mode/fixedLifetime`` POST.
    ///   - body: of a POST; none by default.
    ///   - options: what a download of it would want otherwise than the manager has it.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`, `.cancelled`.
    public func state(
        of request: HTTPRequest,
        body: Data? = nil,
        options: DownloadOptions = DownloadOptions()
    ) async throws(DownloadError) -> StoredState {
        let content = body.map { RequestBody.data($0) }
        let session = try await begin(try DownloadRequest(request, body: content, configuration, options))
        return try await session.storedState()
    }

    /// Removes what is stored of a resource, in memory and on disk, whatever it was asked with. A download under way is
    /// not stored, and is not joined by those that begin after this. Seeds stay.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func remove(_ url: URL) async throws(DownloadError) -> Int { try await store.remove(.url(url)) }

    /// Removes what came, or was last confirmed, before so long a time, in memory and on disk.
    /// - Parameter age: in whole seconds.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func remove(olderThan age: Duration) async throws(DownloadError) -> Int {
        try await store.remove(.olderThan(age))
    }

    /// Removes everything that is stored. Seeds stay.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func removeAll() async throws(DownloadError) -> Int { try await store.remove(.all) }

    /// Ends the validity of everything that is stored: the next download of each resource
    /// checks it. Nothing is removed.
    /// - Returns: how many stored responses there are.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func expireAll() async throws(DownloadError) -> Int { try await store.expire(.all) }

    /// Gives back the memory that stored responses take; what is on disk stays.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    public func freeMemory() async throws(DownloadError) { try await engine().core.memory.removeAll() }
}

extension DownloadManager {
    // MARK: - Ending downloads

    /// Ends the downloads of a URL, whatever they ask with, for all who wait for them, with
    /// ``DownloadError/cancelled``, and the transfers with them. What is stored stays as it is.
    /// - Parameters:
    ///   - url: what the downloads ask for.
    ///   - silently: events end without an error; a task that waits for a result hears
    ///     ``DownloadError/cancelled`` in any case. False by default.
    /// - Returns: how many downloads there were.
    @discardableResult
    public func cancel(_ url: URL, silently: Bool = false) -> Int {
        guard let target = try? DownloadTarget(url, configuration) else { return 0 }
        return target.cancel(in: sessions, opened?.core, silently: silently)
    }

    /// Ends the downloads of a request: of the same URL with the same method, fields and content, Cache-Control left
    /// out. Their transfer ends with them, unless other downloads wait for it. What is stored stays as it is.
    /// - Parameters:
    ///   - request: what the downloads ask with.
    ///   - body: its content. nil, the default, is none, or any that is not in memory: a file, a stream or a form.
    ///   - silently: as with ``cancel(_:silently:)``.
    /// - Returns: how many downloads there were.
    @discardableResult
    public func cancel(_ request: HTTPRequest, body: Data? = nil, silently: Bool = false) -> Int {
        guard let target = try? DownloadTarget(request, body: body, configuration, opened) else { return 0 }
        return target.cancel(in: sessions, opened?.core, silently: silently)
    }

    /// Drops all who wait for downloads of a URL, whatever they ask with: they hear ``DownloadError/cancelled``. The
    /// transfers go on, and what can be stored is stored, whatever ``DownloadConfiguration/abandonment`` says. Who asks
    /// after this may join them.
    /// - Parameters:
    ///   - url: what the downloads ask for.
    ///   - silently: as with ``cancel(_:silently:)``.
    /// - Returns: how many downloads there were.
    @discardableResult
    public func dropWaiters(of url: URL, silently: Bool = false) -> Int {
        guard let target = try? DownloadTarget(url, configuration) else { return 0 }
        return target.dropWaiters(in: sessions, opened?.core, silently: silently)
    }

    /// As ``dropWaiters(of:silently:)``, of the downloads of one request, which ``cancel(_:body:silently:)`` tells from
    /// others.
    @discardableResult
    public func dropWaiters(of request: HTTPRequest, body: Data? = nil, silently: Bool = false) -> Int {
        guard let target = try? DownloadTarget(request, body: body, configuration, opened) else { return 0 }
        return target.dropWaiters(in: sessions, opened?.core, silently: silently)
    }

    /// Ends every download, and their transfers with them. What is stored stays as it is. The requests of loaders,
    /// services and others who use the manager as a ``Transport`` go on: `ServiceManager.cancelAll()` ends those of one
    /// service manager, and ``close()`` all of them.
    /// - Parameter silently: events end without an error; a task that waits for a result hears
    ///   ``DownloadError/cancelled`` in any case. False by default.
    /// - Returns: how many downloads there were.
    @discardableResult
    public func cancelAll(silently: Bool = false) -> Int {
        let count = sessions.cancel(silently: silently) { !$0.isOfTransport }
        let others = sessions.keysOfTransport
        _ = opened?.core.housekeeping.cancel { !others.contains($0) }
        return count
    }
}
