// `drydock demo`: switches, changes and their ends, and draws that begin anew, while the daemon runs.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct DemoControl {
        private static func daemon(_ origin: ScriptedOrigin) throws -> Daemon {
            let home = try DaemonHome()
            try home.folder.write("demo/item.json", #"{"id": 1}"#)
            return try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        base_url: \(origin.url)
                        cache: { mode: none }
                        demo: { files: \(home.folder.file("demo")), failure: { chance: 50% }, random_seed: 7 }
                        endpoints: [{ name: item, path: "/items/:id" }]
                      - { name: plain, match: { prefix: /plain }, base_url: "\(origin.url)" }
                    """
                ),
                at: home
            )
        }

        private func demo(_ daemon: Daemon, _ arguments: String...) throws -> ShellResult {
            let result = try daemon.command(["demo"] + arguments)
            #expect(result.succeeded, "\(result.report)")
            return result
        }

        @Test func demoModeIsSwitchedAndChanged() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let daemon = try Self.daemon(origin)
            // One connection, which goes on through all changes.
            let client = try daemon.client()
            #expect(try client.exchange("/shop/items/1").text == "live")
            #expect(try demo(daemon, "on", "shop").output.contains("on   shop/item\nchanged: shop enabled=on"))
            let answer = try client.exchange("/shop/items/1")
            #expect(answer.field("Drydock-Demo")?.hasPrefix("endpoint=item; ") == true)
            _ = try demo(daemon, "set", "shop/item", "status=418", "chance=0%", "latency=20ms", "--for", "1h")
            let changed = try client.exchange("/shop/items/1")
            #expect(changed.status == 418 && changed.field("Drydock-Demo")?.contains("latency=20ms") == true)
            let status = try daemon.command("status").output
            #expect(status.contains("demo           shop/item status=418, "), "\(status)")
            #expect(try daemon.metric("drydock_demo_overrides") == 4)
            _ = try demo(daemon, "off", "shop/item")
            #expect(try client.exchange("/shop/items/1").text == "live")
            #expect(!(try demo(daemon, "clear").output.contains("changed")))
            #expect(try client.exchange("/shop/items/1").text == "live")
            // What is wrong is said, and changes nothing.
            for arguments in [
                ["on", "nothing"], ["on", "shop/nothing"], ["on", "plain"], ["set", "shop", "latency=5"],
                ["set", "shop", "size=5"],
            ] {
                let result = try daemon.command(["demo"] + arguments)
                #expect(!result.succeeded && result.errors.count > 20, "\(arguments)")
            }
            #expect(try daemon.command("demo", "on", "plain").errors.contains("has no demo answers"))
            #expect(try daemon.metric("drydock_demo_overrides") == 0)
        }

        @Test func aReloadEndsChangesAndSaysSo() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let daemon = try Self.daemon(origin)
            _ = try demo(daemon, "on")
            #expect(try daemon.exchange("/shop/items/1").field("Drydock-Demo") != nil)
            let reload = try daemon.command("reload")
            #expect(reload.output.contains("1 change of demo mode ended by it"), "\(reload.report)")
            #expect(try daemon.exchange("/shop/items/1").text == "live")
        }

        @Test func aChangeEndsByItself() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let daemon = try Self.daemon(origin)
            // The shortest change that does not end before a request has come, however slow the machine is.
            var wasSeen = false
            for seconds in [1, 4, 16, 64] where !wasSeen {
                let began = ContinuousClock.now
                _ = try demo(daemon, "on", "shop", "--for", "\(seconds)s")
                wasSeen = try daemon.exchange("/shop/items/1").field("Drydock-Demo") != nil
                let isOver = try eventually { try daemon.exchange("/shop/items/1").text == "live" }
                #expect(isOver)
                #expect(hasPassed(.seconds(seconds), since: began))
                #expect(try demo(daemon, "status").output == "off  shop/item\n")
            }
            #expect(wasSeen)
        }

        @Test func faultsAreSwitchedOnAnyService() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let home = try DaemonHome()
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    fault_profiles: { broken: [{ name: broken, status: 500 }] }
                    services:
                      - { name: plain, match: { prefix: /plain }, base_url: "\(origin.url)" }
                    """
                ),
                at: home
            )
            let client = try daemon.client()
            #expect(try client.exchange("/plain/a").text == "live")
            #expect(try demo(daemon, "set", "plain", "faults=broken").output.contains("changed: plain faults=broken"))
            let broken = try client.exchange("/plain/a")
            #expect(broken.status == 500 && broken.field("Drydock-Demo")?.hasPrefix("fault=broken; ") == true)
            let unknown = try daemon.command("demo", "set", "plain", "faults=brokn")
            #expect(!unknown.succeeded && unknown.errors.contains("did you mean 'broken'?"), "\(unknown.report)")
            _ = try demo(daemon, "set", "plain", "faults=off")
            #expect(try client.exchange("/plain/a").text == "live")
            // What the fault changed was never stored.
            _ = try demo(daemon, "clear")
            #expect(try client.exchange("/plain/a").text == "live")
        }

        /// A changed file is read again under the changes that hold, and a service that a change left alone keeps the
        /// bytes of a file that has vanished.
        @Test func changesHoldWhenAnswersAreReadAgain() throws {
            let home = try DaemonHome()
            try home.folder.write("a.json", "one")
            try home.folder.write("b.json", "kept")
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - { name: a, match: { prefix: /a }, demo: { enabled: true, file: \(home.folder.file("a.json")) } }
                      - { name: b, match: { prefix: /b }, demo: { enabled: true, file: \(home.folder.file("b.json")) } }
                    """
                ),
                at: home
            )
            _ = try demo(daemon, "set", "a", "status=418")
            #expect(try daemon.exchange("/a").status == 418)
            try FileManager.default.removeItem(atPath: home.folder.file("b.json"))
            try home.folder.write("a.json", "two")
            let isRead = try eventually {
                let answer = try daemon.exchange("/a")
                #expect(answer.status == 418)
                return answer.text == "two"
            }
            #expect(isRead)
            #expect(try daemon.exchange("/b").text == "kept")
        }

        @Test func aDrawIsRepeatedByItsName() throws {
            let daemon = try Self.daemon(try ScriptedOrigin { _ in .answer("live") })
            _ = try demo(daemon, "on")
            let said = try (0..<20).map { _ in try #require(try daemon.exchange("/shop/items/1").field("Drydock-Demo"))
            }
            #expect(Set(said).count == 20)
            for value in said { #expect(try demo(daemon, "replay", value).output.hasPrefix(value)) }
            // What the configuration gives now may be something else.
            _ = try demo(daemon, "set", "shop", "chance=0%")
            let failed = try #require(said.first { $0.contains("outcome=failure") })
            let other = try daemon.command("demo", "replay", failed)
            #expect(other.end == .exited(1) && other.output.contains("  it was said: \(failed)"), "\(other.report)")
            let unknown = try daemon.command(
                "demo",
                "replay",
                "--json",
                failed.replacing("endpoint=item", with: "endpoint=x")
            )
            #expect(unknown.end == .exited(1) && unknown.output.contains("no rule of any service"), "\(unknown.report)")
            #expect(try daemon.command("demo", "replay", "7f3a").errors.contains("no draw="))
            #expect(!(try daemon.command("demo", "replay", "--service", "x", failed).succeeded))
        }

        /// What a request asks of its answer, no other request waits for, a cache in front or not.
        @Test func nobodyWaitsForAnotherRequestsOverride() throws {
            let daemon = try Daemon(
                """
                services:
                  - name: inner
                    match: { prefix: /inner }
                    demo: { enabled: true, body: fine, overrides: 10m, headers: { Cache-Control: max-age=600 } }
                  - { name: front, match: { prefix: /front }, base_url: "service:inner" }
                """
            )
            let patient = try daemon.begin("/front/a", fields: [("Drydock-Override", "latency=10m")])
            let answer = try daemon.exchange("/front/a")
            #expect(answer.text == "fine" && answer.field("Cache-Status")?.contains("collapsed") == false)
            for client in patient { client.reset() }
        }

        @Test func aRequestChangesItsOwnAnswer() throws {
            let home = try DaemonHome()
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: inner
                        match: { prefix: /inner }
                        demo: { enabled: true, body: fine, overrides: 2s, headers: { Cache-Control: max-age=600 } }
                      - { name: front, match: { prefix: /front }, base_url: "service:inner" }
                      - { name: closed, match: { prefix: /closed }, demo: { enabled: true, body: fine } }
                    """
                ),
                at: home
            )
            func ask(_ path: String, _ override: String) throws -> RawResponse {
                try daemon.exchange(path, fields: [("Drydock-Override", override)])
            }
            let answer = try ask("/inner/a", "status=503; latency=20ms")
            #expect(answer.status == 503 && answer.field("Cache-Control") == "no-store")
            let said = try #require(answer.field("Drydock-Demo"))
            #expect(said.contains("status=503; latency=20ms; draw=") && said.hasSuffix("; override"))
            // A cache in front neither keeps it nor gives it to others.
            #expect(try ask("/front/b", "status=503").status == 503)
            #expect(try daemon.exchange("/front/b").text == "fine")
            let failure = try ask("/inner/a", "outcome=failure")
            #expect(failure.status == 503)
            let again = try ask("/inner/a", "draw=\(said.firstMatch(of: /draw=([0-9a-f.]+)/)?.1 ?? "")")
            #expect(again.field("Drydock-Demo")?.contains("latency=0ms") == true)
            let refused = try ask("/inner/a", "latency=3s")
            #expect(refused.status == 400 && refused.text.contains("more than the 2000ms that 'demo.overrides' allows"))
            #expect(try ask("/inner/a", "rule=x").text.contains("'inner' has no rules"))
            // Where it is not allowed, the field says nothing.
            #expect(try ask("/closed/a", "status=503").status == 200)
        }

        @Test func drawsBeginAnew() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let daemon = try Self.daemon(origin)
            _ = try demo(daemon, "on")
            func outcomes() throws -> [String] {
                try (0..<20).map { _ in try daemon.exchange("/shop/items/1").field("Drydock-Demo") ?? "none" }
            }
            let first = try outcomes()
            #expect(try outcomes() != first)
            let reset = try demo(daemon, "reset", "shop")
            #expect(reset.output == "the draws of 1 request begin anew\n")
            #expect(try outcomes() == first)
            #expect(try demo(daemon, "reset", "plain").output == "the draws of 0 requests begin anew\n")
        }
    }
}
