// Each key of services and endpoints, set alone: what a short way answers is what the waiting path answers.

import Configuration
import Foundation
import KeySupport
import Logging
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

/// What a service with a key set is, besides: each lets another short way answer.
private enum Base: CaseIterable {
    /// Hits from memory, and answers that could not be stored.
    case stored
    case unstored
    case readyDemo
    case earlyDraw

    var playsDemo: Bool { self == .readyDemo || self == .earlyDraw }
}

/// A service in which a key was set.
private struct Case: Sendable {
    let key: String
    let base: Base
    var service: ServiceConfiguration

    var name: String { "'\(key)' over \(base)" }
}

/// What two daemons have to agree on, but for dates.
private struct Seen: Sendable {
    /// What clients got, and what the origin got, by case.
    var answers: [[String]] = []
    var asked: [[String]] = []
    var logged: [String] = []
    var counts: [UInt64] = []
    var direct = 0
    /// The hot path writes Content-Length before the draw of a demo answer.
    var ready = 0
}

@Suite(.timeLimit(.minutes(5))) struct FastWayTests {
    // MARK: - The services

    private static func document(_ one: KeyCase, _ base: Base) -> Tree {
        let way = one.way.map(\.name)
        var document = KeyDocuments.changed(one).without("prefetch").without("purge").without("groups")
        if !way.contains("allow"), !way.contains("deny") {
            document = document.without("allow", of: "services").without("deny", of: "services")
        }
        // Nothing hangs until its client leaves.
        if let place = way.firstIndex(of: "stalled_body") {
            document = document.setting((way[...place] + ["for"])[...], to: "7s")
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
        return keys.flatMap { one -> [Case] in
            let isOfDemo = one.way.contains { $0.name == "demo" }
            let found = Base.allCases.filter { $0.playsDemo || !isOfDemo }.compactMap { base in
                service(one, base, folder).map { Case(key: "\(one)", base: base, service: $0) }
            }
            #expect(found.contains { $0.base == (isOfDemo ? .readyDemo : .stored) }, "'\(one)' has no sample value")
            return found
        }
    }

    /// All in one configuration.
    private static func configuration(_ cases: [Case], _ origin: ScriptedOrigin, _ suffix: String) throws
        -> Configuration
    {
        var whole = try Configuration.load(text: "{ name: drydock }", file: "/nowhere/drydock.yaml", environment: [:])
        whole.services = cases.enumerated().map { number, one in
            var service = one.service
            service.name = "k\(number)"
            service.match = service.match.host == nil ? .prefix("/k\(number)") : .host("k\(number).localhost")
            if case .origin(let url)? = service.baseURL, url.scheme == "http", url.port == 9 {
                service.baseURL = .origin(
                    OriginURL(scheme: "http", host: "127.0.0.1", port: UInt16(origin.port), path: url.path)
                )
            }
            service.recording.folder? += suffix
            for place in service.endpoints.indices { service.endpoints[place].recording.folder? += suffix }
            return service
        }
        return whole
    }

    // MARK: - The requests

    private static func requests(_ one: Case, _ number: Int) -> [(
        method: String, target: String, fields: [(String, String)]
    )] {
        let error = "/error?\(number)"
        let targets =
            one.base.playsDemo
            ? ["/e", "/e", "/e", "/a"]
            : [
                "/a", "/a", "/a?q=1", "/a?q=1", "/private", "/private", "/private", error, error, error, "/moved",
                "/moved", "/missing", "/missing", "/e", "/e",
            ]
        let plain = targets.map { ("GET", $0, [(String, String)]()) }
        return plain + [("HEAD", targets[0], []), ("GET", targets[0], [("If-None-Match", "\"v\"")])]
    }

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

    private static func ask(_ cases: [Case], _ level: Logger.Level) async throws -> Seen {
        let origin = try origin()
        let log = KeptLines()
        let configuration = try configuration(cases, origin, "-\(level)")
        let seen = Monitor(Seen())
        try await HandlerHarness.run("name: drydock", daemonLog: ServerLog(log.logger(level))) { harness throws in
            try harness.reload(configuration)
            var client = try harness.client()
            for (number, one) in cases.enumerated() {
                let before = origin.log.count
                var answers: [String] = []
                let host = configuration.services[number].match.host
                let prefix = host == nil ? "/k\(number)" : ""
                for request in requests(one, number) {
                    // An answer that is spoilt may end a connection, or leave bytes in it.
                    if one.key.contains("fault") { client = try harness.client() }
                    do {
                        let got = try client.exchange(
                            request.method,
                            prefix + request.target,
                            host: host ?? "localhost",
                            fields: request.fields
                        )
                        let names = got.head.fields.map(\.name)
                        if let length = names.firstIndex(of: "Content-Length"),
                            let draw = names.firstIndex(of: "Drydock-Demo"), length < draw
                        {
                            seen.update { $0.ready += 1 }
                        }
                        let lines = got.head.fields.map { "\($0.name): \($0.value)" }.sorted()
                        answers +=
                            ["\(request.method) \(request.target)", "\(got.head.status) \(got.head.reason) \(got.end)"]
                            + still(lines, origin) + still([got.text], origin)
                        if got.end == .cut || got.field("Connection") == "close" { client = try harness.client() }
                    } catch let error as RawClientError {
                        answers += ["\(request.method) \(request.target)", "\(error)"]
                        client = try harness.client()
                    } catch TestSupportError.system(_, let code) where code == ECONNRESET || code == EPIPE {
                        answers += ["\(request.method) \(request.target)", "reset"]
                        client = try harness.client()
                    }
                    try harness.settle()
                }
                let asked = origin.log[before...].map { request in
                    let fields = still(request.fields.map { "\($0.name): \($0.value)" }.sorted(), origin)
                    return "\(request.method) \(request.target) \(fields)"
                }
                seen.update { seen in
                    seen.answers.append(answers)
                    seen.asked.append(asked)
                }
            }
            try harness.turn()
            let counts = try harness.counters()
            let direct = try harness.ask { $0.directRequests }
            seen.update { seen in
                seen.direct = direct
                seen.logged = still(log.lines.read { $0 }, origin).sorted()
                seen.counts = [Counter.cacheDemo, .cacheHit, .answers2xx, .answers5xx, .answers4xx].map { counts[$0] }
            }
        }
        return seen.read { $0 }
    }

    // MARK: - The tests

    @Test func `whatever key is set, each way gives the answer of the waiting path`() async throws {
        let folder = try KeyFolder()
        let cases = Self.cases(folder)
        // Who logs each decision answers nothing on a short way.
        async let waited = Self.ask(cases, .debug)
        let short = try await Self.ask(cases, .info)
        let waiting = try await waited
        for (number, one) in cases.enumerated() {
            #expect(short.answers[number] == waiting.answers[number], "\(one.name)")
            #expect(short.asked[number] == waiting.asked[number], "the origin, \(one.name)")
        }
        #expect(short.counts == waiting.counts)
        #expect(short.logged == waiting.logged && !short.logged.isEmpty)
        #expect(short.direct > 1000 && waiting.direct == 0)
        #expect(short.ready > waiting.ready + 500)
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
