// The access rules of a service, which allow and deny requests by method, path and fields.

package import HTTPWire

/// One access rule: a request matches it if all its conditions hold.
package struct AccessRule: Sendable, Equatable {
    /// A field that a request must have.
    package struct FieldCondition: Sendable, Equatable {
        package let name: String
        /// The value, either the whole field value or a member of its list; nil for any value.
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }

        fileprivate func holds(_ fields: Fields) -> Bool {
            guard let value else { return fields.contains(name) }
            return fields.all(name).contains { line in
                // Field values are read as Latin-1.
                var bytes: [UInt8] = []
                Latin1.append(line, to: &bytes)
                if bytes.elementsEqual(value.utf8) { return true }
                var isMember = false
                bytes.withUnsafeBytes { bytes in
                    bytes.forEachMember { if $0.elementsEqual(value.utf8) { isMember = true } }
                }
                return isMember
            }
        }

        /// Whether the condition holds for some server that does not tell `_` from `-` in names of fields (CGI, WSGI,
        /// Rack).
        fileprivate func holdsForSome(_ fields: Fields) -> Bool {
            if holds(fields) { return true }
            let wanted = Self.plain(name)
            var twins = Fields()
            fields.forEachLine { name, value, _ in
                if Self.plain(Latin1.string(name)) == wanted { twins.append(self.name, Latin1.string(value)) }
            }
            return holds(twins)
        }

        private static func plain(_ name: String) -> String { name.lowercased().replacing("_", with: "-") }
    }

    /// The name in refusals, such as `deny[0] (writes)`; it contains no field value.
    package let name: String
    /// The request methods that match; empty for any. GET includes HEAD.
    package let methods: [Method]
    /// The pattern of paths below the service's prefix; nil for any.
    package let path: PathPattern?
    package let fields: [FieldCondition]
    /// The pattern with each decoding that a request's path may have.
    private let decodedPaths: [PathPattern]

    package init(name: String, methods: [Method], path: PathPattern?, fields: [FieldCondition]) {
        self.name = name
        self.methods = methods
        self.path = path
        self.fields = fields
        decodedPaths = path.map { path in PathReadings.Decoding.allCases.map { path.decoded($0) } } ?? []
    }

    /// Whether the conditions on method and fields hold.
    fileprivate func matchesHead(_ request: RequestHead) -> Bool {
        (methods.isEmpty || methods.contains { $0.answers(request.method) })
            && fields.allSatisfy { $0.holds(request.fields) }
    }

    /// Whether the conditions on method and fields hold in some reading of the request.
    fileprivate func mayMatchHead(_ request: RequestHead) -> Bool {
        // Methods are case-sensitive (RFC 9110 section 9.1), but not for every server.
        let upper = Method(request.method.name.uppercased())
        return (methods.isEmpty || methods.contains { $0.answers(request.method) || $0.answers(upper) })
            && fields.allSatisfy { $0.holdsForSome(request.fields) }
    }

    /// Whether the path matches in a reading.
    fileprivate func matches(_ reading: PathReadings.Reading) -> Bool {
        decodedPaths.isEmpty || decodedPaths[reading.decoding.rawValue].matches(path: reading.path)
    }
}

/// The access rules of a service. A rule under `deny` wins; if there are rules under `allow`, one of them must match.
package struct AccessRules: Sendable, Equatable {
    package let allow: [AccessRule]
    package let deny: [AccessRule]

    package init(allow: [AccessRule] = [], deny: [AccessRule] = []) {
        self.allow = allow
        self.deny = deny
    }

    package var isEmpty: Bool { allow.isEmpty && deny.isEmpty }

    /// The refusal of a request, if there is one. No spelling circumvents a rule: `deny` counts in every reading of
    /// path, method and names of fields, while `allow` must hold in all readings of the path, and for the exact method
    /// and fields.
    /// - Parameter rest: the target without the service's prefix: empty, or beginning with `/` or `?`.
    /// - Returns: the name of the rule that refuses the request, or `allow`; nil if the request is accepted.
    package func refusal(of request: RequestHead, _ rest: String) -> String? {
        if isEmpty { return nil }
        let readings = PathReadings(rest)
        let denying = deny.first { rule in
            rule.mayMatchHead(request) && (readings.all + readings.withoutLastSlash).contains { rule.matches($0) }
        }
        if let denying { return denying.name }
        let isAllowed = allow.contains { rule in
            rule.matchesHead(request) && readings.all.allSatisfy { rule.matches($0) }
        }
        return allow.isEmpty || isAllowed ? nil : "allow"
    }
}
