// The configuration of `drydock serve URL`, which needs no file.

import EventLoop
import FoundationEssentials

package enum URLConfiguration {
    /// A configuration with one service at the prefix `/`, with standard caching in memory and on the disk, 1 GiB in
    /// `drydock/serve` of the user's cache folder (`$XDG_CACHE_HOME`, else `~/.cache`). Without forward mode, if it
    /// listens on another address than loopback.
    ///
    /// - Parameters:
    ///   - listen: the addresses as `listen` has them in a file; empty for the default.
    ///   - clients: the rules as `clients` has them in a file; empty for the default.
    ///   - tls: clients speak TLS at TCP addresses that do not begin with `http://`, with certificates of the local
    ///     authority; by default at `localhost:8443`.
    /// - Throws: the mistake in one of the texts.
    package static func make(
        _ url: String,
        listen: [String] = [],
        clients: [String] = [],
        tls: Bool = false,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ConfigurationErrors) -> Configuration {
        func problem(_ message: String) -> ConfigurationError {
            ConfigurationError(position: SourcePosition(file: "URL", line: 1, column: 1), message: message)
        }
        func fail(_ message: String) -> ConfigurationErrors { ConfigurationErrors(errors: [problem(message)]) }
        let found: OriginURL?
        do { found = try Addresses.origin(url) } catch { throw fail(error.message) }
        guard let origin = found else {
            throw fail(
                "'\(url)' is not an origin; write http://HOST or https://HOST, or name a configuration file with -c"
            )
        }
        var result = Configuration()
        let name = String(origin.host.filter { $0 != "[" && $0 != "]" }.map { $0 == ":" ? "-" : $0 })
        result.services = [ServiceConfiguration(name: name, match: .prefix("/"), baseURL: .origin(origin))]
        func folder(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        if let caches = folder("XDG_CACHE_HOME") ?? folder("HOME").map({ $0 + "/.cache" }) {
            // The folder is a sibling of `drydock/store`, which `make run` uses.
            let path = Paths.normal(caches + "/drydock/serve")
            if let problem = FileChecks.canHoldStore(path) { throw fail("the cache folder \(problem)") }
            var disk = DiskTierConfiguration(path: path)
            disk.size = 1 << 30
            disk.maxObject = disk.size
            result.cache.disk = disk
        }
        do throws(ScalarProblem) {
            if !listen.isEmpty {
                result.listen = try listen.map { text throws(ScalarProblem) in
                    var point = try Addresses.listener(text)
                    if tls, point.scheme == .http, !point.address.isUnix, !text.hasPrefix("http://") {
                        point.scheme = .https
                    }
                    return point
                }
            } else if tls {
                result.listen = [ListenPoint(.tcp(host: "localhost", port: 8443), scheme: .https)]
            }
            if !clients.isEmpty { result.clients = try clients.map(Addresses.client) }
        } catch {
            throw fail(error.message)
        }
        let secure = result.listen.first { $0.scheme != .http }
        if let secure, !tls { throw fail("--listen \(secure) speaks TLS; give --tls for its certificates") }
        if tls {
            guard secure != nil else {
                throw fail("--tls has no address: clients speak plain at each of --listen; add --listen localhost:8443")
            }
            result.tls = ListenerTLS(isLocal: true)
        }
        for (index, address) in result.listen.enumerated()
        where result.listen[..<index].contains(where: { $0.address.meets(address.address) }) {
            throw fail("--listen \(address) takes a port twice; give each address once")
        }
        if let open = result.listen.first(where: { !$0.address.isLoopback }) {
            result.forward.enabled = false
            if clients.isEmpty {
                result.warnings.append(
                    problem(
                        "other machines can connect to \(open), and each gets a 403; name who may connect, such as --clients 192.168.0.0/16 or --clients any"
                    )
                )
            }
        }
        return result
    }
}
