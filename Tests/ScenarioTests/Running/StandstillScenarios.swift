// Three ways in which a daemon once came to stand still, each under load, and what happens where one does.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Standstills {
        /// Seconds of load: `DRYDOCK_SOAK_SECONDS`, 3 where it is not set.
        static let seconds = ProcessInfo.processInfo.environment["DRYDOCK_SOAK_SECONDS"].flatMap { Double($0) } ?? 3

        /// Loads the daemon with as many clients as there are, for ``seconds`` and for `requests` requests at least; in
        /// no case for longer than three minutes more. The daemon shares the clients out to its loops.
        /// - Parameter ask: one request over a connection of its own choice; the number is of the
        ///   client, then of the request.
        static func load(
            clients: Int,
            requests: Int,
            _ ask: @escaping @Sendable (_ client: Int, _ number: Int) throws -> Void
        ) throws {
            let done = Counter()
            let end = Date(timeIntervalSinceNow: seconds)
            let last = Date(timeIntervalSinceNow: seconds + 180)
            _ = try Threads.run(clients, seconds: seconds + 240) { client in
                var number = 0
                while Date() < last, Date() < end || done.value < requests {
                    try ask(client, number)
                    number += 1
                    done.add()
                }
            }
            #expect(done.value >= requests)
        }

        /// The daemon answers, stores on its disk, and ends.
        static func expectAlive(_ daemon: Daemon, _ path: String) throws {
            for number in 0..<4 {
                let first = try daemon.exchange("\(path)/alive/\(number)")
                #expect(first.status == 200 && first.end == .complete)
            }
            // The pool goes on: what it is told to write gets its turn, also where it is asked for over the admin API.
            let isStored = try eventually {
                let list = try daemon.command("list")
                return list.succeeded && (0..<4).allSatisfy { list.output.contains("/alive/\($0)") }
            }
            #expect(isStored)
            #expect(daemon.errors.contains("stood still") == false, "\(daemon.errors)")
            #expect(daemon.end(SIGTERM) == .exited(0))
        }

        static let fields = [("Cache-Control", "max-age=600"), ("ETag", "\"one\"")]

        @Test func anOriginThatCutsLongBodies() throws {
            let size = 4 << 20
            let origin = try ScriptedOrigin { request in
                if request.target.contains("/alive/") { return .answer(to: request, fields: Self.fields, "alive") }
                let length = [("Content-Length", "\(size)"), ("Cache-Control", "max-age=600")]
                return OriginReply([OriginReply.head(200, fields: length), .pattern(size - 1000, from: 0), .cut])
            }
            let daemon = try Daemon(services(service("cut", origin.url)))
            try Self.load(clients: 8, requests: 200) { client, number in
                let asker = try daemon.client()
                try asker.request("GET", "/cut/\(client)/\(number)")
                guard try asker.readHead().status == 200 else { return }
                var bytes = 0
                let end = try asker.readBody { bytes += $0.count }
                guard end != .complete else { throw TestSupportError.failed("\(bytes) bytes came as a whole") }
            }
            try Self.expectAlive(daemon, "/cut")
        }

        @Test func clientsThatReloadOneSmallResource() throws {
            let origin = try ScriptedOrigin { request in
                .resource(request, etag: "\"one\"", fields: Self.fields, "small")
            }
            let daemon = try Daemon(services(service("small", origin.url)))
            let connections = Monitor<[Int: RawClientBox]>([:])
            try Self.load(clients: 12, requests: 600) { client, _ in
                let asker = try connections.update { connections in
                    if let known = connections[client] { return known }
                    let made = RawClientBox(try daemon.client())
                    connections[client] = made
                    return made
                }
                let answer = try asker.client.exchange("/small/one", fields: [("Cache-Control", "no-cache")])
                guard answer.status == 200, answer.text == "small" else {
                    throw TestSupportError.failed("\(answer.head)")
                }
            }
            try Self.expectAlive(daemon, "/small")
        }

        @Test func clientsThatLeaveTheirFetches() throws {
            let size = 4 << 20
            let origin = try ScriptedOrigin { request in
                if request.target.contains("/alive/") { return .answer(to: request, fields: Self.fields, "alive") }
                let length = [("Content-Length", "\(size)"), ("Cache-Control", "max-age=600")]
                return OriginReply([
                    OriginReply.head(200, fields: length), .pattern(3 << 20, from: 0), .pause(milliseconds: 20),
                    .pattern(1 << 20, from: 3 << 20),
                ])
            }
            let daemon = try Daemon(services(service("left", origin.url, "cache: { on_client_abort: abort }")))
            try Self.load(clients: 8, requests: 300) { client, number in
                let asker = try daemon.client()
                try asker.request("GET", "/left/\(client)/\(number)")
                _ = try asker.readHead()
                _ = try asker.readBody(upTo: (number % 4) << 20) { _ in }
                asker.close()
            }
            try Self.expectAlive(daemon, "/left")
        }

        // MARK: - Where one stands still all the same

        @Test func aPoolThatStandsStillIsReportedAndDoesNotHoldUpTheEnd() throws {
            let origin = try ScriptedOrigin { request in .answer(to: request, fields: Self.fields, "fine") }
            var settings = services(service("api", origin.url))
            settings.rest += "\nshutdown: 1s\n"
            let daemon = try Daemon(
                settings,
                environment: ["WATCHDOG_USEC": "400000", "DRYDOCK_STANDSTILL_SECONDS": "2"]
            )
            #expect(try daemon.exchange("/api/a").status == 200)
            #expect(daemon.notify.wait(for: "WATCHDOG=1", count: 4))
            #expect(try daemon.metric("drydock_standing_still") == 0)
            // As threads are that wait for a disk which no longer answers.
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../Programs/hold-threads.py").standardized
            let (held, trouble) = ("\(daemon.home.folder.path)/held", "\(daemon.home.folder.path)/trouble")
            let holder = try ChildProcess(
                "python3",
                [script.path, "\(daemon.pid)", "files"],
                environment: ProcessInfo.processInfo.environment,
                output: held,
                errors: trouble
            )
            defer { holder.signal(SIGKILL) }
            #expect(eventually { readText(held).hasPrefix("watched") }, "\(readText(trouble))")
            // Each of these is to be stored: no thread gets further than to its file.
            for number in 0..<16 { #expect(try daemon.exchange("/api/\(number)").text == "fine") }
            #expect(eventually { readText(held).hasSuffix("held\n") }, "\(readText(trouble))")
            #expect(
                eventually {
                    daemon.errors.contains("\"error\",\"message\":\"the I/O pool 'files' has stood still")
                }
            )
            #expect(try daemon.metric("drydock_standing_still") == 1)
            #expect(try daemon.metric("drydock_standstills_total") == 1)
            // Nothing tells of the looks that bring no notice: in a second there are ten.
            let isSilent = eventually {
                let notices = daemon.notify.received.count { $0 == "WATCHDOG=1" }
                rest(1)
                return daemon.notify.received.count { $0 == "WATCHDOG=1" } == notices
            }
            #expect(isSilent)
            // What needs no file is answered still.
            #expect(try daemon.exchange("/api/a").text == "fine")
            let end = daemon.end(SIGTERM)
            #expect(end == .exited(1), "\(daemon.errors)")
            #expect(daemon.errors.contains("ended without having finished: the I/O pool 'files' stands still"))
        }
    }
}

/// A client that one thread at a time uses.
private final class RawClientBox: @unchecked Sendable {  // used by the thread alone whose number it is found by
    let client: RawClient
    init(_ client: RawClient) { self.client = client }
}
