// The settings of a manager about cookies.

import EventLoop
public import FoundationEssentials
import HTTPCaching

/// Whether there are cookies, and where they are kept.
public enum CookieStorage: Sendable, Hashable {
    /// Cookies that origins set are handed over with their responses, and not sent again.
    case none
    /// They last until the manager closes.
    case memory
    /// Cookies with a lifetime are kept in this file, which only its owner may read, and which one manager at a time
    /// may use; the others last until the manager closes.
    case file(URL)
}

/// What becomes of responses with Set-Cookie. In every case the download that asked the origin gets the field, and
/// ``DownloadConfiguration/cookies`` take it.
public enum SetCookieRule: String, Sendable, Hashable, CaseIterable {
    /// They are stored where they say themselves how long they are fresh, without Set-Cookie unless they are `public`.
    case strict
    /// They are stored, cookie and all, where they say themselves how long they are fresh.
    case explicit
    /// They are stored without Set-Cookie, whatever they say.
    case strip
    /// They are not stored.
    case skip
}

/// What becomes of the answers to requests with Cookie.
public enum CookieRule: String, Sendable, Hashable, CaseIterable {
    /// They are stored where they say themselves how long they are fresh, and, unless the cache is shared, found by
    /// requests with the same cookies.
    case explicit
    /// They are stored like others, and found whatever the cookies are: for origins whose cookies change nothing.
    case any
    /// They are not stored.
    case never
}

extension CookieStorage {
    /// The jar, with what is in its file; blocks.
    /// - Throws: `DownloadError.unavailable` where the file is none.
    func open(
        _ pool: IOPool,
        now: @escaping @Sendable () -> Int64,
        onTrouble: @escaping @Sendable (String) -> Void
    ) throws(DownloadError) -> CookieJar? {
        switch self {
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

extension SetCookieRule {
    var policy: SetCookiePolicy {
        switch self {
        case .strict: .strict
        case .explicit: .explicit
        case .strip: .strip
        case .skip: .skip
        }
    }
}

extension CookieRule {
    var policy: CookiePolicy {
        switch self {
        case .explicit: .explicit
        case .any: .any
        case .never: .never
        }
    }
}
