// Services and endpoints: merged with what they inherit, resolved, and checked as a whole.

import Policies
import Upstream

extension Resolver {
    /// Resolves all services, in order. Those with errors are left out, but their names are known to the others.
    mutating func resolveServices(_ root: SectionReader) -> [ServiceConfiguration] {
        if let position = root.position("defaults"), broken.contains(position) { return [] }
        let defaults = root.section("defaults").entries
        let hosts = root.entries.filter { $0.key == "hosts" }
        let daemonDemo = root.section("demo").bool("enabled")
        var result: [(ServiceConfiguration, SectionReader)] = []
        for value in services where !broken.contains(value.position) {
            guard case .section(let own) = value.content else { continue }
            let near = SectionReader(entries: own, section: KeyTable.service)
            // A service without hosts of its own has the daemon's; one with match.host has that one.
            let hasHost = near.section("match").entry("host") != nil
            let merged = Merge.merged(own, over: hasHost ? defaults : defaults + hosts, KeyTable.service)
            let reader = SectionReader(entries: merged, section: KeyTable.service)
            if let service = service(value.position, near, reader, daemonDemo: daemonDemo) {
                result.append((service, near))
            }
        }
        checkAmongServices(result)
        noteHosts(result)
        return result.map(\.0)
    }

    private mutating func service(
        _ here: SourcePosition,
        _ own: SectionReader,
        _ reader: SectionReader,
        daemonDemo: Bool
    ) -> ServiceConfiguration? {
        guard let name = reader.text("name"), let match = match(own) else { return nil }
        let before = errors.count
        var baseURL: BaseURL?
        if case .baseURL(let url)? = reader.leaf("base_url")?.scalar { baseURL = url }
        var result = ServiceConfiguration(name: name, match: match, baseURL: baseURL, reader)
        result.hosts = match.host == nil ? reader.texts("hosts") : []
        if match.host != nil, let position = own.position("hosts") {
            fail(
                position,
                "'hosts' is for a service with 'match.prefix' alone, and this one answers for 'match.host'; remove one"
            )
        }
        result.auth = auth(reader)
        result.tls = tls(reader, own: own, baseURL)
        if result.breaker != nil, case .service(let name)? = baseURL, let position = own.position("breaker") {
            fail(position, "'breaker' is for a service with an origin of its own; set it in service '\(name)'")
        }
        check(park: own, result, baseURL)
        if result.upstreamProxy != .none, case .service(let name)? = baseURL,
            let position = own.position("upstream_proxy")
        {
            fail(position, "'upstream_proxy' is for a service with an origin of its own; set it in service '\(name)'")
        }
        result.allow = access(reader, "allow")
        result.deny = access(reader, "deny")
        check(redirects: own, baseURL)
        result.openAPI = openAPI(reader)
        let route = RouteReader(reader: reader, own: own, owner: .service, rateLimitScope: "", daemonDemo: daemonDemo)
        read(&result.settings, route)
        let needs = SourceNeeds(hasOrigin: baseURL != nil || match.host != nil, isParked: result.park != nil)
        check(sources: reader, needs, &result.settings)
        var trees: [Value] = []
        var endpointReaders: [(EndpointConfiguration, SectionReader)] = []
        for value in reader.items("endpoints") {
            guard case .section(let entries) = value.content else { continue }
            let handed = Merge.handedToEndpoints(reader.entries, KeyTable.service)
            let merged = Merge.merged(entries, over: handed, KeyTable.endpoint)
            let endpoint = SectionReader(entries: merged, section: KeyTable.endpoint)
            let whole = endpoint
            let near = SectionReader(entries: entries, section: KeyTable.endpoint)
            guard
                var endpoint = self.endpoint(
                    endpoint,
                    near,
                    daemonDemo: daemonDemo
                )
            else { continue }
            check(sources: whole, needs, &endpoint.settings)
            result.endpoints.append(endpoint)
            endpointReaders.append((endpoint, whole))
            let shown = merged.filled("demo.enabled", with: Self.leaf(endpoint.demo.enabled))
                .filled("redirects.mode", with: Self.leaf(endpoint.redirects.mode))
            trees.append(Value(position: value.position, content: .section(Self.filled(shown, endpoint.cache))))
        }
        check(cors: result, own)
        checkEndpoints(reader, result)
        checkStoredFiles(endpointReaders, of: result)
        checkAnswers(here, own, &result, reported: errors.count > before)
        // The shown configuration includes the values that depend on the daemon's defaults and on a missing base URL.
        var tree = reader.entries.filled("demo.enabled", with: Self.leaf(result.demo.enabled))
        tree = Self.filled(tree, result.cache).filled("redirects.mode", with: Self.leaf(result.redirects.mode))
        tree = tree.filled(
            "unlisted",
            with: Leaf(text: result.unlisted.rawValue, scalar: .text(result.unlisted.rawValue))
        )
        if let index = tree.firstIndex(where: { $0.key == "endpoints" }) { tree[index].value.content = .list(trees) }
        self.trees.append(tree)
        return result
    }

    private static func filled(_ tree: [Entry], _ cache: CacheConfiguration) -> [Entry] {
        followed(cache).reduce(tree) { $0.filled("cache.\($1.key)", with: $1.leaf) }
    }

    private static func leaf(_ enabled: Bool) -> Leaf { Leaf(text: String(enabled), scalar: .bool(enabled)) }

    private static func leaf(_ mode: RedirectMode) -> Leaf { Leaf(text: mode.rawValue, scalar: .text(mode.rawValue)) }

    private mutating func match(_ own: SectionReader) -> ServiceMatch? {
        let reader = own.section("match")
        switch (reader.text("prefix"), reader.text("host")) {
        case (let prefix?, nil): return .prefix(prefix)
        case (let prefix, let host?): return .host(host, prefix: prefix)
        case (nil, nil):
            fail(
                position(own, "match"),
                "'match' is empty; write { prefix: /\(own.text("name") ?? "name") }, { host: api.localhost }, or both"
            )
        }
        return nil
    }

    private mutating func endpoint(
        _ reader: SectionReader,
        _ own: SectionReader,
        daemonDemo: Bool
    ) -> EndpointConfiguration? {
        guard let name = reader.text("name"), case .endpointPath(let path)? = reader.leaf("path")?.scalar else {
            return nil
        }
        var result = EndpointConfiguration(name: name, path: path, reader)
        if result.method != result.method.uppercased(), let position = reader.position("method") {
            fail(position, "methods are in upper case; write \(result.method.uppercased())")
        }
        if result.method == "CONNECT", let position = reader.position("method") {
            fail(position, "an endpoint cannot answer CONNECT, which belongs to forward mode; write another method")
        }
        let request = request(own, method: result.method)
        result.request = request.isEmpty ? nil : request
        result.auth = endpointAuth(own)
        let position = reader.position("name") ?? self.position(reader, "path")
        let route = RouteReader(
            reader: reader,
            own: own,
            owner: .endpoint(name, position, parameters: path.parameters),
            rateLimitScope: own.entry("rate_limit") == nil ? "" : name,
            daemonDemo: daemonDemo
        )
        read(&result.settings, route)
        return result
    }
}
