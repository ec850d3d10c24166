// What a service changes in the fields of a request on its way to the origin.

package import HTTPWire

/// Applied in this order: remove, set, add. Values are fixed text.
package struct FieldRules: Sendable, Equatable {
    package var remove: [String]
    package var set: [(name: String, value: String)]
    package var add: [(name: String, value: String)]

    package init(
        remove: [String] = [],
        set: [(name: String, value: String)] = [],
        add: [(name: String, value: String)] = []
    ) {
        self.remove = remove
        self.set = set
        self.add = add
    }

    package var isEmpty: Bool { remove.isEmpty && set.isEmpty && add.isEmpty }

    package func apply(to fields: inout Fields) {
        for name in remove { fields.remove(name) }
        for (name, value) in set { fields.set(name, value) }
        for (name, value) in add { fields.append(name, value) }
    }

    package static func == (left: FieldRules, right: FieldRules) -> Bool {
        left.remove == right.remove && left.set.elementsEqual(right.set, by: ==)
            && left.add.elementsEqual(right.add, by: ==)
    }
}
