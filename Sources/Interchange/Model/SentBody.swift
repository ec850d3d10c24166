// The content of a request of a source, as a rule can ask for it.

import Content

/// What was sent with a request.
enum SentBody: Equatable {
    case none
    /// The members of `when.body`.
    case known([ContentTree.Member])
    /// It cannot be told from others.
    case other

    /// Longer contents are not written into a configuration.
    static let longest = 16384

    /// A text, which may be JSON.
    init(text: String, keepsSecrets: Bool) {
        if text.isEmpty {
            self = .none
        } else if text.utf8.count > Self.longest || text.contains("{{") {
            self = .other
        } else if let tree = try? JSONReader.read(Array(text.utf8)) {
            self = keepsSecrets || !tree.hasSecretNames ? .known([.init("is", tree)]) : .other
        } else {
            self = .known([.init("text", .string(text))])
        }
    }

    /// The items of a form, decoded; of several with one name the first one is asked for.
    init(form items: [(name: String, value: String)], keepsSecrets: Bool) {
        var members: [ContentTree.Member] = []
        for item in items where !item.name.isEmpty && members.place(of: item.name) == nil {
            guard keepsSecrets || !Secrets.isIn(item.value, of: item.name), !item.value.contains("{{") else {
                self = .other
                return
            }
            members.append(.init(item.name, .string(item.value)))
        }
        self = members.isEmpty ? .none : .known([.init("form", .object(members))])
    }

    /// The members of `when.body`; none where it is not asked for.
    var condition: [ContentTree.Member] {
        if case .known(let members) = self { members } else { [] }
    }

    /// Whether rules cannot tell one from the other.
    func isSame(_ other: SentBody) -> Bool { condition == other.condition }
}
