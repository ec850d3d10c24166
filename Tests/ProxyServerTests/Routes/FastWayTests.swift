// Each key of services and endpoints, set alone: what a short way answers is what the waiting path answers; and no row of the
// table that closes ways could be left out.

import Configuration
import EventLoop
import Foundation
import HTTPWire
import KeySupport
import Logging
import Plans
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

/// What a service with a key set is, besides: each lets another short way answer.
private enum Base: CaseIterable {
    /// Hits from memory, and answers that could not be stored.
    case stored
    /// Hits of what was stored before the key was set.
    case kept
    case unstored
    case readyDemo
    case earlyDraw

    var playsDemo: Bool { self == .readyDemo || self == .earlyDraw }

    /// Its requests may be answered by the hot path.
    var isOfHotPath: Bool { self == .stored || self == .kept || self == .readyDemo }

    /// The ways that are open to its requests, if no key closes them.
    var ways: FastWays {
        switch self {
        case .stored: [.stored, .uncacheable]
        case .kept: .stored
        case .unstored: .unstored
        case .readyDemo: .readyDemo
        case .earlyDraw: .earlyDraw
        }
    }
}

/// A service in which a key was set.
private struct Case: Sendable {
    /// Among all cases; its service is called by it.
    let number: Int
    let key: String
    let base: Base
    var service: ServiceConfiguration

    var name: String { "'\(key)' over \(base)" }
}

/// What two daemons have to agree on for a case, but for dates.
private struct Seen: Sendable, Equatable {
    /// What clients got, and what the origin got.
    var answers: [String] = []
    var asked: [String] = []
}

private struct Run: Sendable {
    /// By the number of the case.
    var seen: [Int: Seen] = [:]
    /// Of all cases: an answer that stalls is counted, and its body logged, when the next case has begun.
    var logged: [String] = []
    var counts: [String] = []
    var direct = 0
    /// The hot path writes Content-Length before the draw of a demo answer.
    var ready = 0
}

@Suite(.timeLimit(.minutes(15))) struct FastWayTests {
    // MARK: - The services

    private static func document(_ one: KeyCase, _ base: Base) -> Tree {
        let way = one.way.map(\.name)
        var document = KeyDocuments.changed(one).without("prefetch").without("purge").without("groups")
        if !way.contains("allow"), !way.contains("deny") {
            document = document.without("allow", of: "services").without("deny", of: "services")
        }
        // Nothing hangs until its client leaves.
        if let index = way.firstIndex(of: "stalled_body") {
            document = document.setting((way[...index] + ["for"])[...], to: "7s")
        }
        func set(_ key: String, _ value: String) {
            document = document.setting((["services"] + key.split(separator: ".").map(String.init))[...], to: value)
        }
        if base == .unstored { set("cache.mode", "none") }
        if base.playsDemo { set("demo.enabled", "true") }
        if base == .earlyDraw { set("demo.latency", "1ms") }
        // Moments where something waits, and hours where something ends.
        let isWaited = ["faults", "demo", "rate_limit"].contains(where: way.contains)
        guard isWaited, !way.contains("misbehave") else { return document }
        let unit = ["outage", "rate_limit"].contains(where: way.contains) ? "h" : "ms"
        document = document.setting(["fault_profiles", "quick"], to: "[{ status: 418 }]")
        let text = document.flow.replacing("repeat: 404", with: "repeat: 4, every: 1s")
            .replacing("profile: 3g", with: "profile: quick")
            .replacing(#/ (1s|7s|1h)\b/#) { found in
                found.output.0.hasSuffix("h") ? " 9\(unit)" : "\(found.output.0.dropLast())\(unit)"
            }
        return .leaf(text)
    }

    /// The document with an endpoint for all paths, where it may have one.
    private static func service(_ one: KeyCase, _ base: Base, _ folder: KeyFolder) -> ServiceConfiguration? {
        let document = document(one, base)
        if one.isOfEndpoint, case .map = document,
            let wide = try? folder.load(document.setting(["services", "endpoints", "path"], to: "/*"))
        {
            return wide.services.first
        }
        return (try? folder.load(document))?.services.first
    }

    private static func cases(_ folder: KeyFolder) -> [Case] {
        let all = KeyCase.all().filter { $0.way.first?.name == "services" && $0.key.kind.section == nil }
        #expect(all.count > 400)
        // What endpoints inherit is set in the service; in the endpoint itself, too, where all attempts are made.
        let known = Set(all.map(\.description))
        let keys = all.filter {
            Thoroughness.isFull || !known.contains("\($0)".replacing(".endpoints[]", with: "", maxReplacements: 1))
                || !$0.isOfEndpoint
        }
        var count = 0
        return keys.flatMap { one -> [Case] in
            let isOfDemo = one.way.contains { $0.name == "demo" }
            let found = Base.allCases.filter { $0.playsDemo || !isOfDemo }.compactMap { base in
                service(one, base, folder).map { service in
                    count += 1
                    return Case(number: count, key: "\(one)", base: base, service: service)
                }
            }
            #expect(found.contains { $0.base == (isOfDemo ? .readyDemo : .stored) }, "'\(one)' has no sample value")
            return found
        }
    }

    /// What is a matter of two keys, or of a value that is not the sample of its key.
    private static func pairs(_ folder: KeyFolder, from first: Int) throws -> [Case] {
        let origin = "base_url: \"http://127.0.0.1:9\""
        let inner = "{ name: inner, match: { prefix: /inner }, \(origin) }"
        let failing = "demo: { enabled: true, file: x.json, failure: { chance: 100%, status: 503 } }"
        let texts: [(String, Base, String)] = [
            ("base_url", .unstored, "base_url: \"service:inner\", cache: { mode: none }"),
            ("demo.failure", .readyDemo, "\(origin), \(failing), retry: { count: 1, delay: 1ms }"),
            (
                "demo.status", .readyDemo,
                "\(origin), demo: { enabled: true, file: x.json, status: 503 }, error: { map: { c: code } }"
            ),
            (
                "demo", .earlyDraw,
                "\(origin), demo: { enabled: true, file: x.json, latency: 1ms }, cache: { mode: none }"
            ),
            (
                "demo.needsBody", .earlyDraw,
                """
                \(origin), demo: { enabled: true, file: x.json, latency: 1ms, rules: [
                { name: none, when: { body: { text: { matches: "^$" } } }, file: y.json, status: 202 }] }
                """
            ),
            ("key.fields", .stored, "\(origin), cache: { key: { fields: [X-Tenant] } }"),
            ("from", .stored, "\(origin), from: [live]"),
            ("from", .kept, "\(origin), from: [live]"),
            ("from", .unstored, "\(origin), from: [demo], demo: { file: x.json }, cache: { mode: none }"),
        ]
        return try texts.enumerated().map { number, one in
            let text = "services: [{ name: s, match: { prefix: /s }, \(one.2) }, \(inner)]"
            let service = try #require(try folder.load(.leaf(text)).services.first)
            return Case(number: first + number, key: one.0, base: one.1, service: service)
        }
    }

    private static func all(_ folder: KeyFolder) throws -> [Case] {
        let cases = cases(folder)
        return cases + (try pairs(folder, from: cases.count + 1))
    }

    /// The host of a service; nil for one that is found by its prefix alone.
    private static func host(_ one: Case, _ reach: Reach) -> String? {
        if reach != .direct { return "k\(one.number).test" }
        return one.service.match.host == nil ? nil : "k\(one.number).localhost"
    }

    /// All in one configuration.
    /// - Parameters:
    ///   - reach: how clients reach them; through the proxy they are services by host.
    ///   - isBefore: without their keys, as they are called alone.
    private static func configuration(
        _ cases: [Case],
        _ origin: ScriptedOrigin,
        _ suffix: String,
        _ reach: Reach = .direct,
        isBefore: Bool = false
    ) throws -> Configuration {
        var whole = try Configuration.load(text: "{ name: drydock }", file: "/nowhere/drydock.yaml", environment: [:])
        let own = OriginURL(scheme: "http", host: "127.0.0.1", port: UInt16(origin.port), path: "")
        whole.services = cases.map { one in
            var service = one.service
            let match = host(one, reach).map { ServiceMatch.host($0) } ?? .prefix("/k\(one.number)")
            if isBefore { service = ServiceConfiguration(name: "", match: match, baseURL: service.baseURL) }
            service.name = "k\(one.number)"
            service.match = match
            if case .origin(let url)? = service.baseURL, url.scheme == "http", url.port == 9 {
                service.baseURL = .origin(
                    OriginURL(scheme: "http", host: "127.0.0.1", port: UInt16(origin.port), path: url.path)
                )
            }
            service.recording.folder? += suffix
            for index in service.endpoints.indices { service.endpoints[index].recording.folder? += suffix }
            return service
        }
        let asksInner = cases.contains { if case .service? = $0.service.baseURL { true } else { false } }
        if asksInner, !isBefore {
            whole.services.append(ServiceConfiguration(name: "inner", match: .prefix("/inner"), baseURL: .origin(own)))
        }
        return whole
    }

    // MARK: - The requests

    private typealias Asked = (method: String, target: String, fields: [(String, String)], body: [UInt8]?)

    private static func requests(_ one: Case) -> [Asked] {
        let error = "/error?\(one.number)"
        let targets: [String] =
            switch one.base {
            case .readyDemo, .earlyDraw: ["/e", "/e", "/e", "/a"]
            case .kept: kept
            case .stored, .unstored:
                [
                    "/a", "/a", "/a?q=1", "/a?q=1", "/private", "/private", "/private", error, error, error, "/moved",
                    "/moved", "/missing", "/missing", "/e", "/e",
                ]
            }
        var requests: [Asked] = targets.map { ("GET", $0, [], nil) }
        requests += [("HEAD", targets[0], [], nil), ("GET", targets[0], [("If-None-Match", "\"v\"")], nil)]
        // Where the field is a part of the key, nothing is stored for it.
        guard one.base.playsDemo else { return requests + [("GET", targets[0], [("X-Tenant", "t")], nil)] }
        return requests + [
            ("GET", "/e", [("Drydock-Override", "status=418")], nil), ("POST", "/e", [], Array(#"{"x":{"y":1}}"#.utf8)),
        ]
    }

    /// What is stored before a key is set.
    private static let kept = ["/a", "/a?q=1", "/e"]

    private static func origin() throws -> ScriptedOrigin {
        let failed = Monitor(Set<String>())
        return try ScriptedOrigin { request in
            let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
            func answer(_ status: Int, _ fields: (String, String)...) -> OriginReply {
                .answer(
                    status,
                    to: request,
                    fields: [date, ("Content-Type", "application/json")] + fields,
                    #"{"x":{"y":1}}"#
                )
            }
            let path = request.target.prefix { $0 != "?" }
            if path == "/private" { return answer(200, ("Cache-Control", "no-store"), ("Set-Cookie", "a=b")) }
            if path == "/moved" { return answer(302, ("Location", "/a"), ("Cache-Control", "no-store")) }
            if path == "/missing" { return answer(404, ("Cache-Control", "max-age=60000000")) }
            if path == "/error", failed.update({ $0.insert(request.target).inserted }) { return answer(503) }
            return answer(200, ("Cache-Control", "max-age=60000000000"), ("ETag", "\"v\""))
        }
    }

    /// Lines without what a later moment changes, and without what differs from run to run.
    private static func still(_ lines: [String], _ origin: ScriptedOrigin) -> [String] {
        lines.compactMap { line in
            // Who logs decisions names the request of an error.
            if line.hasPrefix("X-Request-Id: ") { return nil }
            if ["Date: ", "Age: ", "Retry-After: "].contains(where: line.hasPrefix) {
                return String(line.prefix { $0 != ":" })
            }
            return line.replacing("127.0.0.1:\(origin.port)", with: "ORIGIN")
                .replacing(#/\b(ttl|t|id)=-?[0-9a-f]+/#) { "\($0.output.1)" }
                .replacing(#/come back in [0-9]+ s/#, with: "come back later")
        }
    }

    /// A client of a service, and what the targets begin with that it asks for.
    private static func client(of one: Case, _ reach: Reach, _ harness: HandlerHarness) throws -> (RawClient, String) {
        switch (reach, host(one, reach)) {
        case (.direct, nil): (try harness.client(), "/k\(one.number)")
        case (.tunnelled, let host?): (try harness.client(inside: Authority(host: host)), "")
        case (.proxied, let host?): (try harness.client(), "http://\(host)")
        case (_, _): (try harness.client(), "")
        }
    }

    private static func ask(_ cases: [Case], _ level: Logger.Level, _ reach: Reach = .direct) async throws -> Run {
        let origin = try origin()
        let log = KeptLines()
        let configuration = try configuration(cases, origin, "-\(level)", reach)
        let run = Monitor(Run())
        try await HandlerHarness.run("name: drydock", daemonLog: ServerLog(log.logger(level))) { harness throws in
            let before = cases.filter { $0.base == .kept }
            if !before.isEmpty {
                try harness.reload(try Self.configuration(before, origin, "", reach, isBefore: true))
                for one in before {
                    let (client, prefix) = try Self.client(of: one, reach, harness)
                    for target in kept {
                        _ = try client.exchange("GET", prefix + target, host: host(one, reach) ?? "localhost")
                    }
                }
                try harness.settle()
            }
            try harness.reload(configuration)
            for one in cases {
                let before = origin.log.count
                var answers: [String] = []
                var (client, prefix) = try Self.client(of: one, reach, harness)
                for request in requests(one) {
                    // An answer that is spoilt may end a connection, or leave bytes in it.
                    if one.key.contains("fault") { (client, prefix) = try Self.client(of: one, reach, harness) }
                    do {
                        let got = try client.exchange(
                            request.method,
                            prefix + request.target,
                            host: host(one, reach) ?? "localhost",
                            fields: request.fields,
                            body: request.body
                        )
                        let names = got.head.fields.map(\.name)
                        if let length = names.firstIndex(of: "Content-Length"),
                            let draw = names.firstIndex(of: "Drydock-Demo"), length < draw
                        {
                            run.update { $0.ready += 1 }
                        }
                        let lines = got.head.fields.map { "\($0.name): \($0.value)" }.sorted()
                        answers +=
                            ["\(request.method) \(request.target)", "\(got.head.status) \(got.head.reason) \(got.end)"]
                            + still(lines, origin) + still([got.text], origin)
                        if got.end == .cut || got.field("Connection") == "close" {
                            (client, prefix) = try Self.client(of: one, reach, harness)
                        }
                    } catch let error as RawClientError {
                        // Which of the two its client sees hangs on how much of the content was read.
                        let isEither = request.body != nil && error == .closedWithoutAnswer
                        answers += ["\(request.method) \(request.target)", isEither ? "reset" : "\(error)"]
                        (client, prefix) = try Self.client(of: one, reach, harness)
                    } catch TestSupportError.system(_, let code) where code == ECONNRESET || code == EPIPE {
                        answers += ["\(request.method) \(request.target)", "reset"]
                        (client, prefix) = try Self.client(of: one, reach, harness)
                    }
                    try harness.settle()
                }
                let asked = origin.log[before...].map { request in
                    let fields = still(request.fields.map { "\($0.name): \($0.value)" }.sorted(), origin)
                    return "\(request.method) \(request.target) \(fields)"
                }
                run.update { $0.seen[one.number] = Seen(answers: answers, asked: asked) }
            }
            try harness.turn()
            let counts = try harness.counters()
            let direct = try harness.ask { $0.directRequests }
            run.update { run in
                run.direct = direct
                run.logged = still(log.lines.read { $0 }, origin).sorted()
                run.counts = counts.answers.kinds
            }
        }
        return run.read { $0 }
    }

    // MARK: - The tests

    @Test(arguments: [Reach.direct, .proxied, .tunnelled])
    func `whatever key is set, each way gives the answer of the waiting path`(reach: Reach) async throws {
        let folder = try KeyFolder()
        // What is asked through the proxy is answered by the hot path, and never forwarded by the direct way.
        let cases = try Self.all(folder).filter { reach == .direct || $0.base.isOfHotPath }
        // Who logs each decision answers nothing on a short way.
        async let waited = Self.ask(cases, .debug, reach)
        let short = try await Self.ask(cases, .info, reach)
        let waiting = try await waited
        #expect(short.seen.count == cases.count)
        for one in cases { #expect(short.seen[one.number] == waiting.seen[one.number], "\(one.name)") }
        #expect(short.counts == waiting.counts)
        #expect(short.logged.difference(from: waiting.logged).map { "\($0)" } == [] && !short.logged.isEmpty)
        #expect(waiting.direct == 0)
        // Nothing is forwarded from the read callback that names its origin.
        #expect(reach == .direct ? short.direct > 1000 : short.direct == 0)
        #expect(short.ready > waiting.ready + 500)
    }

    // MARK: - The rows of the table

    /// Rows that close ways on which nothing would be found, or what is found would be the same: each spares its requests
    /// the look. The key of what is stored has the items that a route adds to the query, and a line for each field of
    /// `key.fields`, which a target has not; the key of a service that asks the origin of a target begins with that origin; the direct way
    /// finds no source where a service has no origin; and an answer
    /// that is forwarded is judged by the policy of its route, which knows what is a success.
    private static let sparing: Set<String> = ["query", "key.fields", "asksTarget", "origin", "policy.success"]

    /// The table with a row that closes nothing.
    private struct Mutant {
        let feature: String
        let table: [RouteFeature]
        /// Some of the cases to which that opens a way.
        let cases: [Case]
    }

    /// The ways that are open to a case by a table.
    private static func openWays(_ cases: [Case], _ table: [RouteFeature], _ origin: ScriptedOrigin, _ pool: IOPool)
        throws -> [[FastWays]]
    {
        let configuration = try configuration(cases, origin, "-ways")
        return try RouteFeature.$table.withValue(table) {
            let seeds = SeedOpener(pool: pool) { _ in }
            let plan = try RoutePlan.compile(configuration, registry: PlanRegistry(), seeds: seeds)
            return plan.services.prefix(cases.count).map { ([$0.itself] + $0.endpoints).map(\.openWays) }
        }
    }

    /// A mutant for each row that closes a way.
    /// - Parameter most: how many cases it has of each base, those of two keys first.
    private static func mutants(_ cases: [Case], _ most: Int) throws -> [Mutant] {
        let (origin, pool) = (try origin(), try IOPool(threads: 1))
        defer { pool.stop() }
        let before = try openWays(cases, RouteFeature.all, origin, pool)
        return try RouteFeature.all.indices.filter { RouteFeature.all[$0].ways != .all }.map { index in
            var table = RouteFeature.all
            table[index].ways = .all
            let after = try openWays(cases, table, origin, pool)
            let opened = zip(cases, zip(before, after)).filter { $1.0 != $1.1 }.map(\.0).reversed()
            let chosen = Base.allCases.flatMap { base in opened.filter { $0.base == base }.prefix(most) }
            return Mutant(feature: table[index].name, table: table, cases: chosen)
        }
    }

    @Test func `each row of the table is needed`() async throws {
        let folder = try KeyFolder()
        let mutants = try Self.mutants(try Self.all(folder), Thoroughness.isFull ? 6 : 2)
        var asked: [Int: Case] = [:]
        for one in mutants.flatMap(\.cases) { asked[one.number] = one }
        let waiting = try await Self.ask(asked.values.sorted { $0.number < $1.number }, .debug)
        var unnoticed: Set<String> = []
        for mutant in mutants {
            let short = try await RouteFeature.$table.withValue(mutant.table) {
                try await Self.ask(mutant.cases, .info)
            }
            let differs = mutant.cases.contains { short.seen[$0.number] != waiting.seen[$0.number] }
            if !differs { unnoticed.insert(mutant.feature) }
        }
        #expect(unnoticed.subtracting(Self.sparing).sorted() == [])
    }
}

/// What was logged at `info` and above: the bodies.
private final class KeptLines: Sendable {
    let lines = Monitor([String]())

    func logger(_ level: Logger.Level) -> Logger { Logger(label: "test") { _ in Handler(log: self, logLevel: level) } }

    private struct Handler: LogHandler {
        let log: KeptLines
        var logLevel: Logger.Level
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            guard event.level >= .info else { return }
            let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            log.lines.update { $0.append("\(event.level) \(event.message)\(fields)") }
        }
    }
}

extension KeyCase {
    fileprivate var isOfEndpoint: Bool { way.contains { $0.name == "endpoints" } }
}

extension Tree {
    /// The same without what stands under a key.
    fileprivate func without(_ key: String) -> Tree {
        guard case .map(let pairs) = self else { return self }
        return .map(pairs.filter { $0.0 != key })
    }

    /// The same without what the items of a list have under a key.
    fileprivate func without(_ key: String, of list: String) -> Tree {
        guard case .map(let pairs) = self else { return self }
        return .map(
            pairs.map { pair in
                guard pair.0 == list, case .list(let items) = pair.1 else { return pair }
                return (pair.0, .list(items.map { $0.without(key) }))
            }
        )
    }
}
