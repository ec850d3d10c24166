// Translates access rules, CORS and path patterns of a configuration into the types of the service core.

import Configuration
import HTTPWire
import ServiceCore

extension AccessRules {
    init(_ service: ServiceConfiguration) {
        self.init(
            allow: service.allow.enumerated().map { AccessRule($1, "allow[\($0)]") },
            deny: service.deny.enumerated().map { AccessRule($1, "deny[\($0)]") }
        )
    }
}

extension AccessRule {
    /// - Parameter place: of the rule in its list.
    fileprivate init(_ rule: AccessConfiguration, _ place: String) {
        self.init(
            name: rule.name.map { "\(place) (\($0))" } ?? place,
            methods: rule.methods.map { Method($0) },
            path: rule.path.map { PathPattern($0) },
            fields: rule.fields.map { field in
                FieldCondition(name: field.name, value: field.value == "*" ? nil : field.value)
            }
        )
    }
}

extension CrossOriginRules {
    init(_ cors: CORSConfiguration) {
        self.init(
            origins: cors.origins,
            exposed: cors.expose,
            allowsCredentials: cors.credentials,
            allowsPrivateNetwork: cors.privateNetwork
        )
    }
}

extension PathPattern {
    init(_ path: EndpointPath) {
        self.init(
            segments: path.segments.map { segment in
                switch segment {
                case .literal(let text): .literal(Array(text.utf8))
                case .parameter(let name): .parameter(name)
                case .rest: .rest
                }
            }
        )
    }
}
