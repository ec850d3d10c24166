// The settings of a manager about cookies: where they are kept, and what is stored of answers with them.

import EventLoop
public import FoundationEssentials
public import Policies

/// Whether there are cookies, where they are kept, and what is stored of the answers that set them or were asked with
/// them.
///
/// ```swift
/// configuration.cookies = .file(file)
/// configuration.cookies.setCookie = .strip
/// ```
public struct CookieSettings: Sendable, Hashable {
    /// Where cookies are kept.
    private enum Storage: Hashable {
        case none
        case memory
        case file(URL)
    }

    private var storage: Storage
    /// What becomes of responses with Set-Cookie; ``SetCookiePolicy/strict`` by default. In every case the download that
    /// asked the origin gets the field, and so do the cookies of the manager.
    public var setCookie = SetCookiePolicy.strict
    /// What becomes of the answers to requests with Cookie; ``CookiePolicy/explicit`` by default. Unless the cache is
    /// shared, they are found by requests with the same cookies, but for ``CookiePolicy/any``.
    public var requestCookie = CookiePolicy.explicit

    private init(_ storage: Storage) { self.storage = storage }

    /// Cookies that origins set are handed over with their responses, and not sent again.
    public static let none = CookieSettings(.none)

    /// Cookies are sent again, and last until the manager closes.
    public static let memory = CookieSettings(.memory)

    /// Cookies are sent again. Those with a lifetime are kept in this file, which only its owner may read, and which one
    /// manager at a time may use; the others last until the manager closes.
    public static func file(_ file: URL) -> CookieSettings { CookieSettings(.file(file)) }

    /// The jar, with what is in its file; blocks.
    /// - Throws: `DownloadError.unavailable` where the file is none.
    func open(
        _ pool: IOPool,
        now: @escaping @Sendable () -> Int64,
        onTrouble: @escaping @Sendable (String) -> Void
    ) throws(DownloadError) -> CookieJar? {
        switch storage {
        case .none: return nil
        case .memory: return CookieJar()
        case .file(let file):
            guard file.isFileURL, !file.hasDirectoryPath else {
                throw .unavailable("'\(file)' is no file for cookies: name it by a file URL")
            }
            return CookieFile.open(file.path(percentEncoded: false), pool, now: now, onTrouble: onTrouble)
        }
    }
}
