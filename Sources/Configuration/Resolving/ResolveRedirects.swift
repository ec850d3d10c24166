// Whether redirects are followed: a word, or a section whose other keys say so.

import Policies

extension RedirectPolicy {
    /// - Parameter reader: of the section `redirects`.
    init(_ reader: SectionReader) {
        let isMeant = reader.entry("follow") != nil || reader.entry("allow") != nil
        let mode: RedirectMode =
            reader.entry("mode") == nil && isMeant ? .follow : reader.choice(always: "mode")
        self.init(limit: mode == .follow ? reader.int(always: "follow") : 0, allow: reader.texts("allow"))
    }

    /// What `config show` says where the file leaves it to the other keys.
    var mode: RedirectMode { limit > 0 ? .follow : .pass }
}

extension Resolver {
    /// - Parameter own: the service or the endpoint without what it inherited.
    mutating func check(redirects own: SectionReader, _ baseURL: BaseURL?) {
        guard case .service(let name)? = baseURL, let place = own.place("redirects") else { return }
        fail(place, "'redirects' is for a service with an origin of its own; set it in service '\(name)'")
    }
}
