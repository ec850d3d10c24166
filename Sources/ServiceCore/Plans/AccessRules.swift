// Which requests a service answers at all: rules that allow and rules that deny, by method, path and fields.

package import HTTPWire

/// One rule: a request matches it if all that it names hold.
package struct AccessRule: Sendable, Equatable {
    /// A field that a request must have.
    package struct FieldCondition: Sendable, Equatable {
        package let name: String
        /// A whole value, or a member of a list; nil: any.
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
    }

    /// As refusals call it, such as `deny[0] (writes)`; it holds no value of a field.
    package let name: String
    /// Empty: any. GET stands for HEAD, too.
    package let methods: [Method]
    /// Below the service's prefix; nil: any.
    package let path: PathPattern?
    package let fields: [FieldCondition]
    /// The path for what is left when all percent-encodings are decoded.
    private let decodedPath: PathPattern?

    package init(name: String, methods: [Method], path: PathPattern?, fields: [FieldCondition]) {
        self.name = name
        self.methods = methods
        self.path = path
        self.fields = fields
        decodedPath = path?.decoded
    }

    /// Whether method and fields hold.
    fileprivate func matchesHead(_ request: RequestHead) -> Bool {
        (methods.isEmpty || methods.contains { $0.answers(request.method) })
            && fields.allSatisfy { $0.holds(request.fields) }
    }

    /// Whether the path holds in a reading.
    fileprivate func matches(_ reading: PathReadings.Reading) -> Bool {
        guard let pattern = reading.isDecoded ? decodedPath : path else { return true }
        return reading.path.withUnsafeBytes { pattern.matches($0) }
    }
}

/// The rules of a service. A rule under `deny` wins; where there are rules under `allow`, one of them must match.
package struct AccessRules: Sendable, Equatable {
    package let allow: [AccessRule]
    package let deny: [AccessRule]

    package init(allow: [AccessRule] = [], deny: [AccessRule] = []) {
        self.allow = allow
        self.deny = deny
    }

    package var isEmpty: Bool { allow.isEmpty && deny.isEmpty }

    /// No spelling of a path gets past a rule: one that denies counts in every reading of the path, and one that allows
    /// must hold in all of them.
    /// - Parameter rest: what follows the service's prefix: empty, or beginning with `/` or `?`.
    /// - Returns: the name of the rule that refuses the request, or `allow`; nil if the request may go on.
    package func refusal(of request: RequestHead, _ rest: String) -> String? {
        if isEmpty { return nil }
        let readings = PathReadings(rest)
        let denying = deny.first { rule in
            rule.matchesHead(request) && (readings.all + readings.withoutLastSlash).contains { rule.matches($0) }
        }
        if let denying { return denying.name }
        let isAllowed = allow.contains { rule in
            rule.matchesHead(request) && readings.all.allSatisfy { rule.matches($0) }
        }
        return allow.isEmpty || isAllowed ? nil : "allow"
    }
}
