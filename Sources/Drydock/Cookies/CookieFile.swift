// The file of a cookie jar: read when the manager opens, written a moment after each change.

import EventLoop
import Files
import FoundationEssentials
import Glibc
import Synchronization

/// Has the cookies that outlive the manager. Only its owner may read it, and it is whole at any moment.
///
/// Sendable: what it remembers is under its own mutex; files are read and written on the pool.
final class CookieFile: Sendable {
    private struct State {
        var isChanged = false
        var isWriting = false
        var hasTold = false
        /// The jar has this file; nil until it is read.
        weak var jar: CookieJar?
    }

    private struct Document: Codable {
        var version = 1
        var cookies: [Entry]
    }

    fileprivate struct Entry: Codable {
        var name: String
        var value: String
        var domain: String
        var path: String
        /// Unix seconds.
        var expires: Int64
        var hostOnly: Bool
        var secure: Bool
        var httpOnly: Bool
    }

    /// Bytes of a file that is read: several times what a jar can fill.
    private static let longest = 16 << 20

    private let path: String
    private let pool: IOPool
    private let onTrouble: @Sendable (String) -> Void
    private let state = Mutex(State())

    private init(_ path: String, _ pool: IOPool, onTrouble: @escaping @Sendable (String) -> Void) {
        self.path = path
        self.pool = pool
        self.onTrouble = onTrouble
    }

    /// The jar of a file. A file that cannot be read costs its cookies, and `onTrouble` hears of it. Blocks.
    /// - Parameter now: Unix seconds.
    static func open(
        _ path: String,
        _ pool: IOPool,
        now: @escaping @Sendable () -> Int64,
        onTrouble: @escaping @Sendable (String) -> Void
    ) -> CookieJar {
        // Where that fails, the first write says why.
        try? FileManager.default.createDirectory(
            atPath: Ancestors.parent(of: path),
            withIntermediateDirectories: true
        )
        let file = CookieFile(path, pool, onTrouble: onTrouble)
        let cookies = file.read()
        let jar = CookieJar { file.changed(now) }
        for cookie in cookies { jar.set(cookie, now: now()) }
        // From now on, changes are written.
        file.state.withLock { $0.jar = jar }
        return jar
    }

    private func read() -> [Cookie] {
        guard access(path, F_OK) == 0 else { return [] }
        let bytes = WholeFile.readOwn(path, atMost: Self.longest)
        guard !bytes.isEmpty, let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)),
            document.version == 1
        else {
            onTrouble(
                "the cookies in \(path) are lost: it is not a file of cookies, or cannot be read; it is written anew"
            )
            return []
        }
        return document.cookies.map(Cookie.init).filter(\.isSound)
    }

    /// Writes, unless a write is under way, which is followed by another one then.
    private func changed(_ now: @escaping @Sendable () -> Int64) {
        let begins = state.withLock { state -> CookieJar? in
            guard let jar = state.jar else { return nil }
            state.isChanged = true
            defer { state.isWriting = true }
            return state.isWriting ? nil : jar
        }
        guard let jar = begins else { return }
        if !pool.submit({ [self] in write(jar, now) }) { state.withLock { $0.isWriting = false } }
    }

    private func write(_ jar: CookieJar, _ now: @Sendable () -> Int64) {
        while true {
            let isChanged = state.withLock { state in
                defer { state.isChanged = false }
                state.isWriting = state.isChanged
                return state.isChanged
            }
            guard isChanged else { return }
            do {
                let document = Document(cookies: jar.all(now: now()).compactMap(Entry.init))
                try WholeFile.replace(path, with: Array(try JSONEncoder().encode(document)))
                state.withLock { $0.hasTold = false }
            } catch {
                let isNews = state.withLock { state in
                    defer { state.hasTold = true }
                    return !state.hasTold
                }
                if isNews {
                    onTrouble("the cookies cannot be written to \(path): \(error); they last until the manager closes")
                }
            }
        }
    }
}

extension Cookie {
    fileprivate init(_ entry: CookieFile.Entry) {
        self.init(
            name: entry.name,
            value: entry.value,
            domain: entry.domain,
            path: entry.path,
            expires: Date(timeIntervalSince1970: Double(entry.expires)),
            isHostOnly: entry.hostOnly,
            isSecure: entry.secure,
            isHTTPOnly: entry.httpOnly
        )
    }
}

extension CookieFile.Entry {
    /// Nil for a cookie that ends with the manager.
    fileprivate init?(_ cookie: Cookie) {
        guard let expiry = cookie.expiry else { return nil }
        self.init(
            name: cookie.name,
            value: cookie.value,
            domain: cookie.domain,
            path: cookie.path,
            expires: expiry,
            hostOnly: cookie.isHostOnly,
            secure: cookie.isSecure,
            httpOnly: cookie.isHTTPOnly
        )
    }
}
