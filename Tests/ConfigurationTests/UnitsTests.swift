// Durations, sizes, shares, ranges and the other scalars.

import EventLoop
import Policies
import Testing

@testable import Configuration

@Suite struct UnitsTests {
    @Test(
        arguments: [
            ("250ms", 250_000_000), ("5s", 5_000_000_000), ("2m", 120_000_000_000), ("2h", 7_200_000_000_000),
            ("7d", 604_800_000_000_000), ("0s", 0), ("36500d", 3_153_600_000_000_000_000),
        ] as [(String, UInt64)]
    )
    func duration(_ text: String, _ nanoseconds: UInt64) throws {
        #expect(try Units.duration(text) == nanoseconds)
    }

    @Test(arguments: [
        "", "s", "5", "-5s", "+5s", "1.5s", "5 s", "5S", "5us", "5w", "36501d", "18446744073709551616s",
        "99999999999999d", "0x5s", "٥s",
    ])
    func noDuration(_ text: String) {
        #expect(throws: ScalarProblem.self) { try Units.duration(text) }
    }

    @Test(arguments: [
        ("100B", 100), ("64KiB", 65536), ("256MiB", 268_435_456), ("10GiB", 10_737_418_240),
        ("1TiB", 1_099_511_627_776),
        ("0B", 0), ("8192TiB", 1 << 53),
    ])
    func size(_ text: String, _ bytes: Int) throws {
        #expect(try Units.size(text) == bytes)
    }

    @Test(arguments: [
        "", "KiB", "64", "64KB", "64kib", "64 KiB", "-1KiB", "1.5MiB", "8193TiB", "99999999999999999999B",
    ])
    func noSize(_ text: String) {
        #expect(throws: ScalarProblem.self) { try Units.size(text) }
    }

    @Test(arguments: [("0%", 0.0), ("5%", 0.05), ("0.5%", 0.005), ("100%", 1.0)])
    func share(_ text: String, _ value: Double) throws {
        #expect(abs(try Units.share(text) - value) < 1e-12)
    }

    @Test(arguments: ["", "%", "5", "0.05", "101%", "-1%", "nan%", "inf%", "1e1%", "0x1%"])
    func noShare(_ text: String) {
        #expect(throws: ScalarProblem.self) { try Units.share(text) }
    }

    @Test func latency() throws {
        #expect(try Units.latency("200ms..900ms") == 200_000_000...900_000_000)
        #expect(try Units.latency("200ms .. 1s") == 200_000_000...1_000_000_000)
        #expect(try Units.latency("5ms") == 5_000_000...5_000_000)
        for text in ["900ms..200ms", "..5s", "5s..", "1s...2s", "1s..2s..3s"] {
            #expect(throws: ScalarProblem.self) { try Units.latency(text) }
        }
    }

    @Test(arguments: [
        ("localhost:8080", ListenAddress.tcp(host: "localhost", port: 8080)),
        ("LocalHost:0", .tcp(host: "localhost", port: 0)), ("127.0.0.1:80", .tcp(host: "127.0.0.1", port: 80)),
        (":80", .tcp(host: "*", port: 80)), ("*:0", .tcp(host: "*", port: 0)),
        ("[::1]:8080", .tcp(host: "::1", port: 8080)), ("unix:/run/a.sock", .unix(path: "/run/a.sock")),
    ])
    func address(_ text: String, _ expected: ListenAddress) throws {
        #expect(try Addresses.listen(text) == expected)
    }

    @Test(arguments: [
        "8080", "localhost", "localhost:", "localhost:65536", "localhost:+80", "::1:8080", "[127.0.0.1]:80",
        "example.com:80",
        "unix:relative", "unix:", "unix:/folder/", "", ":", "*", "*:", "**:80", "0127.0.0.1:80",
    ])
    func noAddress(_ text: String) {
        #expect(throws: ScalarProblem.self) { try Addresses.listen(text) }
    }

    @Test func pathOfASocketIsBounded() {
        #expect(throws: ScalarProblem.self) { try Addresses.listen("unix:/" + String(repeating: "a", count: 107)) }
        #expect(throws: Never.self) { try Addresses.listen("unix:/" + String(repeating: "a", count: 106)) }
    }

    @Test func clients() throws {
        let rule = try Addresses.client("192.168.0.0/16")
        #expect(rule.contains([192, 168, 3, 4]))
        #expect(!rule.contains([192, 169, 3, 4]))
        #expect(rule.contains([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 168, 0, 1]))
        #expect(!rule.contains([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 168, 0, 1]))
        let odd = try Addresses.client("10.128.0.0/9")
        #expect(odd.contains([10, 255, 0, 1]))
        #expect(!odd.contains([10, 127, 0, 1]))
        let six = try Addresses.client("fd00::/8")
        #expect(six.contains([0xFD] + Array(repeating: 7, count: 15)))
        #expect(!six.contains([10, 0, 0, 1]))
        #expect(ClientRule.loopback.contains([127, 9, 9, 9]))
        #expect(ClientRule.loopback.contains(AddressBytes.loopback6))
        #expect(!ClientRule.loopback.contains([10, 0, 0, 1]))
        #expect(ClientRule.any.contains([8, 8, 8, 8]))
        #expect(try Addresses.client("0.0.0.0/0").contains([8, 8, 8, 8]))
        for text in ["192.168.1.0/16", "1.2.3.4/33", "1.2.3.4/", "loopbak", "1.2.3", "::/129", "", "1.2.3.4/-1"] {
            #expect(throws: ScalarProblem.self) { try Addresses.client(text) }
        }
    }

    @Test(arguments: [
        ("https://api.example.com", "https://api.example.com"),
        ("HTTPS://API.Example.com/v1/", "https://api.example.com/v1"),
        ("http://localhost:80/", "http://localhost"), ("https://localhost:80", "https://localhost:80"),
        ("http://[::1]:9000/x", "http://[::1]:9000/x"), ("http://127.0.0.1:9", "http://127.0.0.1:9"),
    ])
    func baseURL(_ text: String, _ expected: String) throws {
        guard case .origin(let url) = try Addresses.baseURL(text) else {
            Issue.record("\(text) is no origin")
            return
        }
        #expect(url.description == expected)
    }

    @Test(arguments: [
        "", "api.example.com", "ftp://a", "http://", "http://a?b", "http://a#b", "http://u:p@a", "http://a:0",
        "http://a:x", "http://a b",
        "http://-a", "http://a..b", "http://999.1.1.1", "service:", "service:a b", "http://[::1", "http://a\\b",
    ])
    func noBaseURL(_ text: String) {
        #expect(throws: ScalarProblem.self) { try Addresses.baseURL(text) }
    }

    @Test func endpointPaths() throws {
        let path = try Addresses.endpointPath("/users/:id/files/*")
        #expect(path.segments == [.literal("users"), .parameter("id"), .literal("files"), .rest])
        #expect(try Addresses.endpointPath("/").segments == [])
        #expect(try Addresses.endpointPath("/a/").segments == [.literal("a"), .literal("")])
        for text in [
            "", "users", "/a/*/b", "/a*", "/:", "/:a/:a", "/:a-b", "/a?b", "/a#b", "/a b", "/../a", "/./a", "/é",
        ] {
            #expect(throws: ScalarProblem.self) { try Addresses.endpointPath(text) }
        }
    }

    @Test(arguments: [
        (TextRule.word, "my-api.v1", true), (.word, "a b", false), (.word, "", false), (.token, "X-A", true),
        (.token, "X:A", false),
        (.fieldValue, "a b", true), (.fieldValue, "a\nb", false), (.fieldValue, " a", false), (.bearerToken, "", false),
        (.bearerToken, "abc", true), (.bearerToken, "a b", false), (.userName, "a:b", false), (.prefix, "/a/b", true),
        (.prefix, "a", false), (.prefix, "/a//b", false), (.prefix, "/a/../b", false), (.prefix, "/a?b", false),
        (.prefix, "/", true),
        (.hostName, "api.localhost", true), (.hostName, "api.localhost:80", false), (.hostName, "http://a", false),
        (.targetPattern, "*.example.com", true), (.targetPattern, "*", true), (.targetPattern, "a.*", false),
        (.targetPattern, "10.0.0.1", true),
        (.targetPattern, "a.test:8443", true), (.targetPattern, "*:80", true), (.targetPattern, "[fd00::1]:80", true),
        (.targetPattern, "a.test:0", false), (.targetPattern, "a.test:", false), (.targetPattern, "[fd00::1", false),
        (.targetPattern, "fd00::1", true), (.connectPattern, "*:443", true), (.connectPattern, "*:*", true),
        (.connectPattern, "*", false),
        (.connectPattern, "a:0", false), (.connectPattern, "a:65536", false),
        (.webOrigin, "http://localhost:3000", true),
        (.webOrigin, "http://localhost:3000/", false), (.webOrigin, "localhost", false), (.webOrigin, "*", true),
    ])
    func texts(_ rule: TextRule, _ text: String, _ good: Bool) {
        #expect(((try? rule.check(text)) != nil) == good, "\(rule) '\(text)'")
    }

    @Test(
        arguments: [
            ("0s", 0, "0s"), ("59s", 59, "59s"), ("120s", 120, "2m"), ("7200s", 7200, "2h"), ("90m", 5400, "90m"),
            ("48h", 172_800, "2d"), ("36500d", 3_153_600_000, "36500d"), ("3601s", 3601, "3601s"),
        ] as [(String, Int64, String)]
    )
    func lifetimesAsText(_ text: String, seconds: Int64, shortest: String) throws {
        #expect(try Lifetimes.seconds(text) == seconds)
        #expect(Lifetimes.text(seconds) == shortest)
        #expect(try Lifetimes.seconds(shortest) == seconds)
    }

    @Test(arguments: [
        ("2", "write 2s"), ("250ms", "whole number of seconds"), ("2 hours", "write 2h"), ("", "2h"), ("-2h", "2h"),
        ("36501d", "36500d"),
    ])
    func noLifetimes(_ text: String, part: String) {
        let error = #expect(throws: Lifetimes.Malformed.self) { try Lifetimes.seconds(text) }
        #expect(error?.description.contains(part) == true, "\(String(describing: error))")
    }
}

@Suite struct LearnedLatencyWordsTests {
    private static func learned(_ text: String) throws -> LearnedLatencyPolicy? {
        guard case .learned(let policy) = try Units.distribution(text).shape else { return nil }
        return policy
    }

    @Test(
        arguments: [
            ("learned", nil, 1), ("learned(api)", "api", 1), ("learned( api/user , x1.5 )", "api/user", 1.5),
            ("learned(x0.5)", nil, 0.5), ("learned(x2, x3)", "x2", 3),
        ] as [(String, String?, Double)]
    )
    func saysWhoseAndHowManyTimes(text: String, source: String?, times: Double) throws {
        #expect(try Self.learned(text) == LearnedLatencyPolicy(of: source, times: times))
    }

    @Test(arguments: [
        "learned()", "learned(a, b)", "learned(api, 2)", "learned(x2, api)", "learned(a/b/c)", "learned(",
    ])
    func refusesOthers(text: String) {
        #expect(throws: ScalarProblem.self) { try Units.distribution(text) }
    }

    @Test(arguments: ["x", "x0", "x1001", "1.5", "x-1", "x1e2", "xinf", "x.."])
    func factorsHaveBounds(text: String) { #expect(Units.factor(text) == nil) }
}
