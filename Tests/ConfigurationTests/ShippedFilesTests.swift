// The files under config/, the schema, and what `config default` and `config show` print.

import EventLoop
import Foundation
import KeySupport
import Policies
import TestSupport
import Testing

@testable import Configuration

@Suite struct ShippedFilesTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "config").path

    @Test func demo() throws {
        let loaded = try Configuration.load(
            path: Self.folder + "/demo.yaml",
            environment: ["DRYDOCK_HOME": "/home/u/d"]
        )
        #expect(loaded.summary == "ok (2 services, 4 endpoints)" && loaded.warnings.isEmpty)
        #expect(loaded.admin == nil, "commands find the user's own socket")
        #expect(loaded.cache.disk?.path == "/home/u/d/store")
        let demo = try #require(loaded.service(named: "demo"))
        #expect(demo.endpoints.allSatisfy { $0.demo.enabled })
        #expect(demo.endpoints.first?.demo.answer.latency == LatencyPolicy(.uniform(100_000_000...400_000_000)))
        #expect(demo.endpoints.first?.demo.answer.failure?.chance == 0.2)
        #expect(loaded.service(named: "shop")?.baseURL == .service("demo"))
        for environment in [[:], ["HOME": "/home/u"]] {
            #expect(throws: Never.self) {
                try Configuration.load(path: Self.folder + "/demo.yaml", environment: environment)
            }
        }
    }

    @Test func daemon() throws {
        let path = Self.folder + "/drydock.yaml"
        let loaded = try Configuration.load(path: path, environment: [:])
        var expected = Configuration()
        expected.admin = AdminConfiguration(listen: [.unix(path: "/run/drydock/admin.sock")])
        expected.cache.disk = DiskTierConfiguration(path: "/var/cache/drydock")
        #expect(loaded == expected && loaded.warnings.isEmpty)
    }

    @Test(arguments: [
        ("rest-api.yaml", "ok (1 service, 2 endpoints)"), ("flaky-api.yaml", "ok (1 service, 2 endpoints)"),
        ("login-group.yaml", "ok (1 service, 2 endpoints)"),
    ])
    func examples(_ name: String, _ summary: String) throws {
        let loaded = try Configuration.load(
            path: "\(Self.folder)/examples/\(name)",
            environment: ["REPORTS_PASSWORD": "p"]
        )
        #expect(loaded.summary == summary && loaded.warnings.isEmpty)
        #expect(try Configuration.load(text: loaded.text(hidingSecrets: false), file: name, environment: [:]) == loaded)
    }

    @Test func commentsOfTheDaemonAreTheDefaults() throws {
        // With its one-line settings uncommented, the file still says the same.
        let text = try String(contentsOfFile: Self.folder + "/drydock.yaml", encoding: .utf8)
        let inForce = try Configuration.load(text: text, file: "drydock.yaml", environment: [:])
        let names =
            ["loops", "name", "clients", "hosts", "shutdown", "limits", "offline", "clock"]
            + KeyTable.limits.keys.map { "  " + $0.name }
        var count = 0
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            guard line.hasPrefix("# "), names.contains(where: { line.dropFirst(2).hasPrefix($0 + ":") }) else {
                return String(line)
            }
            count += 1
            return String(line.dropFirst(2))
        }
        #expect(count == names.count)
        let uncommented = try Configuration.load(
            text: lines.joined(separator: "\n"),
            file: "drydock.yaml",
            environment: [:]
        )
        #expect(uncommented == inForce)
    }

    @Test func bothNameTheSchema() throws {
        for name in ["demo.yaml", "drydock.yaml"] {
            let text = try String(contentsOfFile: Self.folder + "/" + name, encoding: .utf8)
            #expect(text.hasPrefix("# yaml-language-server: $schema=drydock.schema.json\n"))
        }
    }

    @Test func schema() throws {
        let file = GoldenFile("../../../config/drydock.schema.json")
        let difference = try file.difference(from: ConfigurationSchema.text, filter: "ShippedFilesTests/schema")
        #expect(difference == nil, "\(difference ?? "")")
    }

    @Test func everyKeyIsInTheSchema() throws {
        let json = try JSONSerialization.jsonObject(with: Data(ConfigurationSchema.text.utf8))
        for one in KeyCase.all() {
            var object = json as? [String: Any]
            for step in one.way {
                object = (object?["properties"] as? [String: Any])?[step.name] as? [String: Any]
                // One rule stands in the first position, and a list of them in the last one.
                while let choices = object?["anyOf"] as? [[String: Any]] { object = choices.first }
                if step.isList, let items = object?["items"] { object = items as? [String: Any] }
            }
            #expect(object?["additionalProperties"] as? Bool == false, "\(one.description)")
            let patterns = object?["patternProperties"] as? [String: Any]
            #expect(patterns?.keys.sorted() == (one.section.hasOwnKeys ? ["^x-"] : nil), "\(one.description)")
            let key = (object?["properties"] as? [String: Any])?[one.key.name] as? [String: Any]
            #expect(key?["description"] as? String == one.key.doc, "\(one.description)")
        }
    }

    @Test func defaultIsTheDefault() throws {
        let text = Configuration.defaultText
        #expect(try Configuration.load(text: text, file: "default.yaml", environment: [:]) == Configuration())
        for one in KeyCase.all() where one.way.first?.name != "defaults" {
            #expect(text.contains(" \(one.key.name):") || text.contains("\n\(one.key.name):"), "\(one.description)")
            #expect(text.contains("# \(one.key.doc)"), "\(one.description)")
        }
    }

    @Test func shownReadsBack() throws {
        let folder = try Folder()
        for name in ["demo/u.json", "demo/error.json"] { try folder.write(name, "{}") }
        let demo =
            "\n"
            + service(
                "live",
                "demo: { files: demo, failure: { chance: 5%, file: error.json } }",
                "endpoints: [{ name: u, path: /u }]"
            )
            + "  - name: d\n    match: { host: d.localhost }\n    demo: { enabled: on, files: demo, latency: 1ms..2ms }\n    endpoints: [{ name: u, path: /* }]\n"
        let more =
            "\ndemo: { enabled: true }\ncache: { memory: { size: 1MiB } }\nlimits: { head: 4KiB }\nadmin: \"unix:/run/a:b.sock\"\n"
        for text in [
            InheritanceTests.text + demo + more, "",
            "cache: { disk: {} }\nname: \"on\"\nloops: 2\nlog: { access: off }\n",
        ] {
            let loaded = try folder.load(text)
            let shown = loaded.text(hidingSecrets: false)
            let again = try folder.load(shown)
            #expect(again == loaded, "\(shown)")
        }
    }

    @Test func mappingsAreShownAsTheyAreMeant() throws {
        let rule =
            "{ token: body.token, \"a b\": 'x\\.y', n: { from: n, default: 5 }, t: { from: t, default: \"5\" }, l: { from: l, default: [] }, m: { from: m, missing: omit } }"
        let text =
            "services:\n"
            + service(
                "a",
                "response: { map: \(rule) }",
                "endpoints: [{ name: e, path: /e }, { name: f, path: /f, response: { map: none } }]"
            )
            + service("b", "endpoints: [{ name: g, path: /g, response: { map: data.items } }]")
        let loaded = try load(text)
        let shown = loaded.shown()
        let maps = shown.split(separator: "\n").filter { $0.contains(" map: ") }.map { $0.drop { $0 == " " } }
        // Of each service and then of its endpoints, keys of services standing behind them.
        #expect(
            maps.sorted()
                == [
                    "map: \(rule.replacing("'x\\.y'", with: #""x\\.y""#))",
                    "map: \(rule.replacing("'x\\.y'", with: #""x\\.y""#))",
                    "map: data.items", "map: none", "map: none",
                ].sorted(),
            "\(shown)"
        )
        #expect(try load(shown) == loaded)
        #expect(try load(shown.replacing("default: \"5\"", with: "default: 5")) != loaded)
        // What comes from the environment is hidden, whatever it is.
        let hidden = try load(
            "services:\n" + service("a", "response: { map: { a: { from: b, default: \"${E}\" } } }"),
            environment: ["E": "s3cret"]
        )
        #expect(!hidden.shown().contains("s3cret"))
    }

    @Test func secretsAreHidden() throws {
        let text =
            "services:\n"
            + service(
                "a",
                "auth: { bearer: s3cret1 }",
                "headers: { set: { X-Api-Key: s3cret2, X-Plain: seen, X-Env: \"${E}\" } }"
            )
            + service(
                "b",
                "auth: { basic: { user: u, password: s3cret4 } }",
                "query: { access_token: [s3cret5], page: 1 }"
            )
        let loaded = try load(text, environment: ["E": "s3cret3"])
        #expect(loaded.text(hidingSecrets: false).split(separator: "s3cret").count == 6)
        let shown = loaded.shown()
        #expect(!shown.contains("s3cret"), "\(shown)")
        #expect(shown.contains("X-Plain: seen"))
        #expect(shown.contains("page: 1"))
        #expect(shown.contains("bearer: \"(hidden)\""))
    }
}
