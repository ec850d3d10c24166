// Documents in which any key of the table may be set, and another value for each.

package import Configuration
import TestSupport

/// A folder with the files that the values name; it is removed with its last reference.
package final class KeyFolder: Sendable {
    private let folder: TemporaryFolder

    package init() throws {
        folder = try TemporaryFolder("drydock-keys")
        for name in ["demo", "store"] { try folder.folder(name) }
        for name in ["x.json", "y.json", "demo/x.json", "demo/e.json"] { try folder.write(name, "{ \"\(name)\": 1 }") }
        try folder.write(
            "more.yaml",
            "services: [{ name: more, match: { prefix: /more }, base_url: http://127.0.0.1:9 }]"
        )
    }

    package var path: String { folder.path }

    /// Where the last document is.
    package var file: String { folder.file("main.yaml") }

    /// Loads a document as a file of this folder.
    package func load(_ document: Tree) throws -> Configuration {
        try folder.write("main.yaml", document.flow)
        return try Configuration.load(path: file, environment: [:])
    }
}

package enum KeyDocuments {
    /// One service with one endpoint, which has a demo answer.
    private static let base: Tree = {
        let endpoint: Tree = .map([
            ("name", .leaf("e")), ("path", .leaf("/e")), ("demo", .map([("file", .leaf("x.json"))])),
        ])
        let service: Tree = .map([
            ("name", .leaf("s")), ("match", .map([("prefix", .leaf("/s"))])), ("base_url", .leaf("http://127.0.0.1:9")),
            ("endpoints", .list([endpoint])),
        ])
        let disk: Tree = .map([("path", .leaf("tier"))])
        let prefetch: Tree = .map([
            ("name", .leaf("p")), ("urls", .list([.leaf("/s/a")])), ("every", .leaf("1h")),
        ])
        return .map([
            ("cache", .map([("disk", disk)])), ("services", .list([service])), ("prefetch", .list([prefetch])),
            ("purge", .list([.map([("tag", .leaf("t")), ("every", .leaf("1h"))])])),
        ])
    }()

    /// What a key needs beside it, or before it is changed, to be allowed: in its own section or in the one around it.
    private static let companions: [String: [(String, String)]] = [
        "override_origin": [("ttl", "1h")], "user": [("user", "u"), ("password", "p")],
        "password": [("user", "u"), ("password", "p")],
        "client_cert": [("client_cert", "y.json"), ("client_key", "x.json")],
        "client_key": [("client_key", "y.json"), ("client_cert", "x.json")], "mode": [("listen", "unix:/a")],
        "group": [("listen", "unix:/a")], "length": [("../max_concurrent", "3")], "wait": [("../max_concurrent", "3")],
        "enabled": [("files", "demo")], "seed_mode": [("seed_dir", "demo")], "seed_layout": [("seed_dir", "demo")],
        "after": [("file", "x.json")], "placeholder.status": [("file", "x.json")],
        "fallback.status": [("file", "x.json")],
        "window": [("failures", "3")], "open": [("failures", "3")],
        "compare": [("mode", "library")], "methods": [("mode", "library")],
    ]

    /// A document in which a key may be set: with what it needs beside it, and mostly without the key.
    package static func document(around one: KeyCase) -> Tree {
        let section = one.way.map(\.name)
        var document = base
        let own = (section.last.map { "\($0)." } ?? "") + one.key.name
        for (name, value) in companions[own] ?? companions[one.key.name] ?? [] {
            let isAround = name.hasPrefix("../")
            let target = (isAround ? section.dropLast() : section[...]) + [isAround ? String(name.dropFirst(3)) : name]
            // Only where the table knows the companion: `mode` is a key of `admin` and of `cache`.
            guard knows(Array(target)) else { continue }
            document = document.setting(target[...], to: value)
        }
        return document
    }

    /// The same with another value of the key than before.
    package static func changed(_ one: KeyCase) -> Tree {
        let before = document(around: one)
        let way = one.way.map(\.name) + [one.key.name]
        // The service that there is, and a host in place of the prefix.
        if way.suffix(2) == ["purge", "service"] { return before.setting(way[...], to: "s") }
        if way.suffix(2) == ["match", "host"] { return before.setting(way.dropLast(), to: "{ host: h.localhost }") }
        return before.setting(way[...], to: one.key.kind.anotherValue(than: one.key))
    }

    private static func knows(_ way: [String]) -> Bool {
        var section = KeyTable.root
        for name in way.dropLast() {
            guard let below = section.key(name)?.kind.section else { return false }
            section = below
        }
        return way.last.map { section.key($0) != nil } ?? false
    }
}

extension ValueKind {
    /// A valid value that is neither the default nor what the base document says.
    fileprivate func anotherValue(than key: KeyDescriptor) -> String {
        switch self {
        case .boolean: key.defaultText == "true" ? "off" : "on"
        case .integer(let range): "\(range.contains(404) ? 404 : range.upperBound)"
        case .word(_, or: let other): other.anotherValue(than: key)
        case .choice(let words): words.first { $0 != key.defaultText } ?? ""
        case .duration, .lifetime: "7s"
        case .size: "4KiB"
        case .share: "50%"
        case .latency: "3ms..4ms"
        case .permissions: "\"0600\""
        case .text(.prefix), .text(.batchURL): "/other"
        case .text(.clientAbort): "abort"
        case .text(.retryCause): "500"
        case .text(.connectPattern): "\"a.example:22\""
        case .text(.webOrigin): "\"http://localhost:3000\""
        case .text: "OTHER"
        case .path:
            ["files", "seed_dir"].contains(key.name)
                ? "demo" : key.name == "include" ? "more.yaml" : key.name == "path" ? "store" : "x.json"
        case .demoFile: "y.json"
        case .logTarget: "stderr"
        case .address: "\"unix:/b\""
        case .client: "any"
        case .baseURL: "\"http://127.0.0.1:10\""
        case .endpointPath: "/other"
        case .list(let element), .oneOrMore(let element): "[\(element.anotherValue(than: key))]"
        case .map(.status, let element): "{ 404: \(element.anotherValue(than: key)) }"
        case .map(_, let element): "{ X-Z: \(element.anotherValue(than: key)) }"
        case .shorthand(let section, let name): section.key(name)?.kind.anotherValue(than: key) ?? "{}"
        case .section, .sections: "{}"
        }
    }
}
