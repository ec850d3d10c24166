// Offline: what is stored answers whatever its age, everything else is 504, and no connection is opened.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Offline {
        static let fields = [("Cache-Control", "max-age=60")]

        private func settings(_ origin: ScriptedOrigin, _ rest: String) -> DaemonSettings {
            var settings = services(service("api", origin.url))
            settings.rest += "forward: { allow: [127.0.0.1], connect: { allow: [\"127.0.0.1:*\"] } }\n"
            settings.rest += "clock: { movable: true }\n" + rest
            return settings
        }

        private func expectRefused(_ answer: RawResponse, at location: SourceLocation = #_sourceLocation) {
            expectProblem(answer, 504, at: location)
            #expect((answer.problem?["detail"] as? String)?.contains("offline") == true, sourceLocation: location)
            #expect(answer.cacheStatus?.detail == "offline", "\(answer.head)", sourceLocation: location)
        }

        @Test func theCommandSwitchesIt() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "text") }
            let daemon = try Daemon(settings(origin, ""))
            _ = try daemon.exchange("/api/kept")
            #expect(try daemon.command("status").output.contains("offline        no\n"))
            let on = try daemon.command("offline", "on")
            #expect(on.succeeded && on.output == "offline, no origin is asked\n", "\(on.report)")
            _ = try daemon.command("clock", "advance", "7d")
            let connections = origin.connections

            let kept = try daemon.exchange("/api/kept")
            #expect(kept.status == 200 && kept.text == "text")
            #expect(kept.cacheStatus?.isHit == true && kept.cacheStatus?.detail == "offline", "\(kept.head)")
            #expect(kept.field("Age").flatMap { Int($0) }.map { $0 >= 604_800 } == true)
            expectRefused(try daemon.exchange("/api/other"))
            expectRefused(try daemon.exchange("POST", "/api/kept", body: []))
            expectRefused(try daemon.exchange(origin.url + "/forward"))
            expectRefused(try daemon.client().exchange("CONNECT", origin.authority, host: origin.authority))
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            expectRefused(try daemon.exchange("/api/socket", fields: upgrade))
            #expect(origin.requests() == 1 && origin.connections == connections)

            #expect(try daemon.command("status").output.contains("offline        yes"))
            let status = try daemon.command("status", "--json")
            let document = try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any]
            #expect(document?["is_offline"] as? Bool == true)
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("\ndrydock_offline 1\n"))
            #expect(daemon.errors.contains("\"notice\",\"message\":\"offline, no origin is asked\""))

            let off = try daemon.command("offline", "off", "--json")
            #expect(off.output == "{\"is_offline\":false}\n", "\(off.report)")
            #expect(try daemon.exchange("/api/other").status == 200)
            #expect(try daemon.exchange("/api/kept").cacheStatus?.forwarded == "stale")
            #expect(try daemon.command("offline", "maybe").end == .exited(2))
            #expect(try daemon.command("offline").end == .exited(2))
        }

        @Test func theConfigurationSwitchesIt() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "text") }
            let daemon = try Daemon(settings(origin, "offline: true\n"))
            expectRefused(try daemon.exchange("/api/kept"))
            #expect(origin.connections == 0)
            try daemon.rewrite(settings(origin, "offline: false\n"))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/api/kept").status == 200)
            // A reload puts the configuration in force again.
            #expect(try daemon.command("offline", "on").succeeded)
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/api/other").status == 200)
        }
    }
}
