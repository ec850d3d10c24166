// Keys that do nothing without another one: each alone is a warning at its line and column, and none beside its switch.

import KeySupport
import Testing

@testable import Configuration

/// A row of the table of idle keys: the documents in which its keys do nothing, and in which they have an effect.
private struct IdleCase {
    /// The first key of the row, and its switch.
    let key: String
    let without: String
    /// What stands beside a key without its switch. A way with `^` begins at the root.
    var off: [(way: String, value: String)] = []
    let on: [(way: String, value: String)]

    static let all: [IdleCase] = [
        IdleCase(
            key: "forward.allow",
            without: "forward",
            off: [("forward.enabled", "false")],
            on: [("forward.enabled", "true"), ("forward.max_concurrent", "9")]
        ),
        IdleCase(key: "log.format", without: "access", off: [("log.access", "off")], on: [("log.access", "stdout")]),
        IdleCase(key: "demo.enabled", without: "services", on: [("^services.demo.body", "text")]),
        IdleCase(key: "tracing.sample", without: "otlp", on: [("tracing.otlp", "http://localhost:4318")]),
        IdleCase(key: "journal.bodies", without: "size", on: [("journal.size", "1MiB")]),
        IdleCase(key: "intercept.except", without: "hosts", on: [("intercept.hosts", "[a.example]")]),
        IdleCase(key: "park.calls", without: "time", on: [("park.time", "1m")]),
        IdleCase(key: "cors.expose", without: "origins", on: [("cors.origins", "[\"http://localhost:3000\"]")]),
        IdleCase(key: "tls.verify", without: "base_url", off: certificate, on: certificate + secure),
        IdleCase(
            key: "tls.ca",
            without: "verify",
            off: secure + [("tls.verify", "false")],
            on: secure + [("tls.verify", "true")]
        ),
        IdleCase(
            key: "redirects.follow",
            without: "mode",
            off: [("redirects.mode", "pass")],
            on: [("redirects.mode", "follow")]
        ),
        IdleCase(key: "response.map_buffer", without: "map", on: [("error.map", "{ text: message }")]),
        IdleCase(
            key: "cache.ttl",
            without: "source",
            off: [("source", "record"), ("recordings.dir", "recordings")],
            on: [("source", "live"), ("cache.ttl", "1h")]
        ),
        IdleCase(key: "params_in", without: "params", on: [("params", "{ a: 1 }")]),
        IdleCase(key: "auth.mode", without: "mode", on: [("^services.auth.bearer", "token")]),
        IdleCase(key: "max_queue.length", without: "max_concurrent", on: [("max_concurrent", "9")]),
        IdleCase(key: "breaker.window", without: "failures", on: [("breaker.failures", "9")]),
        IdleCase(key: "retry.preset", without: "count", on: [("retry.count", "1")]),
        IdleCase(key: "cache.seed_mode", without: "seed_dir", on: [("cache.seed_dir", "seeds")]),
        IdleCase(
            key: "cache.memory",
            without: "disk",
            off: [("cache.disk", "false"), ("^cache.disk.path", "tier")],
            on: [("cache.disk", "true"), ("^cache.disk.path", "tier")]
        ),
        IdleCase(key: "cache.override_origin", without: "ttl", on: [("cache.ttl_by_status", "{ 404: 1m }")]),
        IdleCase(key: "cache.compare", without: "mode", on: [("cache.mode", "library")]),
        IdleCase(
            key: "cache.ttl",
            without: "mode",
            off: [("cache.mode", "none")],
            on: [("cache.mode", "standard"), ("cache.ttl", "1h")]
        ),
        IdleCase(key: "cache.ttl", without: "revalidate", off: forEver, on: [("cache.mode", "library")]),
        IdleCase(
            key: "cache.gone",
            without: "revalidate",
            off: forEver,
            on: [("cache.mode", "standard"), ("cache.revalidate", "never")]
        ),
        IdleCase(
            key: "faults[].retry_after",
            without: "status",
            off: [("faults.latency", "1s")],
            on: [("faults.status", "503")]
        ),
        IdleCase(
            key: "faults[].at",
            without: "demo",
            off: [("faults.latency", "1s")],
            on: [("faults.latency", "1s"), ("demo.body", "answer")]
        ),
        IdleCase(
            key: "demo.failure.status",
            without: "chance",
            off: [("demo.rules.name", "r")],
            on: [("demo.rules.name", "r"), ("demo.failure.chance", "5%"), ("demo.rules.failure.chance", "5%")]
        ),
        IdleCase(
            key: "demo.after",
            without: "sequence",
            off: [("demo.rules.name", "r")],
            on: [("demo.rules.name", "r"), ("demo.sequence.status", "201"), ("demo.rules.sequence.status", "201")]
        ),
    ]

    private static let secure = [(way: "base_url", value: "https://127.0.0.1:9")]
    private static let certificate = [(way: "tls.client_cert", value: "x.json"), ("tls.client_key", "x.json")]
    private static let forEver = [(way: "cache.mode", value: "library"), ("cache.revalidate", "never")]
}

/// Where the keys of a row are set.
private struct IdleTable {
    let name: String
    let section: String
    let label: String
    let rows: [IdleKey]

    static let all = [
        IdleTable(name: "daemon", section: "", label: "", rows: IdleKey.ofDaemon),
        IdleTable(name: "forward", section: "forward", label: "forward.", rows: IdleKey.ofForward),
        IdleTable(name: "services", section: "services", label: "", rows: IdleKey.ofServices),
        IdleTable(name: "endpoints", section: "services.endpoints", label: "", rows: IdleKey.ofRoutes),
    ]
}

@Suite struct IdleKeyTests {
    /// Values that are not the defaults, by the last name of a key, or by its whole one where several have that name.
    private static let values = [
        "cache.seed_mode": "import", "cache.seed_layout": "docker", "cache.memory": "false", "override_origin": "true",
        "compare": "[etag]", "cache.ttl": "7s", "ttl_by_status": "{ 404: 7s }", "revalidate": "conditional",
        "check_pause": "7s", "gone": "serve-stale", "stale_while_revalidate": "7s", "stale_if_error": "7s",
        "other_variant": "serve", "max_variants": "7", "min_length": "7B", "preset": "docker", "delay": "7s",
        "backoff": "3", "max_delay": "1h", "jitter": "50%", "when": "[500]", "retry_after": "7s", "methods": "any",
        "budget": "50%", "max_queue.length": "7", "wait": "7s", "window": "7s", "open": "7s", "calls": "7",
        "size": "7MiB", "expose": "[X-A]", "credentials": "true", "private_network": "true", "verify": "false",
        "ca": "x.json", "client_cert": "x.json", "client_key": "x.json", "follow": "7", "allow": "[b.example]",
        "map_buffer": "7KiB", "params_in": "body", "auth.mode": "none", "at": "demo", "file": "x.json",
        "status": "500", "body": "text", "json": "{ z: 1 }", "template": "true", "after": "repeat",
        "except": "[b.a.example]", "on_distrust": "tunnel", "bodies": "7B", "redact": "[X-A]", "tracing.sample": "7%",
        "log.format": "combined", "demo.enabled": "true",
        "forward.connect": "{ allow: [\"a.example:7\"] }",
        "forward.intercept": "{ except: [a.example], hosts: [b.example] }",
        "upstream_proxy": "\"http://127.0.0.1:9\"", "forward.timeout": "{ tunnel: 7s }",
        "forward.tls": "{ ca: x.json }",
        "lenient": "false", "forward.retry": "{ count: 7 }", "forward.breaker": "{ failures: 7 }",
        "max_concurrent": "7",
        "forward.max_queue": "{ length: 7 }", "forward.cache": "{ ttl: 7s }", "forward.faults": "{ status: 500 }",
    ]

    /// A service with an endpoint, in which a key and what stands beside it are set.
    private static func document(_ table: IdleTable, _ settings: [(way: String, value: String)]) -> Tree {
        let endpoint: Tree = .map([("name", .leaf("e")), ("path", .leaf("/e")), ("method", .leaf("POST"))])
        let service: Tree = .map([
            ("name", .leaf("s")), ("match", .map([("prefix", .leaf("/s"))])), ("base_url", .leaf("http://127.0.0.1:9")),
            ("endpoints", .list([endpoint])),
        ])
        return settings.reduce(.map([("services", .list([service]))])) { tree, setting in
            let isOfRoot = setting.way.hasPrefix("^") || table.section.isEmpty
            // The address of a service is not its endpoint's.
            let isOfService = setting.way == "base_url"
            let section = isOfRoot ? "" : isOfService ? "services" : table.section
            let way = (section + "." + setting.way.replacing("^", with: "").replacing("[]", with: "")).split(
                separator: "."
            )
            return tree.setting(way.map(String.init)[...], to: setting.value)
        }
    }

    @Test(arguments: ["daemon", "forward", "services", "endpoints"])
    func eachKeyAloneAndBesideItsSwitch(_ name: String) throws {
        let table = try #require(IdleTable.all.first { $0.name == name })
        let folder = try Folder()
        for name in ["x.json", "demo/x.json", "seeds/x"] { try folder.write(name, "{}") }
        // Rows that are tested by a file of their own, below.
        let others = ["cache.memory.size", "groups[].at_start", "demo.rules[].state.is"]
        var count = 0
        for row in table.rows where !others.contains(row.keys[0].name) {
            let known = IdleCase.all.first { $0.key == row.keys[0].name && $0.without == row.switchKey }
            let one = try #require(known, "no case for \(row.keys[0].name) without \(row.switchKey)")
            for (key, path) in row.keys {
                // Only endpoints have these.
                if ["params_in", "auth.mode"].contains(key), name != "endpoints" { continue }
                count += 1
                let value = try #require(Self.values[key] ?? Self.values[String(path[path.count - 1])], "\(key)")
                let alone = Self.document(table, one.off + [(key, value)]).flow
                let warnings = try folder.load(alone).warnings
                let said = warnings.filter { $0.message.hasPrefix("'\(table.label)\(key)' \(row.says), since ") }
                #expect(said.count == 1, "\(key) without \(row.switchKey): \(warnings) in \(alone)")
                let column = try #require(said.first?.position.column)
                let rest = alone.dropFirst(column - 1)
                #expect(rest.hasPrefix(value.prefix { $0 != "," }), "\(key) at \(rest.prefix(20))")
                // Forward mode has no demo answers.
                if name == "forward", key == "faults[].at" { continue }
                let beside = Self.document(table, one.on + [(key, value)]).flow
                let none = try folder.load(beside).warnings
                #expect(none.isEmpty, "\(key) with \(row.switchKey): \(none) in \(beside)")
            }
        }
        #expect(count > (name == "daemon" ? 14 : 30), "\(count)")
    }

    // MARK: - Inheritance

    private static func warnings(_ text: String) throws -> [String] {
        try load(text).warnings.map { $0.description.replacing("test.yaml:", with: "") }
    }

    @Test func aKeyThatOneServiceUsesIsNoneForTheOthers() throws {
        let inherited = "defaults: { retry: { delay: 1s } }\nservices:\n"
        #expect(try Self.warnings(inherited + service("a") + service("b", "retry: { count: 2 }")).isEmpty)
        let alone = try Self.warnings(inherited + service("a") + service("b"))
        #expect(alone.count == 1 && alone[0].hasPrefix("1:29: 'retry.delay' does nothing"), "\(alone)")
        #expect(
            try Self.warnings("defaults: { retry: { delay: 1s } }\n").isEmpty,
            "no service is there that could use it"
        )
    }

    @Test func aKeyThatOneEndpointUsesIsNoneForItsService() throws {
        let endpoints = "endpoints: [{ name: e, path: /e, retry: { count: 1 } }, { name: f, path: /f }]"
        #expect(try Self.warnings("services:\n" + service("a", "retry: { delay: 1s }", endpoints)).isEmpty)
        let none =
            "endpoints: [{ name: e, path: /e, retry: { delay: 2s } }, { name: f, path: /f, retry: { count: 1 } }]"
        let said = try Self.warnings("services:\n" + service("a", none))
        #expect(said.count == 1 && said[0].hasPrefix("5:54: 'retry.delay'"), "\(said)")
    }

    @Test func anAliasIsOneValueWithTwoUses() throws {
        let shared = "x-retry: &wait { delay: 1s }\nservices:\n" + service("a", "retry: *wait")
        #expect(try Self.warnings(shared + service("b", "retry: { count: 1, delay: 1s }")).count == 1)
    }

    /// A key that is idle for one reason in one service, and for another in the next one, is idle.
    @Test func twoReasonsAreNoUse() throws {
        let text =
            "defaults: { cache: { ttl: 1h } }\nservices:\n" + service("a", "cache: { mode: none }")
            + service("b", "source: record", "recordings: { dir: r }")
        let said = try Self.warnings(text)
        #expect(said.count == 1 && said[0].hasPrefix("1:27: 'cache.ttl' does nothing, since "), "\(said)")
        #expect(try Self.warnings(text + service("c")).isEmpty)
    }

    /// `config show` writes every default, also of keys without their switch.
    @Test(arguments: [
        "services: []\n", "services:\n" + service("a"), "forward: { enabled: false }\nservices:\n" + service("a"),
        "services:\n" + service("a", "cache: { mode: library, revalidate: never }"),
        "services:\n"
            + service("a", "cache: { mode: none }", "endpoints: [{ name: e, path: /e, demo: { status: 204 } }]"),
        "cache: { disk: { path: /tmp/drydock-none } }\nservices:\n"
            + service(
                "a",
                "source: record",
                "recordings: { dir: r }",
                "max_queue: { length: 100 }",
                "max_concurrent: 1"
            ),
    ])
    func whatIsShownGivesNoWarning(_ text: String) throws {
        #expect(try Self.warnings(text) == [])
        let shown = try load(text).text(hidingSecrets: false)
        #expect(try Self.warnings(shown) == [], "\(shown)")
    }

    @Test func aDefaultIsSaidWhereItsSwitchIsMissing() throws {
        let said = try Self.warnings("services:\n" + service("a", "breaker: { window: 10s }"))
        #expect(
            said == [
                "5:24: 'breaker.window' does nothing, since 'breaker.failures' is none; set 'failures', or remove 'window'"
            ]
        )
        #expect(try Self.warnings("services:\n" + service("a", "breaker: { failures: none, window: 10s }")).isEmpty)
    }

    // MARK: - One by one

    @Test func memoryOfNothing() throws {
        #expect(try Self.warnings("cache: { memory: { size: 0B } }\n").count == 1)
        #expect(try Self.warnings("cache: { memory: { size: 1B } }\n").isEmpty)
    }

    @Test func aRouteWithoutATier() throws {
        let off = "services:\n" + service("a", "cache: { memory: false }")
        #expect(
            try Self.warnings(off) == [
                "5:22: 'cache.memory' leaves no tier, since the daemon has no disk tier; write mode: none, or remove 'memory'"
            ]
        )
        #expect(try Self.warnings("cache: { disk: { path: /tmp/drydock-none } }\n" + off).isEmpty)
    }

    @Test func aGroupThatNothingBegins() throws {
        #expect(try Self.warnings("groups: [{ name: g, at_start: true }]\n").count == 1)
        #expect(try Self.warnings("groups: [{ name: g, at_start: true, every: 1h }]\n").isEmpty)
    }

    @Test func statesThatAreReached() throws {
        func said(_ rules: String...) throws -> [String] {
            try Self.warnings("services:\n" + service("a", "demo: { rules: [\(rules.joined(separator: ", "))] }"))
        }
        let paid = "{ name: order, state: { scenario: shop, is: paid }, status: 204 }"
        let alone = try said(paid)
        #expect(
            alone == [
                "5:65: 'demo.rules[].state.is' is never reached, since no rules of the service lead 'shop' to 'paid'; add a rule with that 'then', correct the name, or remove 'is'"
            ]
        )
        let pay = "{ name: pay, state: { scenario: shop, then: paid }, status: 204 }"
        #expect(try said(pay, paid).isEmpty)
        #expect(try said(pay.replacing("shop", with: "other"), paid).count == 1, "a state is one of its scenario")
        // A state that leads only to itself is reached from nowhere, and what it leads to is not reached either.
        let itself = "{ name: x, state: { scenario: shop, is: x, then: paid }, status: 204 }"
        #expect(try said(itself, paid).count == 2)
    }

    @Test func endpointsOfAServiceShareItsStates() throws {
        let endpoints =
            "endpoints: [{ name: e, path: /e, demo: { rules: [{ name: r, state: { scenario: s, is: b }, status: 204 }] } }, "
            + "{ name: f, path: /f, demo: { rules: [{ name: r, state: { scenario: s, then: b }, status: 204 }] } }]"
        #expect(try Self.warnings("services:\n" + service("a", endpoints)).isEmpty)
    }

    @Test func aProfileOfFaults() throws {
        let said = try Self.warnings("fault_profiles: { p: [{ latency: 1s, retry_after: 3s }] }\n")
        #expect(said.count == 1 && said[0].hasPrefix("1:51: 'faults[].retry_after' does nothing"), "\(said)")
        #expect(try Self.warnings("fault_profiles: { p: [{ status: 503, retry_after: 3s, at: demo }] }\n").isEmpty)
    }

    @Test func faultsAtMoreThanDemo() throws {
        #expect(try Self.warnings("services:\n" + service("a", "faults: { latency: 1s, at: [demo, hit] }")).isEmpty)
    }

    @Test func goneIsEvictedByAReload() throws {
        let cache = "cache: { mode: library, revalidate: never, gone: evict }"
        #expect(try Self.warnings("services:\n" + service("a", cache)).isEmpty)
    }
}
