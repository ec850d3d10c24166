// Services, endpoints and demo answers: what conflicts, what is missing, what leads in a circle.

import Policies
import Testing

@testable import Configuration

@Suite struct ServiceTests {
    @Test func required() {
        expectError("services:\n  - match: { prefix: /a }\n", "2:5", ["needs 'name'"])
        expectError("services:\n  - name: a\n    base_url: http://a\n", "2:5", ["needs 'match'"])
        expectError("services:\n" + service("a", "endpoints:", "  - name: e"), "6:9", ["needs 'path'"])
        expectError("services:\n" + service("a", "auth: { basic: { user: u } }"), "5:20", ["needs 'password'"])
        expectError("admin: { mode: \"0600\" }\n", "1:8", ["needs 'listen'"])
    }

    @Test func matches() throws {
        expectError("services:\n  - { name: a, base_url: http://a, match: {} }\n", "2:43", ["'match' is empty"])
        let text = "services:\n  - { name: a, base_url: http://a, match: { host: API.localhost } }\n"
        #expect(try load(text).services.first?.match == .host("api.localhost"))
        #expect(
            try load("services:\n" + service("a").replacing("/a ", with: "/a/ ")).services.first?.match == .prefix("/a")
        )
    }

    @Test func conflicts() {
        let twice = "services:\n" + service("a") + service("b").replacing("/b", with: "/a/")
        expectError(twice, "6:22", ["the service 'a' matches the same requests"])
        let named = "services:\n" + service("a") + service("a").replacing("/a", with: "/b")
        expectError(named, "5:11", ["there is already a service 'a', at 2:11"])
        let endpoints = service(
            "a",
            "endpoints:",
            "  - { name: e, path: /u/:id }",
            "  - { name: f, path: /u/:name }",
            "  - { name: g, path: /u/:name, method: PUT }",
            "  - { name: e, path: /v }"
        )
        let found = errors("services:\n" + endpoints)
        #expect(found.count == 2, "\(found)")
        #expect(
            found.first?.hasPrefix("7:26: GET /u/:name matches the same requests as the endpoint 'e'") == true,
            "\(found)"
        )
        #expect(
            found.last?.hasPrefix("9:17: the service 'a' already has an endpoint 'e', on line 6") == true,
            "\(found)"
        )
    }

    @Test func methods() {
        expectError(
            "services:\n" + service("a", "endpoints: [{ name: e, path: /, method: get }]"),
            "5:45",
            ["write GET"]
        )
        expectError(
            "services:\n" + service("a", "endpoints: [{ name: e, path: /, method: CONNECT }]"),
            "5:45",
            ["forward mode"]
        )
    }

    @Test func servicesOfServices() throws {
        func chain(_ links: [(String, String)]) -> String {
            "services:\n"
                + links.map { service($0.0).replacing("http://127.0.0.1:9", with: $0.1) }.joined()
        }
        let good = try load(chain([("a", "service:b"), ("b", "service:c"), ("c", "http://c")]))
        #expect(good.services.first?.baseURL == .service("b"))
        expectError(
            chain([("a", "service:shpo"), ("shop", "http://b")]),
            "4:15",
            ["there is no service 'shpo'", "'service:shop'"]
        )
        expectError(chain([("a", "service:a")]), "4:15", ["cycle: a → a"])
        expectError(
            chain([("x", "service:a"), ("a", "service:b"), ("b", "service:c"), ("c", "service:a")]),
            "7:15",
            ["cycle: a → b → c → a"]
        )
    }

    @Test func credentials() {
        let both = service("a", "auth:", "  bearer: t", "  basic: { user: u, password: p }")
        expectError("services:\n" + both, "7:7", ["bearer or basic, not both"])
        expectError("services:\n" + service("a", "auth: {}"), "5:11", ["'auth' is empty"])
        let open = service("a", "auth: { bearer: t }", "cors: { origins: [\"*\"] }")
        expectError("services:\n" + open, "6:11", ["name the origins"])
        expectError("services:\n" + service("a", "headers: { set: { Host: x } }"), "5:23", ["must not contain 'Host'"])
        for name in ["Content-Length", "connection", "Transfer-Encoding"] {
            expectError(
                "services:\n" + service("a", "headers: { add: { \(name): x } }"),
                "5:23",
                ["must not contain '\(name)'"]
            )
        }
    }

    @Test func combinations() throws {
        expectError("services:\n" + service("a", "unlisted: 404"), "5:15", ["refuses every request"])
        #expect(
            try load("services:\n" + service("a", "unlisted: 404", "endpoints: [{ name: e, path: / }]")).services.first?
                .unlisted == .notFound
        )
        let folder = try Folder()
        try folder.write("a.pem", "x")
        let half = "services:\n" + service("a", "tls: { client_cert: a.pem }")
        #expect(folder.errors(half) == ["main.yaml:5:25: 'tls.client_cert' needs 'tls.client_key', too"])
        let whole = try folder.load(
            "services:\n" + service("a", "tls: { client_cert: a.pem, client_key: ./a.pem, ca: a.pem }")
        )
        #expect(whole.services.first?.tls.clientKey == folder.path + "/a.pem")
    }
}

@Suite struct DemoTests {
    private func demoOnly(_ demo: String, _ more: String...) -> String {
        (["services:", "  - name: d", "    match: { prefix: /d }", "    demo: \(demo)"] + more.map { "    " + $0 })
            .joined(separator: "\n") + "\n"
    }

    @Test func answersOfEndpoints() throws {
        let folder = try Folder()
        for name in ["user.json", "other.json", "error.json"] { try folder.write("demo/" + name, "{}") }
        let loaded = try folder.load(
            demoOnly(
                "{ enabled: on, files: demo, latency: 200ms..900ms, headers: { X-A: b }, random_seed: 42, failure: { chance: 20%, file: error.json } }",
                "endpoints:",
                "  - { name: user, path: /users/:id, demo: { status: 201, failure: { chance: 5%, status: 500 } } }",
                "  - { name: list, path: /users, demo: { file: other.json, latency: 1s } }",
                "  - { name: gone, path: /gone, demo: { status: 204 } }"
            )
        )
        let service = try #require(loaded.services.first)
        #expect(service.baseURL == nil)
        #expect(service.unlisted == .notFound)
        #expect(!service.demo.enabled)
        let user = try #require(service.endpoints.first).demo
        #expect(user.enabled && user.hasAnswer)
        #expect(user.answer.answer.file == folder.path + "/demo/user.json")
        #expect(user.answer.answer.status == 201)
        #expect(user.answer.latency == LatencyPolicy(.uniform(200_000_000...900_000_000)))
        #expect(user.answer.headers == [HeaderValue(name: "X-A", value: "b")])
        #expect(user.answer.randomSeed == 42)
        #expect(user.answer.failure?.chance == 0.05)
        #expect(user.answer.failure?.answer.status == 500)
        #expect(user.answer.failure?.answer.file == folder.path + "/demo/error.json")
        let list = service.endpoints[1].demo
        #expect(list.answer.answer.file == folder.path + "/demo/other.json")
        #expect(list.answer.latency == LatencyPolicy(.uniform(1_000_000_000...1_000_000_000)))
        #expect(list.answer.failure?.answer.status == 503)
        let gone = service.endpoints[2].demo
        #expect(gone.enabled && gone.answer.answer.file == nil)
        #expect(loaded.files.contains(folder.path + "/demo/user.json"))
    }

    @Test func oneDemoOverALiveService() throws {
        let folder = try Folder()
        try folder.write("user.json", "{}")
        let text =
            "services:\n"
            + service(
                "a",
                "endpoints:",
                "  - { name: u, path: /u, demo: { enabled: true, file: user.json } }",
                "  - { name: v, path: /v }"
            )
        let service = try #require(try folder.load(text).services.first)
        #expect(service.endpoints.map(\.demo.enabled) == [true, false])
        #expect(service.unlisted == .pass)
        #expect(!service.demo.hasAnswer)
    }

    @Test func missingFiles() throws {
        let folder = try Folder()
        try folder.write("demo/there.json", "{}")
        let endpoints = ["endpoints:", "  - name: user", "    path: /u"]
        func found(_ demo: String, _ more: [String]) -> [String] {
            let lines =
                ["services:", "  - name: d", "    match: { prefix: /d }", "    demo: \(demo)"]
                + more.map { "    " + $0 }
            return folder.errors(lines.joined(separator: "\n") + "\n").map { $0.replacing("main.yaml:", with: "") }
        }
        func expect(_ found: [String], _ position: String, _ part: String, location: SourceLocation = #_sourceLocation)
        {
            #expect(found.count == 1, "\(found)", sourceLocation: location)
            #expect(found.first?.hasPrefix(position + ": ") == true, "\(found)", sourceLocation: location)
            #expect(found.first?.contains(part) == true, "\(found)", sourceLocation: location)
        }
        expect(found("{ enabled: true, files: demo }", endpoints), "6:15", "demo/user.json does not exist")
        expect(found("{ enabled: true, files: dem }", endpoints), "4:35", "'demo.files'")
        expect(found("{ enabled: true }", endpoints), "4:22", "the endpoint 'user' is in demo mode, but has no file")
        expect(
            found("{ enabled: true, files: demo }", endpoints + ["    demo: { file: here.json }"]),
            "8:23",
            "demo/here.json does not exist"
        )
        expect(found("{ enabled: true, file: demo }", []), "4:34", "is a folder")
        expect(found("{ enabled: true }", []), "4:22", "nothing to answer with")
        expect(
            found("{ enabled: true, file: demo/there.json, failure: { chance: 1%, file: x.json } }", []),
            "4:80",
            "x.json does not exist"
        )
        expect(found("{ enabled: true, file: demo/there.json, status: 204 }", []), "4:34", "has no body")
        expect(found("{ file: demo/there.json }", []), "2:5", "has no 'base_url'")
        expect(
            found("{ enabled: true, files: demo }", ["endpoints: [{ name: there, path: / }]", "unlisted: pass"]),
            "6:15",
            "needs a 'base_url'"
        )
        #expect(found("{ enabled: true, files: demo }", ["endpoints: [{ name: there, path: / }]"]) == [])
        #expect(found("{ enabled: true, file: demo/there.json }", []) == [])
    }

    @Test func aMissingFileOfASleepingDemoIsAnErrorToo() {
        let text =
            "services:\n" + service("a", "endpoints: [{ name: u, path: /, demo: { enabled: false, file: none.json } }]")
        expectError(text, "5:67", ["none.json does not exist"])
    }

    @Test func theWholeDaemon() throws {
        let folder = try Folder()
        try folder.write("demo/u.json", "{}")
        let services =
            "services:\n"
            + service("a", "demo: { files: demo }", "endpoints: [{ name: u, path: /u }, { name: v, path: /v }]")
            + service("b") + service("c", "demo: { enabled: false, file: demo/u.json }")
            + service("e", "demo: { file: demo/u.json }")
        let on = try folder.load("demo: { enabled: true }\n" + services)
        #expect(on.services.map(\.demo.enabled) == [false, false, false, true])
        #expect(on.services.first?.endpoints.map(\.demo.enabled) == [true, false])
        let off = try folder.load(services)
        #expect(off.services.allSatisfy { !$0.demo.enabled && $0.endpoints.allSatisfy { !$0.demo.enabled } })
        #expect(off.services.map(\.demo.hasAnswer) == [false, false, true, true])
        #expect(off.services.first?.endpoints.map(\.demo.hasAnswer) == [true, false])
    }
}
