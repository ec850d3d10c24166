// The leaves that the local authority has issued for this process, made when they are asked for.

import Synchronization

/// A bounded table of leaves by host, of which the one that was not asked for longest goes first. All have one key, made
/// with the table: a leaf of its own costs each process 20 µs more, and whoever has this process' memory has all of them.
///
/// Sendable: the table is under a lock, and nothing is signed or released there.
package final class LeafCache: Sendable {
    private struct Leaf {
        let identity: TLSIdentity
        let renewed: Int64
        var used: UInt64
    }

    private struct State {
        var leaves: [HostName: Leaf] = [:]
        var uses: UInt64 = 0
        var made = 0
    }

    package let authority: LocalAuthority
    private let key: PrivateKey
    private let capacity: Int
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())
    /// A leaf is made anew when it is this old, in seconds: it is valid for a week.
    private static let renewal: Int64 = 2 * 86_400

    /// - Parameters:
    ///   - capacity: the most leaves that are kept; 1,000 by default, some 2 MiB.
    ///   - now: seconds since 1970.
    package init(
        _ authority: LocalAuthority,
        capacity: Int = 1_000,
        now: @escaping @Sendable () -> Int64
    ) throws(CertificateError) {
        self.authority = authority
        key = try PrivateKey()
        self.capacity = max(1, capacity)
        self.now = now
    }

    /// How many leaves were made, and how many are kept.
    package var counts: (made: Int, kept: Int) { state.withLock { ($0.made, $0.leaves.count) } }

    /// The leaf for a host; made if there is none, in some 200 µs. Nil if OpenSSL makes none.
    package func leaf(for host: HostName) -> TLSIdentity? {
        let now = now()
        let kept: TLSIdentity? = state.withLock { state in
            guard var leaf = state.leaves[host], now - leaf.renewed < Self.renewal else { return nil }
            state.uses += 1
            leaf.used = state.uses
            state.leaves[host] = leaf
            return leaf.identity
        }
        if let kept { return kept }
        guard let identity = try? authority.leaf(for: host, key: key, now: now) else { return nil }
        // What leaves the table is released behind the lock.
        let removed: [Leaf] = state.withLock { state in
            state.made += 1
            state.uses += 1
            var removed: [Leaf] = []
            if let old = state.leaves.updateValue(
                Leaf(identity: identity, renewed: now, used: state.uses),
                forKey: host
            ) {
                removed.append(old)
            }
            // A tenth at a time, so that the search for the oldest is not made with each new host.
            if state.leaves.count > capacity {
                let oldest = state.leaves.sorted { $0.value.used < $1.value.used }.prefix(max(1, capacity / 10))
                for (host, _) in oldest {
                    if let leaf = state.leaves.removeValue(forKey: host) { removed.append(leaf) }
                }
            }
            return removed
        }
        _ = removed
        return identity
    }
}
