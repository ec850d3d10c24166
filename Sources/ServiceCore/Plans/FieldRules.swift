// The changes to the fields of a request on its way from a service to the origin.

package import HTTPWire

/// The rules for changing fields, applied in the order underscores, remove, set, add. Values are fixed text.
package struct FieldRules: Sendable, Equatable {
    /// Whether the client's fields with an underscore in their name are removed.
    package var dropsUnderscores: Bool
    package var remove: [String]
    package var set: [(name: String, value: String)]
    package var add: [(name: String, value: String)]

    package init(
        remove: [String] = [],
        set: [(name: String, value: String)] = [],
        add: [(name: String, value: String)] = [],
        dropsUnderscores: Bool = false
    ) {
        self.dropsUnderscores = dropsUnderscores
        self.remove = remove
        self.set = set
        self.add = add
    }

    package var isEmpty: Bool { remove.isEmpty && set.isEmpty && add.isEmpty && !dropsUnderscores }

    package func apply(to fields: inout Fields) {
        if dropsUnderscores { fields.removeAll { name, known in known == .other && name.contains(UInt8(ascii: "_")) } }
        for name in remove { fields.remove(name) }
        for (name, value) in set { fields.set(name, value) }
        for (name, value) in add { fields.append(name, value) }
    }

    package static func == (left: FieldRules, right: FieldRules) -> Bool {
        left.dropsUnderscores == right.dropsUnderscores && left.remove == right.remove
            && left.set.elementsEqual(right.set, by: ==)
            && left.add.elementsEqual(right.add, by: ==)
    }
}

/// The changes to the fields of a request, credentials included.
package struct FieldChange: Sendable {
    let rules: FieldRules
    let authorization: String?

    package init(rules: FieldRules, authorization: String?) {
        self.rules = rules
        self.authorization = authorization
    }

    package func apply(to fields: inout Fields) {
        rules.apply(to: &fields)
        if let authorization { fields.set(.authorization, authorization) }
    }
}
