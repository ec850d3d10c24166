// Bodies in the daemon's log: only where a route wants them, bounded, and without secrets.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct BodyLogs {
        /// The lines of the daemon's log with bodies.
        private static func lines(_ daemon: Daemon, _ count: Int) -> [[String: String]] {
            let lines = {
                daemon.errors.split(separator: "\n").compactMap { line -> [String: String]? in
                    let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
                    return object?["message"] == "bodies" ? object : nil
                }
            }
            _ = eventually { lines().count >= count }
            return lines()
        }

        @Test func onlyWhatARouteWantsIsLogged() throws {
            let origin = try ScriptedOrigin { request in
                let json = [("Content-Type", "application/json"), ("Cache-Control", "max-age=600")]
                return .answer(to: request, fields: json, "{\"id\":7,\"access_token\":\"t0p\",\"n\":\"é\"}")
            }
            let endpoints =
                "endpoints: [{ name: login, method: POST, path: /login, log: { bodies: 1KiB } }, "
                + "{ name: quiet, path: /quiet, log: { bodies: none } }, { name: short, path: /short, log: { bodies: 9B } }]"
            let daemon = try Daemon(
                services(
                    service("api", origin.url, "log: { bodies: 4KiB }", endpoints),
                    service("plain", origin.url)
                )
            )
            // On one connection, since its lines come in order.
            let client = try daemon.client()
            #expect(try client.exchange("/plain/a").status == 200)
            #expect(try client.exchange("/api/quiet").status == 200)
            let form = [("Content-Type", "application/x-www-form-urlencoded")]
            let body = Array("user=ann&password=t0p".utf8)
            #expect(try client.exchange("POST", "/api/login", fields: form, body: body).text.contains("t0p"))
            // A miss, then a hit.
            for _ in 0..<2 { #expect(try client.exchange("/api/a?token=t0p").status == 200) }
            #expect(try client.exchange("/api/short").status == 200)
            #expect(try client.exchange("HEAD", "/api/a?token=t0p").status == 200)
            let lines = Self.lines(daemon, 5)
            #expect(lines.count == 5, "\(lines)")
            guard lines.count == 5 else { return }
            #expect(lines[0]["endpoint"] == "login" && lines[0]["request"] == "user=ann&password=***")
            #expect(lines[0]["status"] == "200" && lines[0]["service"] == "api")
            let shown = "{\"id\":7,\"access_token\":\"***\",\"n\":\"é\"}"
            for line in lines[0...2] { #expect(line["response"] == shown) }
            #expect(lines[3]["response"] == "{\"id\":7,\"… (9 of 38 bytes)")
            #expect(lines[4]["method"] == "HEAD" && lines[4]["response"] == nil)
            #expect(!daemon.errors.contains("t0p"), "no secret is in the log")
        }

        @Test func aRefusedRequestIsLoggedWithoutAnAnswer() throws {
            let daemon = try Daemon(services(service("api", "http://127.0.0.1:1", "log: { bodies: 1KiB }")))
            let body = Array("{\"a\":1}".utf8)
            let json = [("Content-Type", "application/json")]
            #expect(try daemon.exchange("PUT", "/api/a", fields: json, body: body).status == 502)
            let lines = Self.lines(daemon, 1)
            #expect(lines.count == 1 && lines.first?["status"] == "502" && lines.first?["response"] == nil, "\(lines)")
        }
    }
}
