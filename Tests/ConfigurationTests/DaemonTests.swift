// The daemon's own keys: listeners, forward mode, tiers, logs, restarts, the configuration of a URL.

import Testing

@testable import Configuration

@Suite struct DaemonTests {
    @Test func listeners() throws {
        let loaded = try load("listen: [localhost:8080, \"unix:/run/a.sock\", \"[::1]:0\", \"[::1]:0\"]")
        #expect(loaded.listen.map(\.description) == ["localhost:8080", "unix:/run/a.sock", "[::1]:0", "[::1]:0"])
        #expect(loaded.listen.map(\.isLoopback) == [true, true, true, true])
        expectError("listen: [localhost:80, localhost:80]\n", "1:24", ["listed twice"])
        expectError("listen: [\"[::1]:80\", localhost:80]\n", "1:22", ["listed twice"])
        expectError("listen: []\n", "1:9", ["empty list"])
        expectError("clients: []\n", "1:10", ["nobody could connect"])
    }

    @Test func forwardModeOnTheNetwork() throws {
        expectError(
            "name: x\nlisten: [localhost:80, 0.0.0.0:80]\n",
            "2:24",
            ["forward mode on 0.0.0.0:80", "clients:"]
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
        expectError("admin: localhost:8080\nlisten: localhost:8080\n", "1:8", ["an address of its own"])
        expectError("admin: { listen: localhost:81, group: x }\n", "1:39", ["'admin.group' is for unix sockets"])
        expectError("admin: []\n", "1:8", ["empty list"])
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
        expectError("limits: { head_timeout: 0s }\n", "1:25", ["no time at all"])
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
        expectError("log: { level: inf }\n", "1:15", ["did you mean 'info'?"])
    }

    @Test func restarts() throws {
        let old = try load("listen: localhost:1\nadmin: unix:/a\ncache: { disk: { path: /x } }")
        let same = "listen: localhost:1\nadmin: unix:/a\ncache: { disk: { path: /x } }\nshutdown: 1s\nclients: [any]"
        #expect(try load(same).restartOnlyDifferences(from: old) == [])
        let new = try load(
            "name: n\nlisten: localhost:2\nloops: 3\ncache:\n  disk: { path: /y }\nadmin: { listen: unix:/b }"
        )
        let differences = new.restartOnlyDifferences(from: old)
        #expect(differences.map(\.key) == ["listen", "loops", "name", "cache.disk.path", "admin.listen"])
        #expect(differences.map { "\($0.place.line):\($0.place.column)" } == ["2:1", "3:1", "1:1", "5:11", "6:10"])
        #expect(
            differences.first?.description
                == "test.yaml:2:1: 'listen' cannot change from localhost:1 to localhost:2 while the daemon runs; restart it, or put the old value back"
        )
        let gone = try load("listen: localhost:1\n").restartOnlyDifferences(from: old)
        let keys = ["path", "size", "max_object", "min_free"].map { "cache.disk.\($0)" }
        #expect(gone.map(\.key) == keys + ["admin.listen", "admin.mode"])
        #expect(gone.allSatisfy { $0.new == "none" })
        let sizes = try load(
            "listen: localhost:1\nadmin: unix:/a\ncache: { memory: { size: 9MiB }, disk: { path: /x } }"
        )
        #expect(
            sizes.restartOnlyDifferences(from: old).map(\.description) == [
                "test.yaml:3:20: 'cache.memory.size' cannot change from 256MiB to 9MiB while the daemon runs; restart it, or put the old value back"
            ]
        )
    }

    @Test func placesDoNotMakeConfigurationsDiffer() throws {
        let text = "services:\n" + service("a")
        #expect(try load(text) == load("# comment\n\n" + text))
        #expect(try load(text) != load(text + "shutdown: 1s\n"))
    }

    @Test func ofAURL() throws {
        let environment = ["HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1"]
        let made = try Configuration.forURL("https://api.example.com/v1/", environment: environment)
        let service = try #require(made.services.first)
        #expect(service.name == "api.example.com")
        #expect(service.match == .prefix("/"))
        #expect(service.baseURL == .origin(OriginURL(scheme: "https", host: "api.example.com", port: nil, path: "/v1")))
        #expect(service.cache == CacheConfiguration())
        #expect(made.cache.disk?.path == "/home/u/.cache/drydock")
        #expect(made.admin?.listen == [.unix(path: "/run/user/1/drydock/admin.sock")])
        #expect(
            try Configuration.forURL("http://a", environment: ["XDG_CACHE_HOME": "/c"]).cache.disk?.path == "/c/drydock"
        )
        #expect(try Configuration.forURL("http://[::1]:80", environment: [:]).services.first?.name == "--1")
        for text in ["api.example.com", "ftp://a", "service:a", "https://", "drydock.yaml"] {
            #expect(throws: ConfigurationErrors.self) { try Configuration.forURL(text, environment: [:]) }
        }
    }
}
