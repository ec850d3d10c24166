// Resolves access rules and CORS from decoded entries.

extension CORSConfiguration {
    init(_ reader: SectionReader) {
        origins = reader.texts("origins")
        expose = reader.texts("expose")
        credentials = reader.bool("credentials")
        privateNetwork = reader.bool("private_network")
    }
}

extension Resolver {
    /// The rules under `allow` or `deny` of a service.
    mutating func access(_ service: SectionReader, _ key: String) -> [AccessConfiguration] {
        let section = service.section.key(key)?.kind.section ?? SectionDescriptor(name: key, keys: [])
        return service.items(key).compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.place) else { return nil }
            let reader = SectionReader(entries: entries, section: section)
            var path: EndpointPath?
            if case .endpointPath(let given)? = reader.leaf("path")?.scalar { path = given }
            let rule = AccessConfiguration(
                name: reader.text("name"),
                methods: reader.texts("method"),
                path: path,
                fields: reader.headerValues("fields")
            )
            for method in rule.methods where method != method.uppercased() {
                fail(place(reader, "method"), "methods are in upper case; write \(method.uppercased())")
            }
            if rule.methods.isEmpty, rule.path == nil, rule.fields.isEmpty {
                fail(value.place, "this rule of '\(key)' matches every request; give 'method', 'path' or 'fields'")
            }
            return rule
        }
    }

    /// - Parameter own: the service without what it inherited.
    mutating func check(cors service: ServiceConfiguration, _ own: SectionReader) {
        let cors = service.cors
        let isAuthorized = service.auth != nil || service.endpoints.contains { $0.auth?.addsCredentials == true }
        let place = own.place("cors") ?? (isAuthorized ? own.place("auth") ?? own.place("endpoints") : nil)
        guard let place else { return }
        let isForAll = cors.origins.contains("*")
        if isForAll, isAuthorized {
            fail(
                place,
                "'cors: { origins: [\"*\"] }' would let every web page use the credentials under 'auth'; name the origins"
            )
        }
        if isForAll, cors.credentials {
            fail(
                place,
                "'cors.credentials' with origins [\"*\"] would let every web page act for the user; name the origins"
            )
        }
        if cors.origins.isEmpty, !cors.expose.isEmpty || cors.credentials || cors.privateNetwork {
            fail(place, "'cors' needs 'cors.origins', which is not set; set it, or remove 'cors'")
        }
    }
}
