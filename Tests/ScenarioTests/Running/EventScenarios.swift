// `drydock events` beside a real daemon: what becomes of calls, who listens late, who reads slowly, and who leaves.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Events {
        /// One line of the stream.
        private struct Event: Decodable {
            var time: String
            var event: String
            var state: String?
            var service: String?
            var endpoint: String?
            var call: Int?
            var calls: Int?
            var method: String?
            var url: String?
            var attempt: Int?
            var status: Int?
            var received: Int?
            var expected: Int?
            var sent: Int?
            var toSend: Int?
            var waits: Int?
            var outcome: String?
            var error: String?
            var reason: String?
            var count: Int?
        }

        /// The command as a process.
        private final class Listener: Sendable {
            let process: ChildProcess
            private let folder: TemporaryFolder

            /// Returns when the first states have come, so that every event from now on is heard.
            init(_ daemon: Daemon, _ arguments: String...) throws {
                folder = try TemporaryFolder()
                let before = try daemon.metric("drydock_event_listeners")
                process = try ChildProcess(
                    try Daemon.binary(),
                    ["events"] + arguments,
                    environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"],
                    output: folder.file("events"),
                    errors: folder.file("errors")
                )
                let listens = try eventually {
                    try daemon.metric("drydock_event_listeners") > before && !events.isEmpty
                }
                guard listens else { throw TestSupportError.failed("nobody listens: \(folder.text("errors"))") }
            }

            var errors: String { folder.text("errors") }

            var events: [Event] {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                // The last line may not be complete yet.
                return folder.text("events").split(separator: "\n").compactMap {
                    try? decoder.decode(Event.self, from: Data($0.utf8))
                }
            }

            /// But for progress and the states of services.
            var names: [String] {
                events.filter { $0.event != "progress" && !($0.event == "state" && $0.call == nil) }.map(\.event)
            }

            func hears(_ names: [String]) -> Bool { eventually { self.names == names } }
        }

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "fine") }
        }

        @Test func aCallFromItsBeginningToItsEnd() throws {
            let origin = try Self.origin()
            let more = "endpoints: [{ name: user, method: GET, path: /users/:id }]"
            let secret = "query: { key: { value: s3cret, secret: true } }"
            let daemon = try Daemon(services(service("api", origin.url, more, secret)))
            let listener = try Listener(daemon)
            let first = listener.events.map { "\($0.event) \($0.service ?? "") \($0.state ?? "") \($0.calls ?? -1)" }
            #expect(first == ["state api idle 0", "state forward idle 0"])
            #expect(try daemon.exchange("/api/users/1?token=abc&page=2").text == "fine")
            #expect(listener.hears(["busy", "started", "finished", "idle"]))
            // A hit is no call.
            #expect(try daemon.exchange("/api/users/1?token=abc&page=2").field("Cache-Status")?.contains("hit") == true)
            #expect(try daemon.exchange("/api/users/2").status == 200)
            let once = ["busy", "started", "finished", "idle"]
            #expect(listener.hears(once + once))
            let calls = listener.events.filter { $0.call != nil }
            #expect(calls.allSatisfy { $0.service == "api" && $0.endpoint == "user" && $0.method == "GET" })
            #expect(calls.first?.url == "\(origin.url)/users/1?token=***&page=2" && calls.first?.attempt == 1)
            let end = try #require(calls.first { $0.event == "finished" })
            #expect(end.status == 200 && end.received == 4 && end.expected == 4 && end.outcome == "done")
            #expect(calls.contains { $0.event == "progress" && $0.received == 4 })
            #expect(Set(calls.compactMap(\.call)) == [1, 2])
            listener.process.signal(SIGINT)
            #expect(listener.process.waitForEnd() == .exited(0))
            #expect(try eventually { try daemon.metric("drydock_event_listeners") == 0 })
        }

        @Test func threeRetriesAreFourStarts() throws {
            let origin = try ScriptedOrigin { .answer(503, to: $0, "no") }
            let retry = "retry: { count: 3, delay: 20ms, jitter: 0% }"
            let daemon = try Daemon(services(service("api", origin.url, retry)))
            let listener = try Listener(daemon)
            #expect(try daemon.exchange("/api/a").status == 503)
            let again = ["retrying", "started"]
            #expect(listener.hears(["busy", "started"] + again + again + again + ["finished", "idle"]))
            let events = listener.events
            #expect(events.filter { $0.event == "started" }.map(\.attempt) == [1, 2, 3, 4])
            #expect(events.filter { $0.event == "retrying" }.map(\.waits) == [20, 40, 80])
            #expect(events.filter { $0.event == "retrying" }.allSatisfy { $0.reason == "the status was 503" })
        }

        @Test func whatManyWaitForIsOneCall() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in OriginReply([.wait(gate)]).then(.answer("fine")) }
            let daemon = try Daemon(services(service("api", origin.url)))
            let listener = try Listener(daemon)
            let clients = try (0..<10).map { _ in
                let client = try daemon.client()
                try client.request("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
                return client
            }
            #expect(listener.hears(["busy", "started"]))
            gate.open()
            for client in clients { #expect(try client.readResponse().text == "fine") }
            #expect(eventually { listener.events.last?.event == "idle" })
            #expect(listener.events.count { $0.event == "started" } == origin.requests())
        }

        @Test func whatNoClientAsksFor() throws {
            let origin = try Self.origin()
            var settings = services(service("api", origin.url))
            settings.rest += "groups: [{ name: all, calls: [{ service: api, path: /b }] }]\n"
            let daemon = try Daemon(settings)
            let listener = try Listener(daemon)
            #expect(try daemon.command("prefetch", "/api/a").succeeded)
            #expect(try daemon.command("run", "all").succeeded)
            #expect(eventually { listener.events.count { $0.event == "finished" } == origin.requests() })
            let urls = listener.events.filter { $0.event == "finished" && $0.method == "GET" }.map(\.url)
            #expect(Set(urls) == ["\(origin.url)/a", "\(origin.url)/b"])
        }

        @Test func anUploadThatIsPassedOn() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "got \($0.bodyLength)") }
            let daemon = try Daemon(services(service("api", origin.url)))
            let listener = try Listener(daemon)
            let body = [UInt8](repeating: 97, count: 500_000)
            #expect(try daemon.exchange("POST", "/api/a", body: body).text == "got 500000")
            #expect(listener.hears(["busy", "started", "finished", "idle"]))
            let end = try #require(listener.events.first { $0.event == "finished" })
            #expect(end.sent == 500_000 && end.toSend == 500_000 && end.received == 10)
        }

        @Test func aParkedCall() throws {
            let origin = try Self.origin()
            origin.stop()
            let daemon = try Daemon(services(service("api", origin.url, "park: 10m")))
            let client = try daemon.client()
            try client.request("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
            #expect(try eventually { try daemon.metric("drydock_parked_calls") == 1 })
            // Whoever comes now hears that it waits.
            let listener = try Listener(daemon, "--service", "api")
            #expect(listener.events.first?.state == "busy")
            #expect(eventually { listener.events.contains { $0.state == "parked" && $0.attempt ?? 0 >= 1 } })
            try origin.restart()
            #expect(try client.readResponse().text == "fine")
            #expect(eventually { listener.events.last?.event == "idle" })
            let events = listener.events.filter { $0.call != nil }
            #expect(Set(events.map(\.call)).count == 1)
            let end = try #require(events.last)
            #expect(end.event == "finished" && end.status == 200 && end.attempt ?? 0 >= 2, "\(events)")
            // Each attempt but the last one ended with another wait.
            let names = events.map(\.event).filter { $0 != "progress" }
            #expect(names.first == "state" && names.suffix(2) == ["started", "finished"])
            for (name, next) in zip(names.dropFirst(), names.dropFirst(2)) {
                #expect(name == "started" ? ["parked", "finished"].contains(next) : next == "started")
            }
        }

        @Test func aCancelledFetch() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in OriginReply([.wait(gate), .cut]) }
            let daemon = try Daemon(services(service("api", origin.url)))
            let listener = try Listener(daemon)
            let client = try daemon.client()
            try client.request("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
            #expect(listener.hears(["busy", "started"]))
            #expect(try daemon.command("cancel", "--all").succeeded)
            #expect(try client.readResponse().status == 503)
            #expect(listener.hears(["busy", "started", "cancelled", "idle"]))
            #expect(listener.events.first { $0.event == "cancelled" }?.outcome == "cancelled")
            gate.open()
        }

        @Test("whoever listens late hears of calls that began before", arguments: ["standard", "none"])
        func late(_ mode: String) throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.text("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"), .wait(gate),
                    OriginReply.text("more"),
                ])
            }
            let secret = "query: { key: { value: s3cret, secret: true } }"
            let daemon = try Daemon(services(service("api", origin.url, "cache: { mode: \(mode) }", secret)))
            let client = try daemon.client()
            try client.request("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
            _ = try client.readHead()
            let listener = try Listener(daemon)
            #expect(listener.hears(["state"]))
            let state = try #require(listener.events.first { $0.call != nil })
            #expect(state.state == "started" && state.status == 200 && state.expected == 8)
            #expect(state.url == "\(origin.url)/a" && origin.log.first?.target == "/a?key=s3cret")
            #expect(listener.events.first { $0.service == "api" }?.calls == 1)
            gate.open()
            #expect(listener.hears(["state", "finished", "idle"]))
            #expect(listener.events.first { $0.event == "finished" }?.received == 8)
        }

        @Test func oneServiceOrEndpoint() throws {
            let origin = try Self.origin()
            let endpoints = "endpoints: [{ name: user, method: GET, path: /users/:id }]"
            let daemon = try Daemon(services(service("api", origin.url, endpoints), service("web", origin.url)))
            let api = try Listener(daemon, "--service", "api")
            let user = try Listener(daemon, "--service", "api", "--endpoint", "user")
            let once = ["busy", "started", "finished", "idle"]
            for path in ["/web/a", "/api/a"] { #expect(try daemon.exchange(path).status == 200) }
            // The next call begins when the service is idle again.
            #expect(api.hears(once))
            #expect(try daemon.exchange("/api/users/1").status == 200)
            #expect(api.hears(once + once))
            #expect(user.hears(["busy", "idle"] + once))
            #expect(api.events.allSatisfy { $0.service == "api" })
            for (arguments, wanted) in [
                (["--service", "apo"], "no service is called apo; did you mean 'api'?"),
                (["--endpoint", "users"], "no endpoint is called users; did you mean 'user'?"),
                (["--service", "web", "--endpoint", "user"], "no endpoint is called user; there are none"),
            ] {
                let refused = try daemon.command(["events"] + arguments)
                #expect(refused.end == .exited(1) && refused.errors.contains(wanted), "\(refused.report)")
            }
            let admin = try RawClient(unix: daemon.home.adminSocket)
            let answer = try admin.exchange("/v1/events?servce=api")
            #expect(answer.status == 400 && answer.text.contains("give service=NAME, endpoint=NAME, both or nothing"))
        }

        @Test func aReaderThatDoesNotRead() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "fine") }
            let daemon = try Daemon(services(service("api", origin.url, "cache: { mode: none }")))
            let lazy = try RawClient(unix: daemon.home.adminSocket)
            try lazy.request("GET", "/v1/events", host: "localhost")
            let head = try lazy.readHead()
            #expect(head.status == 200 && head.field("Content-Type") == "application/jsonl")
            func ask(_ number: Int) throws {
                _ = try Threads.run(8, seconds: 240) { _ in
                    let client = try daemon.client()
                    for _ in 0..<number / 8 {
                        let answer = try client.exchange("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
                        guard answer.text == "fine" else { throw TestSupportError.failed("\(answer)") }
                    }
                }
            }
            try ask(2000)
            let before = daemon.residentMemory
            try ask(10_000)
            // The lines of 10,000 calls are more than that.
            #expect(daemon.residentMemory < before + 4 << 20)
            #expect(try daemon.metric("drydock_events_lost_total") > 10_000)
            // It reads again: what waited, what it missed, and the states.
            var (lines, line): ([String], [UInt8]) = ([], [])
            // Forward mode is the last of the states.
            while !(lines.contains { $0.contains("\"event\":\"lost\"") } && lines.last?.contains("forward") == true) {
                repeat {
                    line = []
                    while line.last != 0x0A {
                        let end = try lazy.readBody(upTo: 1) { line += Array($0) }
                        guard end == nil else { throw TestSupportError.failed("the stream has ended") }
                    }
                    lines.append(String(decoding: line, as: UTF8.self))
                } while !lines[lines.count - 1].contains("forward")
            }
            let lost = try #require(lines.firstIndex { $0.contains("\"event\":\"lost\"") })
            #expect(lines[lost...].dropFirst().first?.contains("\"event\":\"state\",\"service\":\"api\"") == true)
            #expect(try daemon.exchange("/api/a").text == "fine")
        }

        @Test func aReaderThatIsKilled() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            let listener = try Listener(daemon)
            let other = try Listener(daemon)
            #expect(try daemon.metric("drydock_event_listeners") == 2)
            listener.process.signal(SIGKILL)
            #expect(try eventually { try daemon.metric("drydock_event_listeners") == 1 })
            #expect(try daemon.exchange("/api/a").text == "fine")
            #expect(other.hears(["busy", "started", "finished", "idle"]))
        }

        @Test func moreThanMayListen() throws {
            let daemon = try Daemon(services(service("api", "http://127.0.0.1:9")))
            let readers = try (0..<16).map { _ in
                let reader = try RawClient(unix: daemon.home.adminSocket)
                try reader.request("GET", "/v1/events", host: "localhost")
                #expect(try reader.readHead().status == 200)
                return reader
            }
            let refused = try daemon.command("events")
            #expect(refused.end == .exited(1) && refused.errors.contains("16 listen to events already"))
            readers[0].close()
            #expect(try eventually { try daemon.metric("drydock_event_listeners") == 15 })
            _ = try Listener(daemon)
        }

        @Test func theEndOfTheDaemonIsThatOfTheStream() throws {
            let origin = try Self.origin()
            let settings = services(service("api", origin.url))
            let daemon = try Daemon(settings)
            let listener = try Listener(daemon)
            // Nothing happens for longer than a connection may be idle: another one, which did something later, is ended.
            let idle = try RawClient(unix: daemon.home.adminSocket)
            #expect(try idle.exchange("/healthz").status == 200)
            for (reloads, limits) in [(1, "limits: { idle: 1s }\n"), (2, "")] {
                var other = settings
                other.rest += limits
                try daemon.rewrite(other)
                daemon.signal(SIGHUP)
                #expect(daemon.notify.wait(for: "READY=1", count: reloads + 1))
                if reloads == 1 { #expect(try idle.isClosedByServer()) }
            }
            #expect(try daemon.exchange("/api/a").text == "fine")
            #expect(listener.hears(["busy", "started", "finished", "idle"]))
            // One that does not read holds nothing up.
            let lazy = try RawClient(unix: daemon.home.adminSocket)
            try lazy.request("GET", "/v1/events", host: "localhost")
            #expect(try lazy.readHead().status == 200)
            #expect(daemon.end() == .exited(0))
            #expect(listener.process.waitForEnd() == .exited(0), "\(listener.errors)")
        }

        @Test func aDaemonThatIsKilledIsAFailure() throws {
            let daemon = try Daemon(services(service("api", "http://127.0.0.1:9")))
            let listener = try Listener(daemon)
            daemon.end(SIGKILL)
            #expect(listener.process.waitForEnd() == .exited(3))
            #expect(listener.errors.contains("went away"))
        }
    }
}
