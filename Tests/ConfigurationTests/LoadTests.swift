// Reading files: several errors at once, duplicates, broken YAML, the environment, included files.

import EventLoop
import Foundation
import Testing

@testable import Configuration

@Suite struct LoadTests {
    @Test func anEmptyFileIsTheDefault() throws {
        for text in ["", "\n", "# nothing\n", "services:\n", "forward: {}\n", "{}\n"] {
            #expect(try load(text) == Configuration(), "\(text)")
        }
    }

    @Test func fourErrorsAreFour() {
        let text = """
            listen: 8080
            lisen: localhost:8080
            limits:
              head: 64KB
            \("services:")
            \(service("a", "cache: { ttl: 90 }"))
            """
        let found = errors(text)
        #expect(found.count == 4, "\(found)")
        #expect(found.map { $0.prefix { $0 != " " } } == ["1:9:", "2:1:", "4:9:", "9:19:"])
        #expect(found.first == "1:9: 'listen' an address needs a host; write localhost:8080")
        #expect(found.dropFirst().first == "2:1: unknown key 'lisen'; did you mean 'listen'?")
    }

    @Test func errorsOfBothStagesAreToldTogether() {
        let text = """
            limits: { head: 8KiB, field: 16KiB }
            services:
              - name: a
                match: { prefix: /a }
                base_url: service:b
              - name: c
                match: { prefix: /c }
                base_ur: http://127.0.0.1
            loops: many
            """
        let found = errors(text)
        #expect(found.map { $0.prefix { $0 != " " } } == ["1:30:", "5:15:", "8:5:", "9:8:"], "\(found)")
    }

    @Test func keysElsewhere() {
        expectError("ttl: 5s\n", "1:1", ["unknown key 'ttl'"])
        expectError("services:\n  - ttl: 5s\n", "2:5", ["did you mean 'cache.ttl'?"])
        expectError("zeppelin: none\n", "1:1", ["unknown key 'zeppelin'; known here: listen, tls"])
        expectError("services:\n  - http2: true\n", "2:5", ["unknown key 'http2'"])
        expectError(
            "defaults: { cache: { mode: rfc } }\n",
            "1:28",
            ["does not know 'rfc'", "standard, library, none"]
        )
        expectError("defaults: { cache: { revalidate: always } }\n", "1:34", ["does not know 'always'"])
        expectError("defaults: { name: x }\n", "1:13", ["unknown key 'name'"])
        expectError("<<: { listen: x }\n", "1:1", ["merge keys are not supported"])
    }

    @Test("Keys of the user's own, for anchors, at the top, in a service and in an endpoint")
    func ownKeys() throws {
        let folder = try Folder()
        try folder.write("more.yaml", "x-a: [1]\nservices:\n" + service("more", "x-b: { c: d }"))
        let text = """
            x-cache: &cache { ttl: 7m }
            x-nothing:
            include: [more.yaml]
            services:
            \(service("a", "x-why: because", "cache: *cache", "endpoints: [{ name: e, path: /e, x-y: [z] }]"))
            """
        let loaded = try folder.load(text)
        #expect(loaded.service(named: "a")?.cache.ttl == 420)
        #expect(loaded.services.map(\.name) == ["a", "more"])
        #expect(!loaded.shown().contains("x-"))
        expectError("x-a: 1\nx-a: 2\n", "2:1", ["duplicate key 'x-a'"])
        for (text, position) in [
            ("cache: { x-a: 1 }\n", "1:10"), ("defaults: { x-a: 1 }\n", "1:13"), ("X-a: 1\n", "1:1"),
            ("defaults: { headers: { x-api-key: 1 } }\n", "1:24"),
        ] {
            expectError(text, position, ["unknown key '"])
        }
        expectError("limits: { x-a: 1 }\n", "1:11", ["stand at the top of a file, in a service or in an endpoint"])
        // Where the user chooses the keys, such a key is one of them.
        let fields = try load("services:\n" + service("a", "headers: { set: { x-a: b } }"))
        #expect(fields.services.first?.headers.set == [HeaderValue(name: "x-a", value: "b")])
    }

    @Test func duplicates() {
        let text = """
            listen: localhost:1
            name: a
            "listen": localhost:2
            cache:
              memory: { size: 1MiB, size: 2MiB, objects: 7, size: 3MiB }
            'name': b
            loops: x
            """
        let found = errors(text)
        #expect(
            found.map { $0.prefix { $0 != ";" } } == [
                "3:1: duplicate key 'listen', first on line 1", "5:25: duplicate key 'size', first on line 5",
                "5:49: duplicate key 'size', first on line 5", "6:1: duplicate key 'name', first on line 2",
                "7:8: 'loops' takes a whole number or 'auto', not 'x'",
            ],
            "\(found)"
        )
    }

    @Test func fieldNamesAreTheSameInAnyCase() {
        let text = "defaults:\n  headers:\n    set: { X-A: 1, x-a: 2 }\n"
        expectError(text, "3:20", ["duplicate key 'x-a'"])
    }

    @Test(arguments: [
        ("listen: [localhost:80\nname: x\n", "2:5"), ("listen: \"x\nname: y\n", "3:1"), ("a: b: c\n", "1:5"),
        ("listen: localhost:80\n\tname: x\n", "2:1"), ("limits:\n  head: 1KiB\n idle: 5s\n", "3:2"), ("a: *b\n", "1:4"),
        ("name: a\u{7}b\n", "1:8"),
    ])
    func brokenYAML(_ text: String, _ position: String) {
        let found = errors(text).filter { !$0.contains("unknown key") }
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.hasPrefix(position + ": not YAML: ") == true, "\(found)")
    }

    @Test("only one document would be read: a second one is an error where it begins")
    func twoDocuments() {
        for (text, position) in [("---\nname: b\n---\nlisten: localhost:1\n", "3:1"), ("name: b\n--- # more\n", "2:1")]
        {
            let found = errors(text)
            #expect(found.count == 1 && found[0].hasPrefix(position + ": a second document begins here"), "\(found)")
            #expect(found[0].contains("name it under 'include'"), "\(found)")
        }
        #expect(errors("---\nlisten: localhost:80\n...\n").isEmpty)
    }

    @Test(
        "a tab that indents is named where it is",
        arguments: [
            ("listen: localhost:80\n\tname: x\n", "2:1"), ("limits:\n\thead: 1KiB\n", "2:1"),
            ("limits:\n  \thead: 1KiB\n", "2:3"), ("name: a\n\tb\n", "2:1"), ("name: |\n\tb\n", "2:1"),
            ("services:\n  - name: a\n\t  base_url: http://b\n", "3:1"),
        ]
    )
    func tabs(_ text: String, _ position: String) {
        let found = errors(text)
        #expect(found.count == 1, "\(found)")
        #expect(
            found.first == position + ": not YAML: a tab indents this line, and YAML takes none for that; use spaces",
            "\(found)"
        )
    }

    @Test func nestingAndAliasesAreBounded() {
        let deep = "listen: " + String(repeating: "[", count: 20_000)
        #expect(errors(deep).count == 1)
        var bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...9 {
            let items = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            bomb += "a\(level): &a\(level) [\(items)]\n"
        }
        #expect(errors(bomb).contains { $0.contains("more than 200,000 values") })
    }

    @Test(arguments: ["on", "On", "yes", "true", "TRUE"]) func wordsForTrue(_ word: String) throws {
        #expect(try load("demo: { enabled: \(word) }\nforward: { enabled: \(word) }").forward.enabled)
    }

    @Test(arguments: ["off", "no", "No", "false"]) func wordsForFalse(_ word: String) throws {
        #expect(try !load("forward: { enabled: \(word) }").forward.enabled)
    }

    @Test func offIsAWordWhereItIsNoBoolean() throws {
        #expect(try load("log: { access: off }").log.access == .off)
        #expect(try load("log: { access: \"off\" }").log.access == .off)
        #expect(try load("name: on").name == "on")
    }

    @Test func variables() throws {
        let environment = ["HOST": "127.0.0.1", "PORT": "81", "EMPTY": "", "N": "3", "ON": "yes", "SIZE": "5MiB"]
        let text = """
            listen: "${HOST}:${PORT}"
            name: "${NOPE:-x}${EMPTY:-y}${EMPTY}${NOPE:-${N}-${NOPE:-z}}$${N}"
            loops: ${N}
            forward: { enabled: "${ON}" }
            cache: { memory: { size: "${SIZE}" } }
            """
        expectError(text, "2:7", ["is not a token"], environment: environment)
        let loaded = try load(text.replacing("$${N}", with: ""), environment: environment)
        #expect(loaded.listen == [ListenPoint(.tcp(host: "127.0.0.1", port: 81))])
        #expect(loaded.name == "xy3-z")
        #expect(loaded.loops == 3)
        #expect(loaded.forward.enabled)
        #expect(loaded.cache.memory.size == 5 << 20)
        let literal = try load(
            "services:\n" + service("s", "headers: { set: { X: \"a$${N}b\" } }"),
            environment: environment
        )
        #expect(literal.services.first?.headers.set == [HeaderValue(name: "X", value: "a${N}b")])
    }

    @Test(arguments: [
        ("${TOKEN}", "the environment variable TOKEN is not set; set it, or write ${TOKEN:-default}"),
        ("${TOKEN", "'${' has no '}'"), ("${}", "does not name an environment variable"),
        ("${1A}", "does not name an environment variable"),
        ("${A-B}", "does not name an environment variable"), ("${A:-${TOKEN}}", "TOKEN is not set"),
    ])
    func badVariables(_ text: String, _ message: String) {
        expectError("shutdown: 5s\nname: \"\(text)\"\n", "2:7", [message])
    }

    @Test func aVariableIsNeverYAML() throws {
        let text = "services:\n" + service("s", "auth: { bearer: \"${T}\" }")
        let loaded = try load(text, environment: ["T": "a}b#c:d"])
        #expect(loaded.services.first?.auth == .bearer("a}b#c:d"))
        expectError(text, "5:21", ["bearer token"], environment: ["T": "a\nb"])
    }

    @Test func includedFiles() throws {
        let folder = try Folder()
        try folder.write("services/b.yaml", "services:\n" + service("b", "demo: { file: b.json }"))
        try folder.write("services/a.yaml", "services:\n" + service("a"))
        try folder.write("services/b.json", "{}")
        try folder.write("one.yaml", "services:\n" + service("one"))
        let text = "include: [\"services/*.yaml\", one.yaml, \"none/*.yaml\"]\nservices:\n" + service("main")
        let loaded = try folder.load(text)
        #expect(loaded.services.map(\.name) == ["main", "a", "b", "one"])
        #expect(loaded.services[2].demo.answer.answer.file == folder.path + "/services/b.json")
        let names = ["main.yaml", "services/a.yaml", "services/b.yaml", "one.yaml", "services/b.json"]
        #expect(loaded.files == names.map { folder.path + "/" + $0 })
        #expect(loaded.summary == "ok (4 services, 0 endpoints)")
    }

    @Test func errorsOfIncludedFiles() throws {
        let folder = try Folder()
        try folder.write("a.yaml", "services:\n" + service("a", "hots: preserve"))
        try folder.write("b.yaml", "listen: localhost:80\n")
        try folder.write("c.yaml", "services: [\n")
        let found = folder.errors("include: [a.yaml, b.yaml, c.yaml, d.yaml]\nloops: x\n")
        #expect(found.count == 5, "\(found)")
        #expect(found[0].hasPrefix("main.yaml:1:35: the file d.yaml does not exist"), "\(found)")
        #expect(found[1].hasPrefix("main.yaml:2:8: "), "\(found)")
        #expect(found[2].hasPrefix("a.yaml:5:5: unknown key 'hots'; did you mean 'hosts'?"), "\(found)")
        #expect(found[3].hasPrefix("b.yaml:1:1: 'listen' belongs in the main file"), "\(found)")
        #expect(found[4].hasPrefix("c.yaml:2:1: not YAML: "), "\(found)")
    }

    @Test func filesThatCannotBeRead() throws {
        let folder = try Folder()
        #expect(throws: ConfigurationErrors.self) {
            try Configuration.load(path: folder.path + "/none.yaml", environment: [:])
        }
        #expect(throws: ConfigurationErrors.self) { try Configuration.load(path: folder.path, environment: [:]) }
        let path = folder.path + "/latin.yaml"
        try Data(Array("name: x\nlog: gr".utf8) + [0xFC, 0x6E]).write(to: URL(filePath: path))
        do {
            _ = try Configuration.load(path: path, environment: [:])
            Issue.record("no error")
        } catch {
            #expect(error.errors.first?.description == "\(path):2:8: the file is not UTF-8 here; save it as UTF-8")
        }
    }
}

@Suite struct TruncationTests {
    /// However a file is cut or damaged, it loads or has errors inside it.
    @Test func everyCut() {
        let text = Array(InheritanceTests.text.unicodeScalars)
        func check(_ scalars: [Unicode.Scalar]) {
            var view = String.UnicodeScalarView()
            view.append(contentsOf: scalars)
            let lines = scalars.count { $0 == "\n" } + 2
            do { _ = try load(String(view)) } catch let failure as ConfigurationErrors {
                #expect(!failure.errors.isEmpty)
                #expect(failure.errors.allSatisfy { (1...lines).contains($0.position.line) && $0.position.column >= 1 })
            } catch { Issue.record("\(error)") }
        }
        for index in stride(from: 0, to: text.count, by: 11) {
            check(Array(text[..<index]))
            check(Array(text[..<index] + text[(index + 1)...]))
            for other in ["\"", "{", "]", ":", "\t", "&", "-", "\u{0}"] as [Unicode.Scalar] {
                check(text[..<index] + [other] + text[(index + 1)...])
            }
        }
    }
}
