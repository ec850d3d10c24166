// `GET /v1/config`: the configuration in force, without its secrets.

import Configuration
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct ConfigRouteTests {
    private static func services(_ name: String) -> String {
        """
        services:
          - name: \(name)
            match: { prefix: /a }
            base_url: http://127.0.0.1:9
            auth: { bearer: very-secret }
        """
    }

    @Test func theConfigurationInForceIsShownWithoutItsSecrets() async throws {
        try await DaemonHarness.run(Self.services("first")) { harness throws in
            let answer = try harness.ask("GET", "/v1/config")
            #expect(answer.status == 200 && answer.field("Content-Type") == "application/yaml")
            #expect(answer.text == harness.daemon.context.configuration.shown())
            #expect(answer.text.contains("name: first") && answer.text.contains("bearer: \"(hidden)\""))
            #expect(!answer.text.contains("very-secret"))
        }
    }

    /// A file that was refused is not in force, whatever it says now.
    @Test func aRefusedReloadChangesNothing() async throws {
        try await DaemonHarness.run(Self.services("first")) { harness throws in
            let (folder, before) = (harness.folder, try harness.ask("GET", "/v1/config").text)
            let addresses = "listen: unix:\(folder.file("proxy.sock"))\nadmin: unix:\(folder.file("admin.sock"))\n"
            _ = try folder.write("drydock.yaml", addresses + Self.services("first") + "\n    bse_url: x\n")
            #expect(try harness.ask("POST", "/v1/reload").status == 422)
            #expect(try harness.ask("GET", "/v1/config").text == before)
            _ = try folder.write("drydock.yaml", addresses + Self.services("second") + "\n")
            #expect(try harness.ask("POST", "/v1/reload").status == 200)
            #expect(try harness.ask("GET", "/v1/config").text.contains("name: second"))
        }
    }

    @Test func aQueryIsRefused() async throws {
        try await DaemonHarness.run { harness throws in
            let answer = try harness.ask("GET", "/v1/config?service=a")
            #expect(answer.status == 400 && answer.text.contains("leave the query out"))
        }
    }
}
