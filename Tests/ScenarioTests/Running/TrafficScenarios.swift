// `drydock tail` and `drydock top` beside a daemon at work, on pipes and on a real terminal.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct Traffic {
        private static func start() throws -> (daemon: Daemon, origin: ScriptedOrigin) {
            let origin = try ScriptedOrigin { request in
                request.target.hasPrefix("/missing")
                    ? .answer(404, to: request, "none")
                    : .answer(to: request, fields: [("Cache-Control", "max-age=600")], "fine")
            }
            return (try Daemon(services(service("api", origin.url), service("shop", origin.url))), origin)
        }

        /// A stream of the admin API, whose head has come: all answers from now on are in it.
        private static func follow(_ daemon: Daemon, _ query: String = "") throws -> RawClient {
            let client = try RawClient(unix: daemon.home.adminSocket)
            try client.request("GET", "/v1/traffic?follow\(query)", host: "localhost")
            #expect(try client.readHead().status == 200)
            return client
        }

        private struct Enough: Error {}

        /// Reads until the text has so many lines.
        private static func lines(_ count: Int, of client: RawClient) throws -> [String] {
            var text = ""
            do {
                _ = try client.readBody { piece in
                    text += String(decoding: piece, as: UTF8.self)
                    if text.filter({ $0 == "\n" }).count >= count { throw Enough() }
                }
            } catch is Enough {}
            return text.split(separator: "\n").map(String.init)
        }

        @Test func answersOfBothPathsAreToldWithTheirSource() throws {
            let (daemon, origin) = try Self.start()
            let all = try Self.follow(daemon)
            let some = try Self.follow(daemon, "&status=4xx&service=api&as=text")
            let client = try daemon.client()
            for target in ["/api/a", "/api/a", "/api/missing", "/shop/missing", "/nowhere"] {
                _ = try client.exchange(target)
            }
            let told = try Self.lines(5, of: all)
            #expect(told.count == 5)
            let documents = try told.map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            #expect(
                documents.map { $0["target"] as? String } == [
                    "/api/a", "/api/a", "/api/missing", "/shop/missing", "/nowhere",
                ]
            )
            #expect(documents.map { $0["outcome"] as? String } == ["miss", "hit", "miss", "miss", "error"])
            #expect(documents.map { $0["tier"] as? String } == ["none", "memory", "none", "none", "none"])
            #expect(documents.map { $0["service"] as? String } == ["api", "api", "api", "shop", nil])
            #expect(documents[1]["cache_status"] as? String == "drydock; hit; ttl=600; detail=memory")
            let text = try Self.lines(1, of: some)
            #expect(text.count == 1 && text[0].contains(" GET /api/missing 404 4B "), "\(text)")
            origin.stop()
        }

        @Test func whoAsksForWhatIsNotThereIsTold() throws {
            let (daemon, origin) = try Self.start()
            for (option, value, words) in [
                ("--service", "none", "no service is called none; there are api, shop"),
                ("--status", "700", "give a status such as 404"),
                ("--outcome", "hot", "there is no outcome hot"),
            ] {
                let result = try daemon.command("tail", option, value)
                #expect(result.end == .exited(1) && result.errors.contains(words), "\(result.report)")
            }
            #expect(try daemon.command("top", "--interval", "0").end == .exited(2))
            #expect(try daemon.command("top", "--sort", "luck").end == .exited(2))
            origin.stop()
        }

        @Test func onePictureIsPrintedWithoutATerminal() throws {
            let (daemon, origin) = try Self.start()
            let client = try daemon.client()
            for _ in 0..<3 { _ = try client.exchange("/api/a") }
            let result = try daemon.command("top", "--once", "--interval", "0.2")
            #expect(result.succeeded && result.output.contains("SERVICE              REQ/S   HIT"), "\(result.errors)")
            #expect(result.output.contains("\napi ") && result.output.contains("\nshop "))
            let sums = try daemon.command("top", "--json").output
            #expect(
                sums.contains("\"name\":\"api\"") && sums.contains("\"hit\":2")
                    && sums.contains("\"origin_requests\":1")
            )
            let status = try daemon.command("status").output
            #expect(status.contains("answers        3, hits 2, misses 1 (66% needed no origin"), "\(status)")
            origin.stop()
        }

        @Test(arguments: [80, 200])
        func onATerminalKeysChangeThePicture(width: Int) throws {
            let (daemon, origin) = try Self.start()
            let socket = daemon.home.folder.file("tmux")
            func tmux(_ arguments: String...) throws -> ShellResult {
                try Shell.run("/usr/bin/env", ["tmux", "-S", socket] + arguments)
            }
            func screen() -> String { (try? tmux("capture-pane", "-p"))?.output ?? "" }
            let command = "\(try Daemon.binary()) top --interval 0.2 --admin unix:\(daemon.home.adminSocket)"
            let begun = try tmux("-f", "/dev/null", "new-session", "-d", "-x", "\(width)", "-y", "12", command)
            #expect(begun.succeeded, "\(begun.errors)")
            defer { _ = try? tmux("kill-server") }
            let client = try daemon.client()
            #expect(
                eventually {
                    _ = try? client.exchange("/api/a")
                    return screen().firstMatch(of: #/\napi +[1-9]/#) != nil
                },
                "\(screen())"
            )
            let lines = screen().split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.allSatisfy { $0.count <= width })
            #expect(screen().contains("BREAKER") == (width == 200))
            _ = try tmux("send-keys", "/", "s", "h", "Enter")
            #expect(eventually { screen().contains("only *sh*") && !screen().contains("\napi ") }, "\(screen())")
            _ = try tmux("send-keys", "n", "p")
            #expect(eventually { screen().contains("by name") && screen().contains("PAUSED") }, "\(screen())")
            _ = try tmux("send-keys", "p")
            #expect(daemon.end() == .exited(0))
            #expect(eventually { screen().contains("q quit  asked again, since no daemon at ") }, "\(screen())")
            try daemon.restart()
            #expect(eventually { screen().contains("only *sh*") && !screen().contains("asked again") }, "\(screen())")
            _ = try tmux("send-keys", "q")
            // The program was all of the session.
            #expect(eventually { (try? tmux("has-session"))?.succeeded != true })
            origin.stop()
        }
    }
}
