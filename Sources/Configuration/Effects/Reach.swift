// What is accepted and reaches nothing: URLs of prefetches that no service has, and a timeout that ends before a retry.

import EventLoop
import Policies

extension Resolver {
    /// Warns of the URLs of `prefetch` that neither a service nor forward mode answers.
    mutating func warnOfUnservedURLs(_ root: SectionReader, _ configuration: Configuration) {
        for value in root.items("prefetch") {
            guard case .section(let entries) = value.content else { continue }
            for item in SectionReader(entries: entries, section: KeyTable.prefetch).items("urls") {
                guard case .leaf(let leaf) = item.content, !configuration.mayServe(leaf.text) else { continue }
                warnings.append(
                    ConfigurationError(
                        position: item.position,
                        message: "no service answers '\(leaf.text)'; add one, or correct 'prefetch[].urls'"
                    )
                )
            }
        }
    }

    /// Warns of a service whose time for a whole answer of another service ends before the first retry there.
    mutating func warnOfShortTimeouts(_ root: SectionReader, _ configuration: Configuration) {
        // What all services inherit is not meant for this one.
        let inherited = root.section("defaults").section("timeout").position("total")
        for (service, tree) in zip(configuration.services, trees) {
            guard case .service(let name)? = service.baseURL, let inner = configuration.service(named: name) else {
                continue
            }
            let waits = ([inner.settings] + inner.endpoints.map(\.settings)).map(\.retry).filter { $0.count > 0 }
                .map(\.shortestWait)
            let timeout = SectionReader(entries: tree, section: KeyTable.service).section("timeout")
            guard let wait = waits.min(), let total = timeout.nanoseconds("total"), total <= wait,
                let position = timeout.position("total"), position != inherited
            else { continue }
            warnings.append(
                ConfigurationError(
                    position: position,
                    message:
                        "'timeout.total' ends before the first retry of the service '\(name)'; raise it, or lower 'retry.delay' there"
                )
            )
        }
    }
}

extension RetryPolicy {
    /// The least nanoseconds before the first retry.
    fileprivate var shortestWait: UInt64 {
        let nanoseconds = Double(delay.components.seconds) * 1e9 + Double(delay.components.attoseconds) / 1e9
        return UInt64(nanoseconds * (1 - jitter))
    }
}

extension Configuration {
    /// Whether a URL of a batch may have an answer: from a service, or from the origin that forward mode asks.
    fileprivate func mayServe(_ url: String) -> Bool {
        guard let scheme = url.firstRange(of: "://") else { return services.contains { $0.match.hasPath(url) } }
        if forward.enabled { return true }
        let authority = url[scheme.upperBound...].prefix { !"/?#".contains($0) }.lowercased()
        let host = authority.hasPrefix("[") ? authority : String(authority.prefix { $0 != ":" })
        // The daemon has names of its own: addresses, and names without a dot, as machines have them.
        if !host.contains(".") || AddressBytes.parse(host) != nil { return true }
        let names = hosts + services.flatMap(\.hosts)
        return names.contains { $0 == host || $0.hasPrefix("*.") && host.hasSuffix($0.dropFirst()) }
            || services.contains { $0.isNamed(by: host) }
    }
}

extension ServiceMatch {
    /// Whether a path of a URL without a host is the service's: the longest prefix wins, on a segment boundary.
    fileprivate func hasPath(_ url: String) -> Bool {
        guard host == nil || host == "localhost" else { return false }
        guard let prefix, prefix != "/" else { return true }
        let path = url.prefix { $0 != "?" && $0 != "#" }
        return path == prefix || path.hasPrefix(prefix + "/")
    }
}

extension ServiceConfiguration {
    /// Whether an absolute URL with this host may be the service's: by its host, or by its origin.
    fileprivate func isNamed(by host: String) -> Bool {
        if match.host == host { return true }
        if case .origin(let origin)? = baseURL { return origin.host == host }
        return false
    }
}
