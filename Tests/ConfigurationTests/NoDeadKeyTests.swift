// No key of the table is dead: another value of it makes another configuration.

import Testing

@testable import Configuration

/// A YAML document under construction.
indirect enum Tree {
    case leaf(String)
    case map([(String, Tree)])
    case list([Tree])

    /// Sets what a way of keys leads to; of a list, its first item.
    func setting(_ way: ArraySlice<String>, to value: String) -> Tree {
        guard let first = way.first else { return .leaf(value) }
        switch self {
        case .leaf: return Tree.map([]).setting(way, to: value)
        case .list(let items):
            return .list([(items.first ?? .map([])).setting(way, to: value)] + items.dropFirst())
        case .map(var pairs):
            guard let index = pairs.firstIndex(where: { $0.0 == first }) else {
                return .map(pairs + [(first, Tree.map([]).setting(way.dropFirst(), to: value))])
            }
            pairs[index].1 = pairs[index].1.setting(way.dropFirst(), to: value)
            return .map(pairs)
        }
    }

    var flow: String {
        switch self {
        case .leaf(let text): text
        case .map(let pairs): "{ " + pairs.map { "\($0.0): \($0.1.flow)" }.joined(separator: ", ") + " }"
        case .list(let items): "[" + items.map(\.flow).joined(separator: ", ") + "]"
        }
    }
}

@Suite struct NoDeadKeyTests {
    /// One service with one endpoint, which has a demo answer.
    static let base: Tree = {
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
    static let companions: [String: [(String, String)]] = [
        "override_origin": [("ttl", "1h")], "user": [("user", "u"), ("password", "p")],
        "password": [("user", "u"), ("password", "p")],
        "client_cert": [("client_cert", "y.json"), ("client_key", "x.json")],
        "client_key": [("client_key", "y.json"), ("client_cert", "x.json")], "mode": [("listen", "unix:/a")],
        "group": [("listen", "unix:/a")], "length": [("../max_concurrent", "3")], "wait": [("../max_concurrent", "3")],
        "enabled": [("files", "demo")], "seed_mode": [("seed_dir", "demo")], "seed_layout": [("seed_dir", "demo")],
        "after": [("file", "x.json")], "placeholder.status": [("file", "x.json")],
        "fallback.status": [("file", "x.json")],
        "compare": [("mode", "library")], "methods": [("mode", "library")],
    ]

    static let cases = KeyCase.all().filter { $0.key.kind.section == nil }

    /// The files that values name.
    static func folder() throws -> Folder {
        let folder = try Folder()
        for name in ["x.json", "y.json", "demo/x.json", "demo/e.json"] { try folder.write(name, "{}") }
        try folder.write("more.yaml", "services:\n" + service("more"))
        return folder
    }

    /// A document in which a key may be set: with what it needs beside it, and mostly without the key.
    static func document(around one: KeyCase) -> Tree {
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

    @Test(arguments: cases) func anotherValueIsAnotherConfiguration(_ one: KeyCase) throws {
        let folder = try Self.folder()
        let way = one.way.map(\.name) + [one.key.name]
        let section = Array(way.dropLast())
        let before = Self.document(around: one)
        var after = before.setting(way[...], to: one.key.kind.anotherValue(than: one.key))
        if way.suffix(2) == ["match", "host"] { after = before.setting(section[...], to: "{ host: h.localhost }") }
        // It has to name the one service that there is.
        if way.suffix(2) == ["purge[]", "service"] || way.suffix(2) == ["purge", "service"] {
            after = before.setting(way[...], to: "s")
        }
        let first = try folder.load(before.flow)
        do {
            let second = try folder.load(after.flow)
            #expect(second != first, "\(after.flow)")
        } catch {
            Issue.record("\(error) in \(after.flow)")
        }
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
        case .integer: "404"
        case .word(_, or: let other): other.anotherValue(than: key)
        case .choice(let words): words.first { $0 != key.defaultText } ?? ""
        case .duration, .lifetime: "7s"
        case .size: "4KiB"
        case .share: "50%"
        case .latency: "3ms..4ms"
        case .permissions: "\"0600\""
        case .text(.prefix), .text(.batchURL): "/other"
        case .text(.clientAbort): "abort"
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
