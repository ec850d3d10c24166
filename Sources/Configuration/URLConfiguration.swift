// The configuration of `drydock serve URL`, which needs no file.

internal import Foundation

extension Configuration {
    /// One service at the prefix `/`, with standard caching in memory and in the user's cache folder (`$XDG_CACHE_HOME`, else `~/.cache`), and
    /// the admin socket in `$XDG_RUNTIME_DIR` where there is one.
    ///
    /// - Throws: the reason why the text is no base URL.
    package static func forURL(
        _ url: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ConfigurationErrors) -> Configuration {
        func fail(_ message: String) -> ConfigurationErrors {
            ConfigurationErrors(errors: [
                ConfigurationError(place: Place(file: "URL", line: 1, column: 1), message: message)
            ])
        }
        let hasScheme = ["http://", "https://"].contains { url.lowercased().hasPrefix($0) }
        guard hasScheme else {
            throw fail("'\(url)' is no origin; write http://HOST or https://HOST, or name a configuration file with -c")
        }
        let base: BaseURL
        do { base = try Addresses.baseURL(url) } catch { throw fail(error.message) }
        guard case .origin(let origin) = base else {
            throw fail("'\(url)' needs a configuration file; write http://HOST or https://HOST")
        }
        var result = Configuration()
        let name = String(origin.host.filter { $0 != "[" && $0 != "]" }.map { $0 == ":" ? "-" : $0 })
        result.services = [ServiceConfiguration(name: name, match: .prefix("/"), baseURL: base)]
        func folder(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        if let caches = folder("XDG_CACHE_HOME") ?? folder("HOME").map({ $0 + "/.cache" }) {
            result.cache.disk = DiskTierConfiguration(path: Paths.normal(caches + "/drydock"))
        }
        if let runtime = folder("XDG_RUNTIME_DIR") {
            result.admin = AdminConfiguration(listen: [.unix(path: Paths.normal(runtime + "/drydock/admin.sock"))])
        }
        return result
    }
}
