// Redirects of origins: passed on, or followed.

import Policies

extension KeyTable {
    static let redirects = SectionDescriptor(
        name: "redirects",
        keys: [
            KeyDescriptor(
                "mode",
                .choice(RedirectMode.allCases.map(\.rawValue)),
                default: "pass",
                "pass sends the client the redirect, rewritten to the service's place; follow sends it what the redirect leads to; follow is the default where follow or allow is set.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "follow",
                .integer(1...50),
                default: "10",
                "How many redirects are followed for one request.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "allow",
                .list(.text(.targetPattern)),
                default: "[\"*\"]",
                "HOST or HOST:PORT patterns of the other origins that a redirect may lead to; loopback, private and link-local hosts need a rule that names them, or a service with them as base_url.",
                inherited: .endpoints
            ),
        ]
    )

    /// The key `redirects` of services and endpoints.
    static let redirectsKey = KeyDescriptor(
        "redirects",
        .shorthand(redirects, key: "mode"),
        "Whether redirects of the origin are passed on or followed: pass, follow, or { follow: 10 }.",
        inherited: .endpoints
    )
}

extension RedirectPolicy {
    /// Reads the policy for redirects.
    /// - Parameter reader: a section `redirects`.
    init(_ reader: SectionReader) {
        let isMeant = reader.entry("follow") != nil || reader.entry("allow") != nil
        let mode: RedirectMode =
            reader.entry("mode") == nil && isMeant ? .follow : reader.choice(always: "mode")
        self.init(limit: mode == .follow ? reader.int(always: "follow") : 0, allow: reader.texts("allow"))
    }

    /// The mode that `config show` prints if the file leaves it to the other keys.
    var mode: RedirectMode { limit > 0 ? .follow : .pass }
}

extension Resolver {
    /// Reports redirects of a service whose target is another service.
    /// - Parameter own: the service or the endpoint without inherited keys.
    mutating func check(redirects own: SectionReader, _ baseURL: BaseURL?) {
        guard case .service(let name)? = baseURL, let position = own.position("redirects") else { return }
        fail(position, "'redirects' is for a service with an origin of its own; set it in service '\(name)'")
    }
}
