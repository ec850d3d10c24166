// Names of members, compared by their code points (RFC 8259 section 8.3). For Swift, two texts are equal as soon as they
// are canonically equivalent, as `\u{E9}` and `e\u{301}` are, and an origin takes these for two members.

/// A name as the key of a table.
package struct MemberName: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: MemberName, right: MemberName) -> Bool { left.text.isSameName(as: right.text) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension String {
    /// Whether both have the same code points.
    package func isSameName(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension [ContentTree.Member] {
    /// Where the member of that name is.
    package func place(of name: String) -> Int? { firstIndex { $0.name.isSameName(as: name) } }
}
