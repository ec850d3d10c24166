// The configuration of `drydock serve URL`, which needs no file.

import EventLoop
import FoundationEssentials

/// What the options of `drydock serve URL` say, each in the words of the key that it stands for.
package struct URLOptions: Sendable, Equatable {
    /// The addresses as `listen` has them in a file; empty for the default.
    package var listen: [String] = []
    /// The rules as `clients` has them in a file; empty for the default.
    package var clients: [String] = []
    /// Whether clients speak TLS at TCP addresses that do not begin with `http://`, with certificates of the local
    /// authority; by default at `localhost:8443`.
    package var tls: Bool
    /// The service's name; nil for the origin's host.
    package var name: String?
    /// The lifetime as `cache.ttl` has it; nil for none.
    package var ttl: String?
    /// The origins of web pages as `cors.origins` has them.
    package var cors: [String] = []
    /// The names of this daemon as `hosts` has them.
    package var hosts: [String] = []
    /// The path of a PEM bundle for an https origin, relative to the working folder; nil for the system's.
    package var ca: String?
    /// Whether responses are stored on the disk, too.
    package var disk: Bool
    /// Whether the access log goes to a person, and is text.
    package var isOnTerminal: Bool

    /// Options that are not there: they are no keys, so the table of those has no defaults for them.
    package init() { (tls, disk, isOnTerminal) = (false, true, false) }
}

package enum URLConfiguration {
    /// A configuration with one service at the prefix `/`, with standard caching in memory and on the disk, 1 GiB in
    /// `drydock/serve` of the user's cache folder (`$XDG_CACHE_HOME`, else `~/.cache`). Without forward mode, if it
    /// listens on another address than loopback.
    /// - Throws: the mistake in one of the texts, with the option.
    package static func make(
        _ url: String,
        _ options: URLOptions = URLOptions(),
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ConfigurationErrors) -> Configuration {
        let found: OriginURL?
        do { found = try Addresses.origin(url) } catch { throw fail(error.message) }
        guard let origin = found else {
            throw fail(
                "'\(url)' is not an origin; write http://HOST or https://HOST, or name a configuration file with -c"
            )
        }
        var result = Configuration()
        result.services = [try service(origin, options)]
        result.hosts = result.services[0].hosts
        if options.isOnTerminal { result.log.format = .text }
        if options.disk { result.cache.disk = try disk(environment) }
        try listen(&result, options)
        if !options.clients.isEmpty { result.clients = try values("--clients", options.clients, Addresses.client) }
        if let open = result.listen.first(where: { !$0.address.isLoopback }) {
            result.forward.enabled = false
            if options.clients.isEmpty {
                result.warnings.append(
                    problem(
                        "other machines can connect to \(open), and each gets a 403; name who may connect, such as --clients 192.168.0.0/16 or --clients any"
                    )
                )
            }
        }
        return result
    }

    private static func service(
        _ origin: OriginURL,
        _ options: URLOptions
    ) throws(ConfigurationErrors) -> ServiceConfiguration {
        var name = String(origin.host.filter { $0 != "[" && $0 != "]" }.map { $0 == ":" ? "-" : $0 })
        if let given = options.name { name = try value("--name", given, TextRule.word.check) }
        var result = ServiceConfiguration(name: name, match: .prefix("/"), baseURL: .origin(origin))
        result.hosts = try values("--hosts", options.hosts, TextRule.servedHost.check)
        result.cors.origins = try values("--cors", options.cors, TextRule.webOrigin.check)
        if let ttl = options.ttl {
            result.cache.ttl = Int64(try value("--ttl", ttl, Units.lifetime) / 1_000_000_000)
        }
        if let ca = options.ca {
            guard origin.scheme == "https" else {
                throw fail("'--ca' is for an origin that is asked by https; correct the URL, or leave it out")
            }
            let path = Paths.absolute(ca, besideFile: "")
            if let problem = FileChecks.readable(path) { throw fail("'--ca' \(problem)") }
            result.tls.ca = path
        }
        return result
    }

    /// The disk tier; nil if the user has no folder for it.
    private static func disk(_ environment: [String: String]) throws(ConfigurationErrors) -> DiskTierConfiguration? {
        func folder(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        guard let caches = folder("XDG_CACHE_HOME") ?? folder("HOME").map({ $0 + "/.cache" }) else { return nil }
        // The folder is a sibling of `drydock/store`, which `make run` uses.
        let path = Paths.normal(caches + "/drydock/serve")
        if let problem = FileChecks.canHoldStore(path) { throw fail("the cache folder \(problem)") }
        var disk = DiskTierConfiguration(path: path)
        disk.size = 1 << 30
        disk.maxObject = disk.size
        return disk
    }

    private static func listen(_ result: inout Configuration, _ options: URLOptions) throws(ConfigurationErrors) {
        let tls = options.tls
        if !options.listen.isEmpty {
            result.listen = try values("--listen", options.listen) { text throws(ScalarProblem) in
                var point = try Addresses.listener(text)
                if tls, point.scheme == .http, !point.address.isUnix, !text.hasPrefix("http://") {
                    point.scheme = .https
                }
                return point
            }
        } else if tls {
            result.listen = [ListenPoint(.tcp(host: "localhost", port: 8443), scheme: .https)]
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
    }

    // MARK: Values of options

    private static func value<Value>(
        _ option: String,
        _ text: String,
        _ parse: (String) throws(ScalarProblem) -> Value
    ) throws(ConfigurationErrors) -> Value {
        do throws(ScalarProblem) { return try parse(text) } catch { throw fail("'\(option)' \(error.message)") }
    }

    private static func values<Value>(
        _ option: String,
        _ texts: [String],
        _ parse: (String) throws(ScalarProblem) -> Value
    ) throws(ConfigurationErrors) -> [Value] {
        try texts.map { text throws(ConfigurationErrors) in try value(option, text, parse) }
    }

    private static func problem(_ message: String) -> ConfigurationError {
        ConfigurationError(position: SourcePosition(file: "URL", line: 1, column: 1), message: message)
    }

    private static func fail(_ message: String) -> ConfigurationErrors {
        ConfigurationErrors(errors: [problem(message)])
    }
}
