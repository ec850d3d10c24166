// Values of any shape: what a file writes as YAML and a request carries as JSON.

import Content

extension SourceNode {
    /// The node as a tree, with the environment's variables in its texts, and whether there was one.
    /// - Throws: where a key is no text or occurs twice, or a variable is missing.
    func tree(_ environment: [String: String]) throws(ScalarProblem) -> (tree: ContentTree, isFromEnvironment: Bool) {
        switch content {
        case .scalar(let written, let plain):
            if isNull { return (.null, false) }
            let (text, found) = try Expansion.expand(written, environment)
            return (Self.scalar(text, plain: plain && !found), found)
        case .sequence(let nodes):
            let read = try nodes.map { node throws(ScalarProblem) in try node.tree(environment) }
            return (.array(read.map(\.tree)), read.contains(where: \.isFromEnvironment))
        case .mapping(let pairs):
            var members: [ContentTree.Member] = []
            var isFromEnvironment = false
            for (key, value) in pairs {
                guard case .scalar(let name, plain: _) = key.content else {
                    throw ScalarProblem("has a key that is no word; put quotes around a text with brackets or braces")
                }
                guard members.place(of: name) == nil else {
                    throw ScalarProblem("has the key '\(name)' twice; keep one")
                }
                let read = try value.tree(environment)
                members.append(ContentTree.Member(name, read.tree))
                isFromEnvironment = isFromEnvironment || read.isFromEnvironment
            }
            return (.object(members), isFromEnvironment)
        }
    }

    /// A number is one of JSON; what else has no quotes is true, false or a text.
    private static func scalar(_ text: String, plain: Bool) -> ContentTree {
        guard plain else { return .string(text) }
        if text == "true" || text == "false" { return .bool(text == "true") }
        if case .number(let number)? = try? JSONReader.read(Array(text.utf8)), number == text { return .number(number) }
        return .string(text)
    }
}
