// The daemon's own keys: listeners, forward mode, tiers, logs, restarts, the configuration of a URL.

import EventLoop
import Foundation
import Testing

@testable import Configuration

@Suite struct DaemonTests {
    @Test func listeners() throws {
        let loaded = try load("listen: [localhost:8080, \"unix:/run/a.sock\", \"[::1]:0\", \"[::1]:0\"]")
        #expect(loaded.listen.map(\.description) == ["localhost:8080", "unix:/run/a.sock", "[::1]:0", "[::1]:0"])
        #expect(loaded.listen.map(\.address.isLoopback) == [true, true, true, true])
        expectError("listen: [localhost:80, localhost:80]\n", "1:24", ["listed twice"])
        expectError("listen: [\"[::1]:80\", localhost:80]\n", "1:22", ["listed twice"])
        expectError("listen: []\n", "1:9", ["empty list"])
        expectError("clients: []\n", "1:10", ["no client could connect"])
    }

    @Test(
        "A port without a host is that port of all addresses",
        arguments: [":8080", "*:8080", "\":8080\"", "\"*:8080\""]
    )
    func allAddresses(_ text: String) throws {
        guard text != "*:8080" else {
            // To YAML that is an alias.
            return expectError("listen: *:8080\n", "1:10", ["not YAML"])
        }
        let loaded = try load("listen: \(text)\nclients: [any]")
        #expect(loaded.listen == [ListenPoint(.tcp(host: "*", port: 8080))] && loaded.listen[0].description == "*:8080")
        #expect(!loaded.listen[0].address.isLoopback && loaded.warnings.isEmpty)
        expectError("listen: \(text)\n", "1:9", ["forward mode on *:8080 would be open to the whole network"])
        expectError("listen: \(text)\nclients: [any]\nadmin: \":8081\"\n", "3:8", ["no password"])
    }

    @Test("What takes a port of an address that another takes is an error")
    func addressesThatMeet() throws {
        for (first, second, also) in [
            ("\":80\"", "localhost:80", ", by *:80 too"), ("0.0.0.0:80", "127.0.0.1:80", ", by 0.0.0.0:80 too"),
            ("\"[::]:80\"", "\"[::1]:80\"", ", by [::]:80 too"), ("\":80\"", "\"*:80\"", ""),
            ("\"[::1]:80\"", "\"[0::1]:80\"", ", by [::1]:80 too"), ("unix:/a", "unix:/a", ""),
        ] {
            let text = "clients: [any]\nlisten:\n- \(first)\n- \(second)\n"
            expectError(text, "4:3", ["is listed twice\(also); remove one"])
        }
        let apart = "clients: [any]\nlisten: [0.0.0.0:80, \"[::]:80\", \":81\", \"[::]:0\", \":0\", unix:/a, unix:/b]\n"
        #expect(try load(apart).listen.count == 7)
        expectError("clients: [any]\nlisten: \":80\"\nadmin: localhost:80\n", "3:8", ["its own address"])
    }

    @Test("Where other machines can connect and nobody there may, check says so")
    func onlyThisMachine() throws {
        let loaded = try load("name: x\nlisten: [localhost:80, \":81\"]\nforward: { enabled: false }\n")
        #expect(loaded.warnings.count == 1)
        let said = loaded.warnings.first?.description ?? ""
        #expect(said.hasPrefix("test.yaml:2:24: other machines can connect to *:81, and each gets a 403"), "\(said)")
        for text in ["listen: localhost:80", "listen: \":80\"\nclients: [loopback]", "listen: \":80\"\nclients: [any]"]
        {
            #expect(try load(text + "\nforward: { enabled: false }\n").warnings.isEmpty, "\(text)")
        }
    }

    @Test func whatAListLacksForAMistakeInItIsNoNews() {
        expectError("listen: [localhost]\n", "1:10", ["'localhost' has no port"])
        expectError("clients: [lopback]\n", "1:11", ["did you mean 'loopback'?"])
        expectError("admin: [localhost]\n", "1:9", ["'localhost' has no port"])
        expectError("forward: { cache: { methods: [PUT] } }\n", "1:31", ["does not know 'PUT'"])
        expectError("forward: { cache: { mode: library, compare: [size] } }\n", "1:46", ["does not know 'size'"])
    }

    @Test func forwardModeOnTheNetwork() throws {
        expectError(
            "name: x\nlisten: [localhost:80, 0.0.0.0:81]\n",
            "2:24",
            ["forward mode on 0.0.0.0:81", "clients:"]
        )
        expectError("listen: 192.168.0.1:80\nforward: { enabled: true }\n", "2:21", ["forward mode on 192.168.0.1:80"])
        #expect(try load("listen: 0.0.0.0:80\nforward: { enabled: false }").clients == [.loopback])
        let named = try load("listen: 0.0.0.0:80\nclients: [loopback, 10.0.0.0/8, any]")
        #expect(named.clients.map(\.description) == ["loopback", "10.0.0.0/8", "any"])
        #expect(try load("listen: 127.0.0.2:80").forward.enabled)
    }

    @Test func forward() throws {
        let loaded = try load(
            "forward: { allow: [Example.com, \"*.local\", \"::1\"], connect: { allow: [\"*:443\", \"git.local:22\"] } }"
        )
        #expect(loaded.forward.allow == ["example.com", "*.local", "[::1]"])
        #expect(loaded.forward.connectAllow == ["*:443", "git.local:22"])
        let ports = try load(
            #"forward: { allow: ["Example.com:8443", "*.Local:80", "*:8080", "[::1]:81", "a.test:*", "::1"] }"#
        )
        #expect(ports.forward.allow == ["example.com:8443", "*.local:80", "*:8080", "[::1]:81", "a.test:*", "[::1]"])
        expectError("forward: { allow: [\"a.test:\"] }\n", "1:20", ["'' is not a port"])
        expectError("forward: { allow: [\"a.test:65536\"] }\n", "1:20", ["'65536' is not a port"])
        expectError("forward: { allow: [\"http://a.test\"] }\n", "1:20", ["is not a port"])
        expectError("forward: { allow: [\"::1:x\"] }\n", "1:20", ["'x' is not a port"])
    }

    @Test func admin() throws {
        let short = try load("admin: unix:/run/a.sock").admin
        #expect(short == AdminConfiguration(listen: [.unix(path: "/run/a.sock")]))
        let list = try load("admin: [\"unix:/run/a.sock\", \"127.0.0.1:81\"]").admin
        #expect(list?.listen.count == 2)
        let long = try load("admin: { listen: unix:/run/a.sock, mode: 0600, group: staff }").admin
        #expect(long?.mode == 0o600)
        #expect(long?.group == "staff")
        expectError("admin: 0.0.0.0:81\n", "1:8", ["no password"])
        expectError("admin: localhost:8080\nlisten: localhost:8080\n", "1:8", ["its own address"])
        expectError("admin: { listen: localhost:81, group: x }\n", "1:39", ["'admin.group' is for unix sockets"])
        expectError("admin: []\n", "1:8", ["empty list"])
        #expect(try load("name: x").admin == nil)
        for text in ["admin: none", "admin: { listen: none }", "admin: \"${NONE}\""] {
            #expect(try load(text, environment: ["NONE": "none"]).admin == AdminConfiguration(listen: []), "\(text)")
        }
        expectError("admin: nnoe\n", "1:8", ["'nnoe' has no port", "or 'none'"])
        expectError("admin: { listen: none, mode: \"0600\" }\n", "1:30", ["is for unix sockets"])
        for mode in ["\"0999\"", "\"600000\"", "rw", "\"4755\""] {
            expectError("admin: { listen: unix:/a, mode: \(mode) }\n", "1:33", ["octal permissions"])
        }
    }

    @Test func tiers() throws {
        #expect(try load("").cache.disk == nil)
        #expect(try load("cache: { disk: {} }").cache.disk == DiskTierConfiguration(path: "/var/cache/drydock"))
        let folder = try Folder()
        try folder.write("file", "")
        let loaded = try folder.load("cache: { disk: { path: ./new/store, size: 1GiB, min_free: 0B } }")
        #expect(loaded.cache.disk?.path == folder.path + "/new/store")
        #expect(loaded.cache.disk?.maxObject == 1 << 30)
        let found = folder.errors("cache: { disk: { path: file/store } }")
        #expect(found.count == 1 && found[0].hasPrefix("main.yaml:1:24: 'cache.disk.path'"), "\(found)")
        expectError("cache: { disk: { path: ~/store } }\n", "1:24", ["write ${HOME}/store"])
        expectError(
            "cache: { memory: { size: 1MiB, max_object: 2MiB } }\n",
            "1:44",
            ["larger than 'cache.memory.size'"]
        )
    }

    @Test func boundsThatLeaveNothing() {
        expectError("limits: { head: 100B }\n", "1:17", ["too small"])
        expectError(
            "limits: { response_line: 100B }\n",
            "1:26",
            ["'limits.response_line' is too small for any response"]
        )
        expectError(
            "limits: { response_head: 4KiB, response_line: 8KiB }\n",
            "1:47",
            ["larger than 'limits.response_head'"]
        )
        expectError("limits: { head_timeout: 0s }\n", "1:25", ["is too short"])
        expectError("services:\n" + service("a", "timeout: { total: 0ms }"), "5:23", ["write none"])
    }

    @Test func logs() throws {
        let folder = try Folder()
        let loaded = try folder.load("log: { level: debug, access: ./access.log, format: combined }")
        #expect(loaded.log.access == .file(path: folder.path + "/access.log"))
        #expect(loaded.log.level == .debug)
        #expect(loaded.log.format == .combined)
        #expect(
            folder.errors("log: { access: ./none/access.log }").first?.hasPrefix("main.yaml:1:16: 'log.access'") == true
        )
        expectError("log: { access: stdot }\n", "1:16", ["did you mean 'stdout'?"])
        for (word, near) in [("on", "stdout"), ("none", "off"), ("access.log", "./access.log")] {
            expectError(
                "log: { access: \(word) }\n",
                "1:16",
                ["does not know '\(word)'; did you mean '\(near)'? It takes"]
            )
        }
        expectError("log: { access: file }\n", "1:16", ["does not know 'file'; it takes stdout"])
        expectError("log: { level: inf }\n", "1:15", ["did you mean 'info'?"])
    }

    @Test func metrics() throws {
        #expect(try load("name: x").metrics == [])
        #expect(try load("metrics: \":9090\"").metrics == [.tcp(host: "*", port: 9090)])
        let list = try load("metrics: [\"localhost:9090\", \"unix:/run/m.sock\"]\n")
        #expect(list.metrics == [.tcp(host: "localhost", port: 9090), .unix(path: "/run/m.sock")])
        #expect(list.warnings.isEmpty, "anybody may read them")
        let own = "needs an address of its own"
        expectError("listen: \"localhost:9090\"\nmetrics: localhost:9090\n", "2:10", ["also in 'listen'", own])
        expectError("admin: localhost:9090\nmetrics: localhost:9090\n", "2:10", ["also in 'admin'", own])
        expectError("metrics: [\":9090\", \"127.0.0.1:9090\"]\n", "1:20", ["also in this list", own])
        expectError("metrics: []\n", "1:10", ["empty list"])
        expectError("metrics: localhost\n", "1:10", ["'localhost' has no port"])
        let moved = try RestartDifference.all(in: load("metrics: localhost:2"), since: load("metrics: localhost:1"))
        #expect(moved.map(\.key) == ["metrics"] && moved.map(\.old) == ["localhost:1"])
        let gone = try RestartDifference.all(in: load("name: x"), since: load("name: x\nmetrics: localhost:1"))
        #expect(gone.map(\.new) == ["none"])
    }

    @Test func restarts() throws {
        let old = try load("listen: localhost:1\nadmin: unix:/a\ncache: { disk: { path: /x } }")
        let same = "listen: localhost:1\nadmin: unix:/a\ncache: { disk: { path: /x } }\nshutdown: 1s\nclients: [any]"
        #expect(try RestartDifference.all(in: load(same), since: old) == [])
        let new = try load(
            "name: n\nlisten: localhost:2\nloops: 3\ncache:\n  disk: { path: /y }\nadmin: { listen: unix:/b }"
        )
        let differences = RestartDifference.all(in: new, since: old)
        #expect(differences.map(\.key) == ["listen", "loops", "name", "cache.disk.path", "admin.listen"])
        #expect(
            differences.map { "\($0.position.line):\($0.position.column)" } == ["2:1", "3:1", "1:1", "5:11", "6:10"]
        )
        #expect(
            differences.first?.description
                == "test.yaml:2:1: 'listen' cannot change from localhost:1 to localhost:2 while the daemon runs; restart it, or restore the old value"
        )
        let gone = try RestartDifference.all(in: load("listen: localhost:1\n"), since: old)
        #expect(gone.map(\.key) == ["cache.disk.path", "admin.listen"])
        #expect(gone.map(\.gone) == ["cache", "admin"])
        #expect(gone.map(\.new) == ["none", "the default"])
        let sizes = try load(
            "listen: localhost:1\nadmin: unix:/a\ncache: { memory: { size: 9MiB }, disk: { path: /x } }"
        )
        #expect(
            RestartDifference.all(in: sizes, since: old).map(\.description) == [
                "test.yaml:3:20: 'cache.memory.size' cannot change from 256MiB to 9MiB while the daemon runs; restart it, or restore the old value"
            ]
        )
    }

    @Test func positionsDoNotMakeConfigurationsDiffer() throws {
        let text = "services:\n" + service("a")
        #expect(try load(text) == load("# comment\n\n" + text))
        #expect(try load(text) != load(text + "shutdown: 1s\n"))
    }

    @Test("The store's folder is empty or has the daemon's mark; whatever else is there is an error with its position")
    func foldersOfTheStore() throws {
        let folder = try Folder()
        let text = "cache:\n  disk: { path: ./c }\nservices:\n" + service()
        #expect(folder.errors(text).isEmpty, "there is none")
        try FileManager.default.createDirectory(atPath: folder.path + "/c", withIntermediateDirectories: true)
        #expect(folder.errors(text).isEmpty, "it is empty")
        try folder.write("c/HEAD", "ref: refs/heads/main\n")
        let found = folder.errors(text)
        #expect(found.count == 1 && found[0].hasPrefix("main.yaml:2:17: 'cache.disk.path' "), "\(found)")
        #expect(found[0].contains("'HEAD'") && found[0].contains("name an empty folder"), "\(found)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/c") == ["HEAD"])
        for (version, part) in [("1 shared", nil), ("1 private", "'private'"), ("9 shared", "format 9")] {
            try folder.write("c/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n")
            try folder.write("c/version", "drydock \(version)\n")
            let found = folder.errors(text)
            #expect(found.count == (part == nil ? 0 : 1) && found.allSatisfy { $0.contains(part ?? "") }, "\(found)")
        }
        try folder.write("drydock/serve/file", "mine")
        let environment = ["XDG_CACHE_HOME": folder.path]
        #expect(throws: ConfigurationErrors.self) { try URLConfiguration.make("http://a", environment: environment) }
    }

    /// The configuration of `serve http://a`, or of another URL, with options.
    private func configured(
        _ url: String = "http://a",
        in environment: [String: String] = [:],
        _ change: (inout URLOptions) -> Void
    ) throws(ConfigurationErrors) -> Configuration {
        var options = URLOptions()
        change(&options)
        return try URLConfiguration.make(url, options, environment: environment)
    }

    @Test("Each option of a URL is the key that a file has for it")
    func optionsOfAURL() throws {
        let folder = try Folder()
        try folder.write("ca.pem", "-----BEGIN CERTIFICATE-----")
        let environment = ["XDG_CACHE_HOME": folder.path]
        let made = try configured("https://a.test", in: environment) { options in
            options.name = "api"
            options.ttl = "10m"
            options.cors = ["http://localhost:3000", "*"]
            options.hosts = ["Drydock", "*.lan"]
            options.ca = folder.path + "/ca.pem"
            options.disk = false
            options.isOnTerminal = true
        }
        let text = """
            hosts: [drydock, "*.lan"]
            log: { format: text }
            services:
              - name: api
                match: { prefix: / }
                base_url: https://a.test
                cache: { ttl: 10m }
                cors: { origins: ["http://localhost:3000", "*"] }
                tls: { ca: \(folder.path)/ca.pem }
            """
        let file = try Configuration.load(text: text, file: folder.path + "/x.yaml", environment: [:])
        #expect(made.services == file.services)
        #expect(made.hosts == file.hosts && made.log == file.log && made.cache == file.cache)
        // Without them a URL is what it was.
        let plain = try configured("https://a.test", in: environment) { _ in }
        #expect(plain.log == LogConfiguration() && plain.cache.disk?.path == folder.path + "/drydock/serve")
        #expect(plain.hosts.isEmpty && plain.services.first?.name == "a.test")
    }

    @Test func ofAURL() throws {
        let environment = ["HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1"]
        let made = try URLConfiguration.make("https://api.example.com/v1/", environment: environment)
        let service = try #require(made.services.first)
        #expect(service.name == "api.example.com")
        #expect(service.match == .prefix("/"))
        #expect(service.baseURL == .origin(OriginURL(scheme: "https", host: "api.example.com", port: nil, path: "/v1")))
        #expect(service.cache == CacheConfiguration())
        // Beside the store of `make run`, and of a size that a laptop bears.
        #expect(made.cache.disk?.path == "/home/u/.cache/drydock/serve")
        #expect(made.cache.disk?.size == 1 << 30 && made.cache.disk?.maxObject == 1 << 30)
        #expect(made.admin == nil && made.forward.enabled && made.warnings.isEmpty)
        #expect(
            try URLConfiguration.make("http://a", environment: ["XDG_CACHE_HOME": "/c"]).cache.disk?.path
                == "/c/drydock/serve"
        )
        #expect(try URLConfiguration.make("http://[::1]:80", environment: [:]).services.first?.name == "--1")
        let open = try configured { $0.listen = [":80", "unix:/a"] }
        #expect(open.listen.map(\.address) == [.tcp(host: "*", port: 80), .unix(path: "/a")])
        #expect(!open.forward.enabled, "nobody gets an open proxy by an address")
        #expect(open.clients == [.loopback] && open.warnings.map(\.message).allSatisfy { $0.contains("--clients") })
        #expect(open.warnings.count == 1)
        let named = try configured { options in
            options.listen = ["*:80"]
            options.clients = ["10.0.0.0/8"]
        }
        #expect(named.clients.map(\.description) == ["10.0.0.0/8"] && named.warnings.isEmpty && !named.forward.enabled)
        let secure = try configured { $0.tls = true }
        #expect(secure.listen.map(\.description) == ["https://localhost:8443"] && secure.tls?.isLocal == true)
        let points = ["localhost:1", "any://localhost:2", "http://localhost:3", "unix:/a"]
        let several = try configured { options in
            options.listen = points
            options.tls = true
        }
        #expect(
            several.listen.map(\.description) == ["https://localhost:1", "any://localhost:2", "localhost:3", "unix:/a"]
        )
        for (listen, tls, part) in [
            (["any://localhost:1"], false, "any://localhost:1 speaks TLS; give --tls"),
            (["unix:/a", "http://localhost:1"], true, "--tls has no address"),
        ] {
            let error = #expect(throws: ConfigurationErrors.self) {
                try configured { options in
                    options.listen = listen
                    options.tls = tls
                }
            }
            #expect(error?.errors.first?.message.contains(part) == true, "\(String(describing: error))")
        }
        for (listen, clients, part) in [
            (["8080"], [], "'--listen' an address needs a host"),
            ([":80", "localhost:80"], [], "localhost:80 takes a port twice"),
            ([], ["everybody"], "'--clients' 'everybody' is not a client rule"),
        ] {
            let error = #expect(throws: ConfigurationErrors.self) {
                try configured { options in
                    options.listen = listen
                    options.clients = clients
                }
            }
            #expect(error?.errors.first?.message.contains(part) == true, "\(String(describing: error))")
        }
        for text in ["api.example.com", "ftp://a", "service:a", "https://", "drydock.yaml"] {
            #expect(throws: ConfigurationErrors.self) { try URLConfiguration.make(text, environment: [:]) }
        }
    }
}
