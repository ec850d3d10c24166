// A service of demo answers on its way into a configuration.

import Content

/// A service that answers by its rules.
struct ImportedService {
    var name: String
    var prefix: String
    /// Where requests would go if demo mode were off.
    var baseURL: String?
    var rules: [ImportedRule] = []
    /// Endpoints, as a configuration has them.
    var endpoints: [ContentTree] = []

    var tree: ContentTree {
        let demo = ContentTree.object(of: [
            "enabled": .bool(true),
            "files": .string("./" + ImportedConfiguration.bodies),
            "rules": .array(rules.map(\.tree)),
        ])
        // Without answers of its own, a service would let all other requests go on to the origin.
        let hasRules = !rules.isEmpty
        return .object(of: [
            "name": .string(name),
            "match": .object(of: ["prefix": .string(prefix)]),
            "base_url": baseURL.map { .string($0) },
            "unlisted": hasRules ? nil : .string("404"),
            "demo": hasRules ? demo : nil,
            "endpoints": endpoints.isEmpty ? nil : .array(endpoints),
        ])
    }
}

extension ImportDraft {
    /// Keeps the requests that the rules of a service were made of.
    mutating func prove(_ service: ImportedService) {
        for rule in service.rules {
            guard let place = rule.place else { continue }
            prove(ImportExample(rule, at: place, of: service.name, path: rule.path))
        }
    }
}

extension ImportedConfiguration {
    /// Values of a configuration file: it may have 200,000.
    private static let mostValues = 150_000

    /// - Throws: where nothing is left, or more than a configuration may hold.
    init(_ services: [ContentTree], rules: Int, _ draft: ImportDraft, _ place: ImportPlace) throws(ImportError) {
        guard rules > 0 else {
            let why = draft.notes.first.map { "; the first reason is at \($0)" } ?? ""
            throw ImportError(place, "nothing in it can be made into a rule" + why)
        }
        let size = services.reduce(0) { $0 + $1.size }
        guard rules <= ImportDraft.mostRules, size <= Self.mostValues else {
            throw ImportError(
                place,
                "it would be \(rules) rules with \(size) values, and a configuration takes \(ImportDraft.mostRules) and \(Self.mostValues); import it in parts"
            )
        }
        self.init(
            services: services,
            files: draft.files,
            notes: draft.notes,
            rules: rules,
            secrets: draft.secrets,
            examples: draft.examples
        )
    }
}
