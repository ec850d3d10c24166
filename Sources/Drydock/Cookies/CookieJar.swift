// The cookies of a manager: which ones a request gets, what answers set, and the file that keeps them.

import EventLoop
import Files
import FoundationEssentials
import Glibc
import HTTPWire
import ServiceCore
import Synchronization

/// Bounded in number and bytes: what has not been sent for the longest time makes room.
///
/// Sendable: its cookies are under its own mutex; nothing of it asks a disk.
final class CookieJar: Sendable {
    private struct Held {
        var cookie: Cookie
        /// Unix seconds; nil: it ends with the manager.
        var expiry: Int64?
        /// The order in which they were set.
        var number: UInt64
        /// The order in which they were sent or set.
        var used: UInt64

        func isOver(_ now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }
    }

    private struct State {
        /// By domain.
        var cookies: [String: [Held]] = [:]
        var count = 0
        var bytes = 0
        var last: UInt64 = 0

        mutating func next() -> UInt64 {
            last += 1
            return last
        }
    }

    /// Bytes of one cookie.
    static let longest = 4096
    /// Cookies of one domain.
    static let mostOfDomain = 180
    /// Cookies of all.
    static let most = 3000
    /// Bytes of all.
    static let mostBytes = 1 << 20

    private let state = Mutex(State())
    /// Told that what outlives the manager has changed; any thread.
    private let onChange: @Sendable () -> Void

    init(onChange: @escaping @Sendable () -> Void = {}) { self.onChange = onChange }

    // MARK: - For requests

    /// The value of Cookie for a request; nil where there is nothing to send.
    /// - Parameters:
    ///   - target: path and query.
    ///   - now: Unix seconds.
    func line(for origin: OriginAddress, path target: String, now: Int64) -> String? {
        let found = cookies(for: origin, path: target, now: now)
        return found.isEmpty ? nil : found.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    /// What a request gets, in the order in which it gets it (RFC 6265 section 5.4).
    func cookies(for origin: OriginAddress, path target: String, now: Int64) -> [Cookie] {
        let found = state.withLock { state -> [Held] in
            guard state.count > 0 else { return [] }
            var found: [Held] = []
            let turn = state.next()
            for domain in Self.domains(of: origin.host) {
                guard var held = state.cookies[domain] else { continue }
                for position in held.indices {
                    let cookie = held[position].cookie
                    guard !held[position].isOver(now), !cookie.isHostOnly || domain == origin.host,
                        !cookie.isSecure || origin.scheme == "https", SetCookie.covers(cookie.path, target)
                    else { continue }
                    held[position].used = turn
                    found.append(held[position])
                }
                state.cookies[domain] = held
            }
            return found
        }
        return found.sorted { left, right in
            let (one, other) = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return one == other ? left.number < right.number : one > other
        }.map(\.cookie)
    }

    /// The host itself and the domains above it.
    private static func domains(of host: String) -> [String] {
        var domains = [host]
        var rest = Substring(host)
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if SetCookie.matches(host, String(rest)) { domains.append(String(rest)) }
        }
        return domains
    }

    /// Takes what an answer sets.
    func take(_ fields: Fields, from origin: OriginAddress, target: String, now: Int64) {
        guard fields.contains(.setCookie) else { return }
        for line in fields.all(.setCookie) {
            guard let cookie = SetCookie.cookie(line, from: origin, target: target, now: now) else { continue }
            set(cookie, isFromHTTPS: origin.scheme == "https", now: now)
        }
    }

    // MARK: - For programs

    /// Sets a cookie in the place of the one with the same name, domain and path; one whose time is over goes.
    /// - Parameter isFromHTTPS: false where it must not overlay a cookie that is for `https` alone.
    func set(_ cookie: Cookie, isFromHTTPS: Bool = true, now: Int64) {
        let isKept = state.withLock { state -> Bool in
            let number = state.next()
            var new = Held(cookie: cookie, expiry: cookie.expiry, number: number, used: number)
            if !isFromHTTPS, Self.hasSecure(state, below: cookie, now: now) { return false }
            let old = state.cookies[cookie.domain]?.first { $0.cookie.isSame(as: cookie) }
            if let old {
                new.number = old.number
                Self.remove(&state, cookie.domain) { $0.cookie.isSame(as: cookie) }
            }
            if !new.isOver(now) {
                state.cookies[cookie.domain, default: []].append(new)
                state.count += 1
                state.bytes += cookie.size
                Self.makeRoom(&state, in: cookie.domain, now: now)
            }
            return new.expiry != nil || old?.expiry != nil
        }
        if isKept { onChange() }
    }

    /// Whether a cookie that is for `https` alone would be overlaid: of the host, of a domain above it, or of a host below.
    private static func hasSecure(_ state: State, below cookie: Cookie, now: Int64) -> Bool {
        state.cookies.values.contains { held in
            held.contains { !$0.isOver(now) && SetCookie.overlays(cookie, $0.cookie) }
        }
    }

    /// - Returns: how many there were.
    func remove(where isMeant: (Cookie) -> Bool) -> Int {
        let removed = state.withLock { state in
            let before = state.count
            for domain in Array(state.cookies.keys) { Self.remove(&state, domain) { isMeant($0.cookie) } }
            return before - state.count
        }
        if removed > 0 { onChange() }
        return removed
    }

    /// The cookies whose time is not over, by domain and in the order in which they were set.
    func all(now: Int64) -> [Cookie] {
        let held = state.withLock { $0.cookies.values.flatMap(\.self) }
        return held.filter { !$0.isOver(now) }.sorted { ($0.cookie.domain, $0.number) < ($1.cookie.domain, $1.number) }
            .map(\.cookie)
    }

    // MARK: - Room

    private static func remove(_ state: inout State, _ domain: String, where isMeant: (Held) -> Bool) {
        guard let held = state.cookies[domain] else { return }
        let kept = held.filter { !isMeant($0) }
        state.count -= held.count - kept.count
        state.bytes -= held.reduce(0) { $0 + $1.cookie.size } - kept.reduce(0) { $0 + $1.cookie.size }
        state.cookies[domain] = kept.isEmpty ? nil : kept
    }

    private static func makeRoom(_ state: inout State, in domain: String, now: Int64) {
        if state.cookies[domain]?.count ?? 0 > mostOfDomain {
            remove(&state, domain) { $0.isOver(now) }
            while let held = state.cookies[domain], held.count > mostOfDomain, let oldest = held.map(\.used).min() {
                remove(&state, domain) { $0.used == oldest }
            }
        }
        guard state.count > most || state.bytes > mostBytes else { return }
        for domain in Array(state.cookies.keys) { remove(&state, domain) { $0.isOver(now) } }
        while state.count > most || state.bytes > mostBytes {
            let oldest = state.cookies.compactMap { domain, held in held.map(\.used).min().map { (domain, $0) } }
                .min { $0.1 < $1.1 }
            guard let (domain, used) = oldest else { return }
            remove(&state, domain) { $0.used == used }
        }
    }
}

extension Cookie {
    /// Whether one takes the place of the other.
    func isSame(as other: Cookie) -> Bool { name == other.name && domain == other.domain && path == other.path }
}

// MARK: - The file

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
    /// The line of a cookie; nil for one that ends with the manager.
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
