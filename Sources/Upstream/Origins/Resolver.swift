// Resolves names on its own threads, caches the addresses for a while, and checks them against the target rules.

// CLibcurl is imported for SOCK_STREAM: an optimised build takes it for the owner of the socket types that curl.h
// includes.
import CLibcurl
package import EventLoop
import Glibc
import Synchronization

/// Resolves host names, for transfers and for tunnels; no loop ever waits for the system's resolver.
///
/// Sendable: the table of names is under its mutex, all else is constant.
package final class Resolver: Sendable {
    /// Asks for the addresses of a host; runs on a thread of the pool and may block.
    package typealias Lookup = @Sendable (_ host: String, _ port: UInt16) -> ResolverAnswer
    package typealias Completion = @Sendable (Result<[SocketAddress], UpstreamError>) -> Void

    private let pool: IOPool
    private let lookup: Lookup
    private let lifetime: UInt64
    private let failureLifetime: UInt64
    private let table: Mutex<ResolverTable>

    /// - Parameters:
    ///   - pool: runs one job per name; not shared with file I/O, which a slow name server would delay.
    ///   - capacity: the number of names that are cached, and the number that may be resolved at once.
    ///   - lifetime: the nanoseconds for which addresses are cached; default 60 s.
    ///   - failureLifetime: the nanoseconds for which names without addresses are cached; default 5 s.
    package init(
        pool: IOPool,
        capacity: Int = 4096,
        lifetime: UInt64 = 60_000_000_000,
        failureLifetime: UInt64 = 5_000_000_000,
        lookup: @escaping Lookup = { SystemResolver.lookup($0, port: $1) }
    ) {
        self.pool = pool
        self.lookup = lookup
        self.lifetime = lifetime
        self.failureLifetime = failureLifetime
        table = Mutex(ResolverTable(capacity: capacity))
    }

    /// The addresses of `host` that `rules` allow, if they are known: those of a numeric host, or of a cached name. Nil
    /// if the resolver has to be asked, by ``ask(_:port:rules:completion:)``.
    /// - Parameter host: a name, a numeric IPv4 address, or an IPv6 address with or without brackets.
    package func known(
        _ host: String,
        port: UInt16,
        rules: TargetRules
    ) -> Result<[SocketAddress], UpstreamError>? {
        known(ResolverKey(host: host, port: port), isNumeric: nil, rules: rules)
    }

    /// - Parameter isNumeric: whether the host is an address; nil if unknown.
    func known(
        _ key: ResolverKey,
        isNumeric: Bool?,
        rules: TargetRules
    ) -> Result<[SocketAddress], UpstreamError>? {
        if isNumeric ?? true, let numeric = SystemResolver.numeric(key.host, port: key.port) {
            return Self.judge(.addresses([numeric]), key: key, rules: rules)
        }
        let answer = table.withLock { $0.answer(key, now: Monotonic.now()) }
        return answer.map { Self.judge($0, key: key, rules: rules) }
    }

    /// Looks up the addresses of `host` that `rules` allow, in the system's order of preference.
    /// - Parameter completion: called once, unless the question is left before; on any thread, perhaps before this
    ///   returns.
    /// - Returns: the question, by which the caller can leave it.
    package func ask(
        _ host: String,
        port: UInt16,
        rules: TargetRules,
        completion: @escaping Completion
    ) -> ResolverQuestion {
        let key = ResolverKey(host: host, port: port)
        let identifier = table.withLock { $0.nextIdentifier() }
        begin(key, identifier: identifier) { completion(Self.judge($0, key: key, rules: rules)) }
        return ResolverQuestion(resolver: self, key: key, identifier: identifier)
    }

    /// The number of callers that wait for an answer.
    var waiterCount: Int { table.withLock { $0.waiterCount } }

    // MARK: - One question per name

    private func begin(_ key: ResolverKey, identifier: UInt64, completion: @escaping ResolverTable.Waiter) {
        let now = Monotonic.now()
        switch table.withLock({ $0.join(key, identifier, completion, now: now) }) {
        case .answered(let answer): completion(answer)
        case .joined: break
        case .full: completion(.failed("too many names are being resolved at once"))
        case .mustAsk: pool.submit { [self] in lookUp(key) }
        }
    }

    private func lookUp(_ key: ResolverKey) {
        let answer = lookup(key.host, key.port)
        let keep = if case .addresses = answer { lifetime } else { failureLifetime }
        let waiters = table.withLock { $0.complete(key, answer, expires: Monotonic.now() &+ keep) }
        for waiter in waiters { waiter(answer) }
    }

    /// Removes the waiter with this number; the name is still looked up, and its addresses are cached.
    fileprivate func leave(_ key: ResolverKey, _ identifier: UInt64) {
        // The completion is released outside of the lock.
        let waiter = table.withLock { $0.leave(key, identifier) }
        _ = waiter
    }

    // MARK: - Rules

    private static func judge(
        _ answer: ResolverAnswer,
        key: ResolverKey,
        rules: TargetRules
    ) -> Result<[SocketAddress], UpstreamError> {
        switch answer {
        case .addresses(let addresses):
            let allowed = addresses.filter { rules.allows($0) }
            if !allowed.isEmpty { return .success(allowed) }
            if addresses.isEmpty { return .failure(notFound(key)) }
            let list = addresses.map(\.host).joined(separator: ", ")
            return .failure(.refused(key.host, at: list))
        case .notFound: return .failure(notFound(key))
        case .failed(let reason):
            let detail = "cannot resolve \(key.host): \(reason); check the name servers in /etc/resolv.conf"
            return .failure(UpstreamError(.resolver, detail: detail))
        }
    }

    private static func notFound(_ key: ResolverKey) -> UpstreamError {
        UpstreamError(
            .nameNotFound,
            detail: "the name \(key.host) has no address: check its spelling and the name servers"
        )
    }
}

/// A question to the resolver, and the number of the waiter for its answer.
package struct ResolverQuestion: Sendable {
    fileprivate let resolver: Resolver
    fileprivate let key: ResolverKey
    fileprivate let identifier: UInt64

    /// Gives the wait up: the completion is released, and called only if the answer is there already. Any thread.
    package func leave() { resolver.leave(key, identifier) }
}

extension TargetRules {
    /// Whether a request under these rules may go to `address`.
    package func allows(_ address: SocketAddress) -> Bool {
        switch self {
        case .any: true
        case .noPrivate: !address.isInternal
        }
    }
}

// MARK: - Cached answers and waiters

/// The outcome of resolving a name.
package enum ResolverAnswer: Sendable, Equatable {
    case addresses([SocketAddress])
    case notFound
    /// The resolver failed; the text is the reason.
    case failed(String)
}

struct ResolverKey: Hashable, Sendable {
    /// The host in lower case, without brackets.
    let host: String
    let port: UInt16

    init(host: String, port: UInt16) {
        let isBracketed = host.utf8.first == UInt8(ascii: "[") && host.utf8.last == UInt8(ascii: "]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        self.host = bare.utf8.contains { (0x41...0x5A).contains($0) } ? bare.lowercased() : bare
        self.port = port
    }
}

/// A value under the resolver's mutex.
struct ResolverTable {
    typealias Waiter = @Sendable (ResolverAnswer) -> Void

    enum Joining {
        case answered(ResolverAnswer)
        case joined
        case mustAsk
        /// The table holds the most open questions that it may.
        case full
    }

    private let capacity: Int
    private var answers: [ResolverKey: (answer: ResolverAnswer, expires: UInt64)] = [:]
    private var waiting: [ResolverKey: [UInt64: Waiter]] = [:]
    private var last: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { answers.count }
    var waiterCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    mutating func nextIdentifier() -> UInt64 {
        last += 1
        return last
    }

    func answer(_ key: ResolverKey, now: UInt64) -> ResolverAnswer? {
        guard let known = answers[key], known.expires > now else { return nil }
        return known.answer
    }

    mutating func join(_ key: ResolverKey, _ identifier: UInt64, _ waiter: @escaping Waiter, now: UInt64) -> Joining {
        if let answer = answer(key, now: now) { return .answered(answer) }
        if waiting[key] != nil {
            waiting[key]?[identifier] = waiter
            return .joined
        }
        guard waiting.count < capacity else { return .full }
        waiting[key] = [identifier: waiter]
        return .mustAsk
    }

    /// Removes one waiter; the resolution continues, and its answer is cached.
    mutating func leave(_ key: ResolverKey, _ identifier: UInt64) -> Waiter? {
        waiting[key]?.removeValue(forKey: identifier)
    }

    mutating func complete(_ key: ResolverKey, _ answer: ResolverAnswer, expires: UInt64) -> [Waiter] {
        if answers[key] == nil, answers.count >= capacity { makeRoom() }
        answers[key] = (answer, expires)
        return waiting.removeValue(forKey: key).map { Array($0.values) } ?? []
    }

    /// Drops the quarter that expires first, so that the table is rarely searched.
    private mutating func makeRoom() {
        let oldestFirst = answers.sorted { $0.value.expires < $1.value.expires }
        for (key, _) in oldestFirst.prefix(max(1, answers.count / 4)) { answers[key] = nil }
    }
}

// MARK: - The system's resolver

/// The system's resolver: getaddrinfo as a blocking call, and numeric addresses without it.
package enum SystemResolver {
    // GNU's EAI_NODATA and EAI_ADDRFAMILY, which are not visible in Swift.
    private static let noData: Int32 = -5
    private static let noAddressOfFamily: Int32 = -9

    /// The addresses of a host for TCP; blocks until the name servers have answered.
    package static func lookup(_ host: String, port: UInt16) -> ResolverAnswer { ask(host, port: port, flags: 0) }

    /// The address of a numeric host, in every notation that the system accepts (`127.0.0.1`, `0x7f.1`, `::1`,
    /// `fe80::1%eth0`); nil for a name. Does not block.
    package static func numeric(_ host: String, port: UInt16) -> SocketAddress? {
        // A proxy may ignore the dot of the root behind an address.
        if host.hasSuffix(".") { return numeric(String(host.dropLast()), port: port) }
        if let address = SocketAddress(numericHost: host, port: port) { return address }
        // Most names have a letter beyond the hexadecimal ones, so this usually avoids getaddrinfo.
        let isPlainName = host.utf8.contains { byte in
            let letter = byte | 0x20
            return (0x67...0x7A).contains(letter) && letter != UInt8(ascii: "x")
        }
        if isPlainName, !host.utf8.contains(UInt8(ascii: ":")) { return nil }
        guard case .addresses(let addresses) = ask(host, port: port, flags: AI_NUMERICHOST) else { return nil }
        return addresses.first
    }

    private static func ask(_ host: String, port: UInt16, flags: Int32) -> ResolverAnswer {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            switch status {
            case EAI_NONAME, noData, noAddressOfFamily: return .notFound
            case EAI_SYSTEM: return .failed(String(cString: strerror(errno)))
            default: return .failed(String(cString: gai_strerror(status)))
            }
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr {
                let found = SocketAddress(address, length: entry.pointee.ai_addrlen)
                if !addresses.contains(found) { addresses.append(found) }
            }
            next = entry.pointee.ai_next
        }
        return .addresses(addresses)
    }
}
