// Names to addresses: asked on threads of its own, remembered for a while, and judged by the target rules.

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
    ///   - pool: gets one job per name; not shared with file I/O, which a slow name server would hold up.
    ///   - capacity: how many names are remembered, and how many may be asked for at once.
    ///   - lifetime: nanoseconds for which addresses are remembered; default 60 s.
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

    /// The addresses of `host` that `rules` allow, in the system's order of preference; suspends while they are asked for.
    /// - Parameter host: a name, a numeric IPv4 address, or an IPv6 address with or without brackets.
    /// - Throws: `UpstreamError`; `.cancelled` when the task is cancelled while it waits.
    package func resolve(
        _ host: String,
        port: UInt16,
        rules: TargetRules
    ) async throws(UpstreamError) -> [SocketAddress] {
        if let known = known(host, port: port, rules: rules) { return try known.get() }
        let identifier = table.withLock { $0.nextIdentifier() }
        let key = ResolverKey(host: host, port: port)
        let answer: ResolverAnswer = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                begin(key, identifier: identifier) { continuation.resume(returning: $0) }
                if Task.isCancelled { abandon(key, identifier) }
            }
        } onCancel: {
            abandon(key, identifier)
        }
        return try Self.judge(answer, key: key, rules: rules).get()
    }

    /// The same without waiting: a numeric host or a remembered name; nil where the name has to be asked for.
    package func known(
        _ host: String,
        port: UInt16,
        rules: TargetRules
    ) -> Result<[SocketAddress], UpstreamError>? {
        known(ResolverKey(host: host, port: port), isNumeric: nil, rules: rules)
    }

    /// - Parameter isNumeric: nil where it is not known.
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

    /// The same with a callback, on any thread.
    package func resolve(_ host: String, port: UInt16, rules: TargetRules, completion: @escaping Completion) {
        let key = ResolverKey(host: host, port: port)
        let identifier = table.withLock { $0.nextIdentifier() }
        begin(key, identifier: identifier) { completion(Self.judge($0, key: key, rules: rules)) }
    }

    // MARK: - One question per name

    private func begin(_ key: ResolverKey, identifier: UInt64, completion: @escaping ResolverTable.Waiter) {
        let now = Monotonic.now()
        switch table.withLock({ $0.join(key, identifier, completion, now: now) }) {
        case .answered(let answer): completion(answer)
        case .joined: break
        case .full: completion(.failed("too many names are being resolved at once"))
        case .mustAsk: pool.submit { [self] in ask(key) }
        }
    }

    private func ask(_ key: ResolverKey) {
        let answer = lookup(key.host, key.port)
        let keep = if case .addresses = answer { lifetime } else { failureLifetime }
        let waiters = table.withLock { $0.complete(key, answer, expires: Monotonic.now() &+ keep) }
        for waiter in waiters { waiter(answer) }
    }

    private func abandon(_ key: ResolverKey, _ identifier: UInt64) {
        let waiter = table.withLock { $0.leave(key, identifier) }
        waiter?(.abandoned)
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
        case .abandoned:
            return .failure(UpstreamError(.cancelled, detail: "resolving \(key.host) was cancelled"))
        }
    }

    private static func notFound(_ key: ResolverKey) -> UpstreamError {
        UpstreamError(
            .nameNotFound,
            detail: "the name \(key.host) has no address: check its spelling and the name servers"
        )
    }
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
