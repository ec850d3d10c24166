// Checks that need a whole service, or all services.

import HTTPCaching
import Matching

extension Resolver {
    /// Checks that no two endpoints have the same name, or the same method and shape of path.
    mutating func checkEndpoints(_ reader: SectionReader, _ service: ServiceConfiguration) {
        var names: [String: SourcePosition] = [:]
        var shapes: [String: String] = [:]
        for value in reader.items("endpoints") {
            guard case .section(let entries) = value.content else { continue }
            let own = SectionReader(entries: entries, section: KeyTable.endpoint)
            guard let name = own.text("name"), let namePosition = own.position("name"),
                let pathPosition = own.position("path"),
                case .endpointPath(let path)? = own.leaf("path")?.scalar
            else { continue }
            if let first = names.updateValue(namePosition, forKey: name) {
                fail(
                    namePosition,
                    "the service '\(service.name)' already has an endpoint '\(name)', on line \(first.line); rename one of them"
                )
            }
            let method = own.text("method") ?? "GET"
            if let other = shapes.updateValue(name, forKey: method + " " + path.shape) {
                fail(
                    pathPosition,
                    "\(method) \(path) matches the same requests as the endpoint '\(other)'; change one of the paths"
                )
            }
        }
    }

    /// Checks that every request of a service has an answer.
    ///
    /// - Parameter reported: whether the service has an error already, such as a missing demo file, so that a missing
    ///   answer is not reported again.
    mutating func checkAnswers(
        _ here: SourcePosition,
        _ own: SectionReader,
        _ service: inout ServiceConfiguration,
        reported: Bool
    ) {
        let answers = service.hasDemoAnswers
        if let position = own.section("demo").position("enabled"), own.section("demo").bool("enabled"), !answers,
            service.endpoints.isEmpty
        {
            fail(
                position,
                "the service '\(service.name)' is in demo mode, but has nothing to answer with; set 'demo.file', or add endpoints"
            )
            return
        }
        if RecordingConfiguration.isDemo(own), !answers, !reported, let position = own.position("source") {
            fail(
                position,
                "the service '\(service.name)' has 'source: demo', but nothing to answer with; set 'demo.file', or demo answers of endpoints"
            )
            return
        }
        if service.unlisted == .notFound, service.endpoints.isEmpty, let position = own.position("unlisted") {
            fail(position, "'unlisted: 404' without endpoints refuses every request; add endpoints, or remove it")
        }
        // Proxied requests name the origin.
        guard service.baseURL == nil, !service.asksNamedOrigin else { return }
        let live = service.endpoints.filter { !$0.demo.answersAlone($0.recording) && $0.recording.asksOrigin }
            .map(\.name)
        let answersItself = service.demo.answersAlone(service.recording) || !service.recording.asksOrigin
        if !reported, !live.isEmpty || (service.endpoints.isEmpty && !answersItself) {
            let what = live.isEmpty ? "its requests" : "the endpoint '\(live[0])'"
            fail(
                here,
                "the service '\(service.name)' has no 'base_url', so nothing answers \(what); add base_url: https://HOST, or demo answers with demo: { enabled: true, … }"
            )
        }
        let passing =
            (service.demo.mayPass && service.demo.answersAlone(service.recording) ? [service.name] : [])
            + service.endpoints.filter { $0.demo.answersAlone($0.recording) && $0.demo.mayPass }.map(\.name)
        if !reported, service.recording.asksOrigin, let name = passing.first {
            fail(
                here,
                "the service '\(service.name)' has no 'base_url' that 'demo.unmatched: pass' of '\(name)' could pass requests to; add one, or write unmatched: 404"
            )
        }
        guard !answersItself else { return }
        if own.text("unlisted") == "pass", let position = own.position("unlisted") {
            fail(position, "'unlisted: pass' needs a 'base_url' to pass requests to; add one, or write unlisted: 404")
        }
        service.unlisted = .notFound
    }

    /// Checks that names, prefixes and hosts are unique, and that `service:NAME` leads to a service and never back.
    mutating func checkAmongServices(_ resolved: [(ServiceConfiguration, SectionReader)]) {
        var names: [String: SourcePosition] = [:]
        for value in services {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.service)
            guard let name = reader.text("name"), let position = reader.position("name") else { continue }
            if let first = names[name] {
                fail(position, "there is already a service '\(name)', at \(first); rename one of them")
            } else {
                names[name] = position
            }
        }
        var matches: [ServiceMatch: String] = [:]
        for (service, own) in resolved {
            if let other = matches.updateValue(service.name, forKey: service.match) {
                let match = own.section("match")
                let position = match.position("prefix") ?? match.position("host") ?? self.position(own, "match")
                fail(position, "the service '\(other)' matches the same requests; change the prefix or the host of one")
            }
        }
        let targets = Dictionary(
            resolved.compactMap { service, _ -> (String, String)? in
                guard case .service(let target)? = service.baseURL else { return nil }
                return (service.name, target)
            },
            uniquingKeysWith: { first, _ in first }
        )
        for (service, own) in resolved {
            guard let target = targets[service.name], case .service(target)? = service.baseURL else { continue }
            let position = self.position(own, "base_url")
            guard names[target] != nil else {
                let near = Suggestions.nearest(to: target, among: names.keys.sorted())
                fail(
                    position,
                    "there is no service '\(target)'; "
                        + (near.map { "did you mean 'service:\($0)'?" } ?? "add it, or write a URL")
                )
                continue
            }
            var chain = [service.name]
            var next: String? = target
            while let name = next, !chain.contains(name) {
                chain.append(name)
                next = targets[name]
            }
            // Each cycle is reported once, at its first service.
            if next == service.name,
                chain.allSatisfy({ member in
                    resolved.firstIndex { $0.0.name == member } ?? 0 >= resolved.firstIndex {
                        $0.0.name == service.name
                    } ?? 0
                })
            {
                fail(
                    position,
                    "the services form a cycle: \((chain + [service.name]).joined(separator: " → ")); give one of them a URL"
                )
            }
        }
    }
}

extension Resolver {
    /// Notes, once for all services, that those with a host have the proxied requests for it. Before version 0.2.0 forward
    /// mode had them.
    mutating func noteHosts(_ resolved: [(ServiceConfiguration, SectionReader)]) {
        let forward = SectionReader(entries: root, section: KeyTable.root).section("forward")
        let found = resolved.compactMap { service, own in
            service.match.host.map { (host: $0, position: self.position(own.section("match"), "host")) }
        }
        guard forward.bool("enabled"), let first = found.first else { return }
        var hosts: [String] = []
        for (host, _) in found where !hosts.contains(host) { hosts.append(host) }
        let shown = hosts.prefix(3).joined(separator: ", ") + (hosts.count > 3 ? " and \(hosts.count - 3) more" : "")
        notes.append(
            ConfigurationError(
                position: first.position,
                message:
                    "requests that come through the proxy for \(shown) are answered by the services with that 'match.host', and forward mode has the others; 'drydock explain --proxy URL' says which"
            )
        )
    }
}

extension DemoConfiguration {
    /// Whether demo answers are on and have no other source before or behind them.
    func answersAlone(_ recording: RecordingConfiguration) -> Bool { recording.from.isEmpty && enabled }
}

extension Resolver {
    /// Checks the files of `store_as`: a file belongs to one resource, because two would overwrite each other.
    mutating func checkStoredFiles(
        _ endpoints: [(EndpointConfiguration, SectionReader)],
        of service: ServiceConfiguration
    ) {
        for (endpoint, reader) in endpoints {
            guard let file = endpoint.cache.storeAs else { continue }
            let position = self.position(reader.section("cache"), "store_as")
            if service.asksNamedOrigin {
                fail(
                    position,
                    "'cache.store_as' keeps one resource as a file, and service '\(service.name)' has one for each scheme and port that requests name; give it a 'base_url'"
                )
                continue
            }
            let isOne = endpoint.path.segments.allSatisfy { if case .literal = $0 { true } else { false } }
            if !isOne || endpoint.method != "GET" {
                fail(
                    position,
                    "'cache.store_as' keeps one resource as a file, but '\(endpoint.method) \(endpoint.path)' is not one resource; use it for a GET of one path"
                )
                continue
            }
            if !hasDiskTier || !endpoint.cache.disk || endpoint.cache.mode == .none {
                fail(
                    position,
                    "'cache.store_as' is a path under the disk tier, which this endpoint does not use; set the daemon's 'cache.disk' and the endpoint's 'cache.disk: true'"
                )
                continue
            }
            if let other = storedFiles.updateValue(endpoint.name, forKey: file) {
                fail(position, "the endpoint '\(other)' is already stored as '\(file)'; choose another name")
            }
        }
    }

    private var hasDiskTier: Bool {
        SectionReader(entries: root, section: KeyTable.root).section("cache").entry("disk") != nil
    }
}
