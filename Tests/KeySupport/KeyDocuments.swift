// Documents in which any key of the table may be set, and another value for each.

package import Configuration
import Glibc
import Synchronization
import TLS
import TestSupport

/// A folder with the files that the values name; it is removed with its last reference.
package final class KeyFolder: Sendable {
    private let folder: TemporaryFolder
    /// Gives each file of ``loadBoth(_:_:)`` a name of its own.
    private let loaded = Atomic<Int>(0)

    package init() throws {
        folder = try TemporaryFolder("drydock-keys")
        for name in ["demo", "store"] { try folder.folder(name) }
        // Each is a document of OpenAPI, too.
        for name in ["x.json", "y.json", "demo/x.json", "demo/e.json"] {
            try folder.write(name, #"{ "\#(name)": 1, "openapi": "3.0.0", "paths": {} }"#)
        }
        // Two certificates for one key, which is there twice.
        let authority = try LocalAuthority(name: "Of the keys", now: Int64(time(nil)))
        let key = try PrivateKey()
        for name in ["server", "other"] {
            let leaf = try authority.leaf(for: .name("\(name).example"), key: key, now: Int64(time(nil)), days: 100)
            try folder.write("\(name).pem", leaf.certificate.pem)
            try folder.write("\(name).key", key.pem ?? "")
            chmod(folder.file("\(name).key"), 0o600)
        }
        for name in ["events.txt", "demo/events.txt"] { try folder.write(name, "data: \(name)\n\n") }
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

    /// Loads two documents, one after the other as one file that is nobody else's and is removed: many may do so at once.
    package func loadBoth(_ first: Tree, _ second: Tree) throws -> (Configuration, Configuration) {
        let path = folder.file("\(loaded.add(1, ordering: .relaxed).newValue).yaml")
        defer { unlink(path) }
        func load(_ document: Tree) throws -> Configuration {
            guard let file = fopen(path, "w") else { throw TestSupportError.system(call: "open", code: errno) }
            let isWritten = fputs(document.flow, file) >= 0
            guard fclose(file) == 0, isWritten else { throw TestSupportError.system(call: "write", code: errno) }
            return try Configuration.load(path: path, environment: [:])
        }
        return (try load(first), try load(second))
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
            ("endpoints", .list([endpoint])), ("allow", .list([.map([("path", .leaf("/*"))])])),
            ("deny", .list([.map([("path", .leaf("/denied"))])])),
        ])
        let disk: Tree = .map([("path", .leaf("tier"))])
        let prefetch: Tree = .map([
            ("name", .leaf("p")), ("urls", .list([.leaf("/s/a")])), ("every", .leaf("1h")),
        ])
        let group: Tree = .map([
            ("name", .leaf("g")), ("every", .leaf("1h")),
            ("calls", .list([.map([("service", .leaf("s")), ("path", .leaf("/a"))])])),
        ])
        return .map([
            ("cache", .map([("disk", disk)])), ("services", .list([service])), ("prefetch", .list([prefetch])),
            ("purge", .list([.map([("tag", .leaf("t")), ("every", .leaf("1h"))])])), ("groups", .list([group])),
        ])
    }()

    /// What a key needs beside it, or before it is changed, to be allowed: in its own section or in the one around it.
    private static let companions: [String: [(String, String)]] = [
        "override_origin": [("ttl", "1h")], "user": [("user", "u"), ("password", "p")],
        "password": [("user", "u"), ("password", "p")],
        "client_cert": [("client_cert", "y.json"), ("client_key", "x.json")],
        "client_key": [("client_key", "y.json"), ("client_cert", "x.json")],
        "pin": [("../base_url", "https://127.0.0.1:9")], "mode": [("listen", "unix:/a")],
        "group": [("listen", "unix:/a")], "length": [("../max_concurrent", "3")], "wait": [("../max_concurrent", "3")],
        "enabled": [("files", "demo")], "seed_mode": [("seed_dir", "demo")], "seed_layout": [("seed_dir", "demo")],
        "after": [("file", "x.json")], "placeholder.status": [("file", "x.json")],
        "fallback.status": [("file", "x.json")],
        "expose": [("origins", "[\"http://a.example\"]")], "credentials": [("origins", "[\"http://a.example\"]")],
        "private_network": [("origins", "[\"http://a.example\"]")],
        "window": [("failures", "3")], "open": [("failures", "3")],
        "params_in": [("method", "POST"), ("params", "{ a: 1 }")], "body.encode": [("../method", "POST")],
        "body.defaults": [("../method", "POST")], "body.strip_nulls": [("../method", "POST")],
        "body.keys": [("../method", "POST")], "body.data": [("../method", "POST")], "body.max": [("../method", "POST")],
        "dates.members": dates, "dates.as": dates, "upload.name": upload,
        "upload.filename": upload, "upload.type": upload, "files.name": part, "files.file": part,
        "files.filename": part, "files.type": part,
        "auth.mode": [("../../auth", "{ bearer: token }")],
        "park.calls": [("time", "7m")], "park.size": [("time", "7m")],
        "map_buffer": [("map", "a.b")],
        "tls.certificate": [("certificate", "server.pem"), ("key", "server.key")],
        "tls.key": [("certificate", "server.pem"), ("key", "server.key")],
        "intercept.except": [("hosts", "[OTHER]")], "intercept.on_distrust": [("hosts", "[OTHER]")],
        "clients.ca": [("../authority", "local")],
        "clients.require": [("../authority", "local"), ("ca", "server.pem")],
        "openapi.validate": [("file", "x.json")], "openapi.body_limit": [("file", "x.json")],
        "compare": [("mode", "library")], "methods": [("mode", "library")],
        "demo.after": [("sequence", "[{ status: 201 }]")], "rules.after": [("sequence", "[{ status: 201 }]")],
        "answers.status": weight, "answers.file": weight, "answers.headers": weight, "outage.every": window,
        "answers.body": weight, "answers.json": weight,
        "answers.template": [("weight", "100%"), ("file", "x.json")], "sequence.template": [("file", "x.json")],
        "outage.after": window, "outage.after_requests": window, "sequence.status": [("file", "y.json")],
        "demo.count": [("sequence", "[{ status: 201 }]")],
        "state.is": [("scenario", "s")], "state.then": [("scenario", "s")],
        "rules.files": [("file", "x.json")], "template": [("file", "x.json")], "crud.id": [("file", "x.json")],
        "crud.new_ids": [("file", "x.json")], "when.params": [("../../../path", "\"/e/:z\"")],
        "when.only_query": [("method", "GET")],
        "redirects.follow": [("mode", "follow")], "redirects.allow": [("mode", "follow")],
        "source": [("recordings", "{ dir: demo }")], "from": [("cache", "{ seed_dir: demo }")],
        "recordings.dir": recorded,
        "recordings.max_size": recorded, "recordings.on_failure": recorded, "match.fields": recordedBelow,
        "match.body": recordedBelow, "match.credentials": recordedBelow, "match.vary": recordedBelow,
        "match.ignore_query": recordedBelow, "redact.fields": recordedBelow,
        "redact.query": recordedBelow, "redact.json": recordedBelow,
        "faults.name": deed, "faults.chance": deed, "faults.at": deed, "faults.origin": deed, "faults.first": deed,
        "faults.every": deed,
        "faults.retry_after": deed, "faults.file": deed, "faults.random_seed": deed,
        "latency.max": [("range", "1s")], "learned.times": [("of", "forward")],
        "learned.otherwise": [("of", "forward")],
        "misbehave.chance": [("kind", "no_304")], "misbehave.every": [("kind", "no_304")],
        "rate_limit.window": quota, "rate_limit.status": quota, "rate_limit.count": quota, "rate_limit.by": quota,
        "normal.mean": [("deviation", "1ms"), ("mean", "1s")],
        "normal.deviation": [("deviation", "1ms"), ("mean", "1s")],
        "lognormal.median": [("median", "1s"), ("p99", "1h")], "lognormal.p99": [("median", "1s"), ("p99", "1h")],
        "dribble.chunks": [("chunks", "2"), ("over", "1s")], "dribble.over": [("chunks", "2"), ("over", "1s")],
    ]

    private static let recorded = [("../source", "record"), ("dir", "demo")]
    private static let recordedBelow = [("../../source", "record"), ("../dir", "demo")]
    private static let window = [("for", "1s")]
    private static let weight = [("weight", "100%")]
    private static let quota = [("limit", "9")]
    /// What a rule of `faults` must do, whatever else it says.
    private static let deed = [("status", "418")]

    private static let dates = [("../../method", "POST"), ("members", "[a]"), ("as", "seconds")]
    private static let multipart = [("../../method", "POST"), ("../encode", "multipart")]
    private static let upload = multipart + [("name", "n")]
    private static let part = multipart + [("name", "n"), ("file", "y.json")]

    /// A document in which a key may be set: with what it needs beside it, and mostly without the key.
    package static func document(around one: KeyCase) -> Tree {
        let section = one.way.map(\.name)
        var document = base
        let own = (section.last.map { "\($0)." } ?? "") + one.key.name
        // A rule of demo mode has a name.
        if let rules = section.firstIndex(of: "rules") {
            document = document.setting((section[...rules] + ["name"])[...], to: "r")
        }
        if let index = (section + [one.key.name]).firstIndex(of: "events") {
            document = playing(document, section[..<index])
        }
        for (name, value) in companions[own] ?? companions[one.key.name] ?? [] {
            let levels = name.split(separator: "/").count { $0 == ".." }
            let target = section.dropLast(levels) + [String(name.dropFirst(3 * levels))]
            // Only where the table knows the companion: `mode` is a key of `admin` and of `cache`.
            guard knows(Array(target)) else { continue }
            document = document.setting(target[...], to: value)
        }
        return document
    }

    /// A demo section with events; an answer has one content, so that the file that there is gives way.
    private static func playing(_ document: Tree, _ section: ArraySlice<String>) -> Tree {
        let emptied =
            section == ["services", "endpoints", "demo"] ? document.setting(section, to: "{}") : document
        return emptied.setting((section + ["events", "list"])[...], to: "[{ data: a }]")
    }

    /// Events in which one key is another one than in these.
    private static let changedEvents: [String: String] = [
        "events": "[{ data: b }]", "list": "{ list: [{ data: b }] }", "file": "{ file: events.txt }",
        "every": "{ list: [{ data: a }], every: 7s }", "repeat": "{ list: [{ data: a }], repeat: 404 }",
        "id": "{ list: [{ data: a, id: z }] }", "event": "{ list: [{ data: a, event: z }] }",
        "data": "{ list: [{ data: { z: 1 } }] }", "retry": "{ list: [{ data: a, retry: 7s }] }",
    ]

    /// The same with another value of the key than before.
    package static func changed(_ one: KeyCase) -> Tree {
        let before = document(around: one)
        let way = one.way.map(\.name) + [one.key.name]
        // The service that there is, and a host in place of the prefix.
        if way == ["tls", "certificate"] || way == ["tls", "clients", "ca"] {
            return before.setting(way[...], to: "other.pem")
        }
        if way == ["tls", "key"] { return before.setting(way[...], to: "other.key") }
        if way.suffix(2) == ["purge", "service"] { return before.setting(way[...], to: "s") }
        if way.suffix(2) == ["answers", "weight"] {
            return before.setting(way.dropLast(), to: "[{ weight: 40% }, { weight: 60%, status: 404 }]")
        }
        if way.suffix(2) == ["match", "host"] { return before.setting(way.dropLast(), to: "{ host: h.localhost }") }
        if way == ["groups", "calls", "service"] {
            let services = ["s", "t"].map {
                "{ name: \($0), match: { prefix: /\($0) }, base_url: \"http://127.0.0.1:9\" }"
            }
            return before.setting(way[...], to: "t").setting(
                ["services"],
                to: "[\(services.joined(separator: ", "))]"
            )
        }
        if way.prefix(2) == ["groups", "calls"], let calls = groupCalls[way.dropFirst(2).joined(separator: ".")] {
            return before.setting(["groups", "calls"], to: "[\(calls)]")
                .setting(["services", "endpoints", "path"], to: "/e/:id")
        }
        if let index = way.firstIndex(of: "events"), let events = way.last.flatMap({ changedEvents[$0] }) {
            return before.setting(way[...index], to: events)
        }
        // An answer has one content: the file that there is gives way.
        if way.prefix(3) == ["services", "endpoints", "demo"], way.count == 4, ["body", "json"].contains(way[3]) {
            return before.setting(way.dropLast(), to: "{}").setting(
                way[...],
                to: one.key.kind.anotherValue(than: one.key)
            )
        }
        let changed = before.setting(way[...], to: one.key.kind.anotherValue(than: one.key))
        // A call of a group names the service.
        guard way == ["services", "name"] else { return changed }
        return changed.setting(["groups", "calls", "service"], to: one.key.kind.anotherValue(than: one.key))
    }

    /// Calls of a group in which a key stands that needs others beside it.
    private static let groupCalls: [String: String] = [
        "endpoint": "{ service: s, endpoint: e, params: { id: 1 } }",
        "params": "{ service: s, endpoint: e, params: { id: 7 } }",
        "when.value": conditional("value: v, is: \"200\""), "when.is": conditional("value: v, is: \"201\""),
        "when.is_not": conditional("value: v, is_not: \"200\""),
    ]

    private static func conditional(_ condition: String) -> String {
        "{ service: s, path: /a, take: { v: status } }, { service: s, path: /b, when: { \(condition) } }"
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
        // What `at` and the `origin` of a fault say without being set.
        case .choice(let words):
            words.first {
                $0 != key.defaultText && ($0 != "all" || key.name != "at") && $0 != "spare"
            } ?? ""
        case .duration, .lifetime: "7s"
        case .shift: "-7s"
        case .size: "4KiB"
        case .share: "50%"
        case .weighted(let single): single.anotherValue(than: key)
        case .latency, .distribution: "3ms..4ms"
        case .rate: "4KiB/s"
        case .permissions: "\"0600\""
        case .text(.prefix), .text(.batchURL), .text(.requestPath): "/other"
        case .text(.takenPath): "status"
        case .text(.clientAbort): "abort"
        case .text(.retryCause): "500"
        case .text(.connectPattern): "\"a.example:22\""
        case .text(.webOrigin): "\"http://localhost:3000\""
        case .text(.dateForm): "milliseconds"
        case .text(.mediaType), .text(.mediaRange): "image/png"
        case .text(.statuses): "2xx"
        case .text(.publicKeyPin): "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        case .text(.learnedLabel): "forward"
        case .text(.factor): "x2"
        case .text: key.name == "profile" ? "3g" : "OTHER"
        case .path:
            ["files", "seed_dir"].contains(key.name)
                ? "demo" : key.name == "include" ? "more.yaml" : key.name == "path" ? "store" : "x.json"
        case .demoFile: "y.json"
        case .logTarget: "stderr"
        case .address, .listener: "\"unix:/b\""
        case .client: "any"
        case .baseURL, .collector: "\"http://127.0.0.1:10\""
        case .upstreamProxy: "\"http://127.0.0.1:9\""
        case .endpointPath, .target: "/other"
        case .tree: "{ z: 1 }"
        case .list(let element), .oneOrMore(let element): "[\(element.anotherValue(than: key))]"
        case .map(.percentile, let element): "{ 40: \(element.anotherValue(than: key)) }"
        case .map(.logModule, let element): "{ store: \(element.anotherValue(than: key)) }"
        case .map(.status, let element): "{ 404: \(element.anotherValue(than: key)) }"
        case .map(.parameter, let element): "{ z: \(element.anotherValue(than: key)) }"
        case .map(_, let element): "{ X-Z: \(element.anotherValue(than: key)) }"
        case .shorthand(let section, let name):
            // A mapping would be the section.
            if case .tree? = section.key(name)?.kind {
                "7"
            } else {
                section.key(name)?.kind.anotherValue(than: key) ?? "{}"
            }
        case .mappingRule: "{ x: body.z }"
        case .section, .sections: "{}"
        case .rules: key.name == "misbehave" ? "no_304" : "{ name: other, status: 404 }"
        }
    }
}
