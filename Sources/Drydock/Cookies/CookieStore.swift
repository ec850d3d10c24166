// The cookies of a manager, for its program: read, set and removed.

import DownloadCore
import EventLoop
public import FoundationEssentials

/// The cookies of a manager (``DownloadConfiguration/cookies``). Programs get it from ``DownloadManager/cookies``; it is a
/// value that costs nothing. Its calls open the manager where it is not open.
public struct CookieStore: Sendable {
    let configuration: DownloadConfiguration
    let engine: @Sendable () async throws(DownloadError) -> DownloadEngine

    /// All cookies, by domain.
    /// - Returns: none with ``CookieSettings/none``.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    public func all() async throws(DownloadError) -> [Cookie] {
        let engine = try await engine()
        return engine.identities.jar?.all(now: engine.core.clock.now()) ?? []
    }

    /// The cookies that a request for a URL gets, in the order in which it gets them.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    public func cookies(for url: URL) async throws(DownloadError) -> [Cookie] {
        let question = try DownloadRequest(url, configuration, DownloadOptions())
        let engine = try await engine()
        return engine.identities.jar?.cookies(for: question.origin, path: question.path, now: engine.core.clock.now())
            ?? []
    }

    /// Sets a cookie in the place of the one with the same name, domain and path. One whose time is over removes that.
    /// - Throws: `DownloadError.invalidRequest` where it cannot be sent, or there are to be none; `.unavailable`, `.closed`.
    public func set(_ cookie: Cookie) async throws(DownloadError) {
        var cookie = cookie
        cookie.domain = cookie.domain.lowercased()
        guard cookie.isSound, !cookie.domain.hasPrefix(".") else {
            throw .invalidRequest(
                "the cookie \(cookie) cannot be sent: it has a name and a domain without a dot before it, a path that "
                    + "begins with a slash, no semicolon or control character, and at most \(CookieJar.longest) bytes"
            )
        }
        let engine = try await engine()
        guard let jar = engine.identities.jar else {
            throw .invalidRequest("there are no cookies: set DownloadConfiguration.cookies to .memory or .file")
        }
        jar.set(cookie, now: engine.core.clock.now())
    }

    /// Removes the cookie with the name, domain and path of this one.
    /// - Returns: false where there was none.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func remove(_ cookie: Cookie) async throws(DownloadError) -> Bool {
        try await remove { $0.isSame(as: cookie) } > 0
    }

    /// Removes every cookie.
    /// - Returns: how many there were.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func removeAll() async throws(DownloadError) -> Int { try await remove { _ in true } }

    private func remove(where isMeant: (Cookie) -> Bool) async throws(DownloadError) -> Int {
        try await engine().identities.jar?.remove(where: isMeant) ?? 0
    }
}
