// Daemon, defaults, service, endpoint: the nearest wins, lists replace, maps merge.

import HTTPCaching
import Policies
import Testing
import Upstream

@testable import Configuration

@Suite struct InheritanceTests {
    static let text = """
        defaults:
          headers: { set: { User-Agent: app, X-A: one }, remove: [X-1, X-2] }
          query: { per_page: 50, tag: [a, b] }
          timeout: { connect: 1s, total: 60s }
          max_concurrent: 10
          auth: { bearer: token }
          cors: { origins: ["http://a.localhost"] }
          cache: { ttl: 2h, ttl_by_status: { 404: 1m, 410: 2m }, collapse: { wait: 7s } }
        services:
          - name: plain
            match: { prefix: /plain }
            base_url: https://plain.example.com
          - name: own
            match: { prefix: /own }
            base_url: https://own.example.com/v1/
            host: preserve
            headers: { set: { user-agent: mine }, add: { X-B: two }, remove: [] }
            query: { tag: c }
            timeout: { connect: none }
            max_concurrent: none
            auth: { basic: { user: u, password: p } }
            cors: { origins: [] }
            cache: { ttl: none, ttl_by_status: { 404: 5m }, revalidate: never }
            endpoints:
              - name: all
                path: /
              - name: user
                method: POST
                path: /users/:id
                headers: { remove: [X-9] }
                query: { tag: [d], more: "" }
                timeout: { idle: 3s }
                cache: { ttl: 5m, mode: none, collapse: { waiters: 3 } }
        """

    @Test func aPresetSetsTheKeysThatDoNotStandBesideIt() throws {
        let configuration = try load(
            """
            services:
              - name: mm
                match: { prefix: /mm }
                base_url: https://a.example.com
                retry: { preset: mm, count: 20 }
              - name: careful
                match: { prefix: /careful }
                base_url: https://b.example.com
                retry: { preset: mm, count: 3, methods: idempotent, budget: 10% }
              - name: docker
                match: { prefix: /docker }
                base_url: https://c.example.com
                retry: { preset: docker, count: 2 }
              - name: plain
                match: { prefix: /plain }
                base_url: https://d.example.com
                retry: { count: 2 }
            """
        )
        let retries = try ["mm", "careful", "docker", "plain"].map {
            try #require(configuration.service(named: $0)).retry
        }
        #expect(retries.map(\.methods) == [.any, .idempotent, .idempotent, .idempotent])
        #expect(retries.map(\.budget) == [nil, 0.1, nil, 0.2])
        #expect(retries.map(\.count) == [20, 3, 2, 2])
        #expect(retries.map(\.delay) == [.zero, .zero, .seconds(3), .milliseconds(500)])
    }

    @Test func serviceOfDefaults() throws {
        let service = try #require(try load(Self.text).service(named: "plain"))
        #expect(
            service.headers.set == [
                HeaderValue(name: "User-Agent", value: "app"), HeaderValue(name: "X-A", value: "one"),
            ]
        )
        #expect(service.headers.remove == ["X-1", "X-2"])
        #expect(
            service.query == [QueryRule(name: "per_page", values: ["50"]), QueryRule(name: "tag", values: ["a", "b"])]
        )
        #expect(service.timeout.connect == 1_000_000_000)
        #expect(service.timeout.firstByte == 30_000_000_000)
        #expect(service.timeout.total == 60_000_000_000)
        #expect(service.maxConcurrent == 10)
        #expect(service.auth == .bearer("token"))
        #expect(service.cors.origins == ["http://a.localhost"])
        #expect(service.cache.ttl == 7200)
        #expect(service.cache.ttlByStatus == [404: 60, 410: 120])
        #expect(service.cache.collapse.wait == 7_000_000_000)
        #expect(service.cache.collapse.waiters == 10_000)
        #expect(service.host == .baseURL)
    }

    @Test func nearestWins() throws {
        let service = try #require(try load(Self.text).service(named: "own"))
        #expect(
            service.headers.set == [
                HeaderValue(name: "user-agent", value: "mine"), HeaderValue(name: "X-A", value: "one"),
            ]
        )
        #expect(service.headers.add == [HeaderValue(name: "X-B", value: "two")])
        #expect(service.headers.remove == [])
        #expect(service.query == [QueryRule(name: "per_page", values: ["50"]), QueryRule(name: "tag", values: ["c"])])
        #expect(service.timeout.connect == nil)
        #expect(service.timeout.total == 60_000_000_000)
        #expect(service.maxConcurrent == nil)
        #expect(service.auth == .basic(user: "u", password: "p"))
        #expect(service.cors.origins == [])
        #expect(service.cache.ttl == nil)
        #expect(service.cache.ttlByStatus == [404: 300, 410: 120])
        #expect(service.cache.revalidate == .never)
        #expect(service.host == .preserve)
        #expect(service.baseURL == .origin(OriginURL(scheme: "https", host: "own.example.com", port: nil, path: "/v1")))
    }

    @Test func endpoints() throws {
        let service = try #require(try load(Self.text).service(named: "own"))
        let all = try #require(service.endpoints.first)
        #expect(all.method == "GET")
        #expect(all.headers == service.headers)
        #expect(all.query == service.query)
        #expect(all.timeout == service.timeout)
        #expect(all.cache == service.cache)
        let user = try #require(service.endpoints.last)
        #expect(user.method == "POST")
        #expect(user.path.description == "/users/:id")
        #expect(user.headers.set == service.headers.set)
        #expect(user.headers.remove == ["X-9"])
        #expect(user.query.map(\.name) == ["per_page", "tag", "more"])
        #expect(user.query.map(\.values) == [["50"], ["d"], [""]])
        #expect(user.timeout.idle == 3_000_000_000)
        #expect(user.timeout.connect == nil)
        #expect(user.cache.ttl == 300)
        #expect(user.cache.mode == .none)
        #expect(user.cache.revalidate == .never)
        #expect(user.cache.collapse.wait == 7_000_000_000)
        #expect(user.cache.collapse.waiters == 3)
    }

    @Test func forwardModeInheritsNothingOfTheServices() throws {
        let loaded = try load(Self.text + "\nforward: { cache: { stale_if_error: 1h } }")
        #expect(loaded.forward.cache.ttl == nil)
        #expect(loaded.forward.cache.staleIfError == 3600)
    }

    @Test func errorsInDefaultsAreToldOnce() {
        let text = "defaults:\n  timeot: { connect: 1s }\nservices:\n" + service("a") + service("b")
        expectError(text, "2:3", ["unknown key 'timeot'; did you mean 'timeout'?"])
        let file = "defaults:\n  tls: { ca: ./none.pem }\nservices:\n" + service("a") + service("b")
        expectError(file, "2:14", ["'tls.ca'", "none.pem does not exist"])
    }

    @Test func aDefaultThatFollows() throws {
        let loaded = try load("cache: { memory: { size: 1MiB } }\nlimits: { head: 4KiB, connections: 10 }")
        #expect(loaded.cache.memory.maxObject == 1 << 20)
        #expect(loaded.limits.field == 4096)
        #expect(loaded.limits.target == 4096)
        #expect(loaded.limits.perClient == 10)
    }
}
