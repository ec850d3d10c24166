// Resolves names on threads of its own, caches the addresses for a while, and checks them against the target rules.

package import EventLoop
import Synchronization

/// Resolves host names, for transfers and for tunnels. No loop ever waits for the system's resolver.
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
    ///   - capacity: how many names are cached, and how many may be resolved at once.
    ///   - lifetime: nanoseconds for which addresses are cached; default 60 s.
    ///   - failureLifetime: the same for names without addresses; default 5 s.
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

    /// The addresses of `host` that `rules` allow, where they are known: those of a numeric host, or of a remembered
    /// name. Nil where the name has to be asked for, with ``ask(_:port:rules:completion:)``.
    /// - Parameter host: a name, a numeric IPv4 address, or an IPv6 address with or without brackets.
    package func known(
        _ host: String,
        port: UInt16,
        rules: TargetRules
    ) -> Result<[SocketAddress], UpstreamError>? {
        known(ResolverKey(host: host, port: port), isNumeric: nil, rules: rules)
    }

    /// - Parameter isNumeric: nil if unknown.
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

    /// Has the addresses of `host` that `rules` allow looked up, in the system's order of preference.
    /// - Parameter completion: called once, unless the question is left before; on any thread, perhaps before this
    ///   returns.
    /// - Returns: what to leave the question by.
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

    /// How many wait for an answer.
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

    /// Nobody is told any more under this number; the name is looked up all the same, and its addresses are remembered.
    fileprivate func leave(_ key: ResolverKey, _ identifier: UInt64) {
        // Released outside of the lock.
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

/// One question that somebody waits for the answer of.
package struct ResolverQuestion: Sendable {
    fileprivate let resolver: Resolver
    fileprivate let key: ResolverKey
    fileprivate let identifier: UInt64

    /// Whoever asked waits no longer: the completion is let go, and called only if the answer is there already. Any
    /// thread.
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
