// What compiling one service has to know of the others: shared web origins, and secrets that one adds for another.

import Configuration

/// The facts about other services that the plan of a service depends on.
struct Neighbours {
    /// Services that are matched by their prefix alone.
    private let prefixCount: Int
    /// Services by their host.
    private let hostCounts: [String: Int]
    /// Hosts whose services leave some paths to services that have a prefix and no host.
    private let sharedHosts: Set<String>
    /// Services that get requests, directly or through others, from a service with secret query items.
    let askedInSecret: Set<String>

    init(_ configuration: Configuration) {
        let matches = configuration.services.map(\.match)
        prefixCount = matches.count { $0.host == nil }
        hostCounts = Dictionary(matches.compactMap { match in match.host.map { ($0, 1) } }, uniquingKeysWith: +)
        sharedHosts = Set(matches.compactMap { $0.prefix == nil ? nil : $0.host })
            .subtracting(matches.compactMap { $0.prefix == nil ? $0.host : nil })
        var asked: Set<String> = []
        for service in configuration.services where !Credentials.query(of: service).isEmpty {
            var next = service
            while case .service(let name)? = next.baseURL, let inner = configuration.service(named: name),
                asked.insert(name).inserted
            {
                next = inner
            }
        }
        askedInSecret = asked
    }

    /// Whether pages of other services are of the same web origin to a browser.
    func shareWebOrigin(_ match: ServiceMatch) -> Bool {
        guard let host = match.host else { return prefixCount > 1 || !sharedHosts.isEmpty }
        return hostCounts[host, default: 0] > 1 || sharedHosts.contains(host) && prefixCount > 0
    }
}
