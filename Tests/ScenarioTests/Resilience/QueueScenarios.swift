// Who is next where fetches queue for max_concurrent.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Queue {
        private static func waiting(_ daemon: Daemon, _ name: String, _ count: Int) throws -> Bool {
            try eventually {
                let text = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
                return text.contains("drydock_service_waiting_by_class{class=\"\(name)\"} \(count)\n")
            }
        }

        private static func call(_ daemon: Daemon, _ target: String) throws -> RawClient {
            let client = try daemon.client()
            try client.request("GET", target, host: "127.0.0.1:\(daemon.port)")
            return client
        }

        @Test func aClientOvertakesAPrefetchAndRaisesTheOneThatItJoins() throws {
            let isOpen = Monitor(false)
            let origin = try ScriptedOrigin { request in
                if request.target == "/hold" { _ = isOpen.wait(120) { $0 } }
                return .answer(to: request, fields: [("Cache-Control", "max-age=60")], request.target)
            }
            let queue = "max_queue: { length: 6, wait: 5m }"
            let daemon = try Daemon(services(service("api", origin.url, "max_concurrent: 1", queue)))
            let holding = try Self.call(daemon, "/api/hold")
            #expect(origin.waitForRequests(1))
            let targets = ["/api/a", "/api/b", "/api/c"]
            #expect(try daemon.command(["prefetch", "--detach"] + targets).succeeded)
            #expect(try Self.waiting(daemon, "prefetch", 3))
            let joining = try Self.call(daemon, "/api/c")
            #expect(try Self.waiting(daemon, "client", 1) && Self.waiting(daemon, "prefetch", 2))
            let own = try Self.call(daemon, "/api/d")
            #expect(try Self.waiting(daemon, "client", 2))
            #expect(try daemon.command("status").output.contains("(1 fetch, 4 waiting)"))
            isOpen.update { $0 = true }
            #expect(try holding.readResponse().text == "/hold")
            #expect(try joining.readResponse().text == "/c")
            #expect(try own.readResponse().text == "/d")
            #expect(origin.waitForRequests(5))
            #expect(origin.log.map(\.target).prefix(3) == ["/hold", "/c", "/d"])
            #expect(Set(origin.log.map(\.target).suffix(2)) == ["/a", "/b"])
        }

        @Test func aClientTakesThePlaceOfAPrefetchInAFullQueue() throws {
            let isOpen = Monitor(false)
            let origin = try ScriptedOrigin { request in
                if request.target == "/hold" { _ = isOpen.wait(120) { $0 } }
                return .answer(to: request, request.target)
            }
            let queue = "max_queue: { length: 1, wait: 5m }"
            let daemon = try Daemon(services(service("api", origin.url, "max_concurrent: 1", queue)))
            let holding = try Self.call(daemon, "/api/hold")
            #expect(origin.waitForRequests(1))
            #expect(try daemon.command("prefetch", "--detach", "/api/a").succeeded)
            #expect(try Self.waiting(daemon, "prefetch", 1))
            let client = try Self.call(daemon, "/api/b")
            #expect(try Self.waiting(daemon, "client", 1) && Self.waiting(daemon, "prefetch", 0))
            #expect(try daemon.exchange("/api/c").status == 503)
            #expect(try eventually { try daemon.command("jobs", "show", "1").output.contains("max_queue.length") })
            isOpen.update { $0 = true }
            #expect(try holding.readResponse().text == "/hold" && client.readResponse().text == "/b")
            #expect(origin.requests() == 2)
        }

        /// What a program wants to have counted and limited by itself gets a service of its own.
        @Test func servicesOfOneOriginAreCountedApart() throws {
            let isOpen = Monitor(false)
            let origin = try ScriptedOrigin { request in
                if request.target == "/hold" { _ = isOpen.wait(120) { $0 } }
                return .answer(to: request, request.target)
            }
            let queue = "max_queue: { length: 6, wait: 5m }"
            let daemon = try Daemon(
                services(
                    service("one", origin.url, "max_concurrent: 1", queue),
                    service("two", origin.url, "max_concurrent: 1", queue)
                )
            )
            let holding = try Self.call(daemon, "/one/hold")
            #expect(origin.waitForRequests(1))
            let waiting = try Self.call(daemon, "/one/a")
            #expect(try Self.waiting(daemon, "client", 1))
            // The other one has its own limit, and its own figures.
            #expect(try daemon.exchange("/two/a").text == "/a")
            let status = try daemon.command("status").output.split(separator: "\n")
            let lines = ["one", "two"].map { name in status.first { $0.contains(" \(name) ") } ?? "" }
            #expect(lines[0].contains("(1 fetch, 1 waiting)") && !lines[1].contains("waiting"), "\(status)")
            isOpen.update { $0 = true }
            #expect(try holding.readResponse().text == "/hold" && waiting.readResponse().text == "/a")
        }
    }
}
