// Recordings in the admin API: what may be asked for, and what is refused before anything is touched.

import ProxyServer
import ServiceCore
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct RecordingRouteTests {
    @Test func `a question of drift has a service, fields and names that are compared`() throws {
        let question = try DriftQuestion(members: [
            ("service", "s"), ("field", "A: 1"), ("compare", "X"), ("compare", "Y"),
        ])
        #expect(question.service == "s" && question.compared == ["X", "Y"])
        #expect(question.fields.map(\.name) == ["A"] && question.fields.map(\.value) == ["1"])
        let all = try DriftQuestion(members: [])
        #expect(all.service == nil && all.fields.isEmpty && all.compared.isEmpty)
    }

    private static let text = "services: [{ name: s, match: { prefix: /s }, base_url: \"http://127.0.0.1:9\" }]"

    @Test func orders() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            let folder = harness.folder.file("export")
            for query in ["export=\(folder)", "export=\(folder)&service=s"] {
                let answer = try harness.ask("POST", "/v1/recordings?\(query)")
                #expect(answer.status == 200 && answer.text.contains("\"written\":0"), "\(answer.text)")
            }
            #expect(try harness.ask("POST", "/v1/recordings?export=\(folder)&service=t").status == 404)
            // Nothing is stored that a recording could be made of.
            for query in ["keep=%2Fs", "keep=http://127.0.0.1:9/x&field=A:1&field=B:2&service=s"] {
                let answer = try harness.ask("POST", "/v1/recordings?\(query)")
                #expect(answer.status != 400 && answer.status >= 400, "\(query): \(answer.text)")
            }
            for query in ["", "?service=s", "?service=s&field=A:%201&compare=X&compare=Y"] {
                let answer = try harness.ask("POST", "/v1/drift\(query)")
                #expect(answer.status == 200 && answer.text.contains("\"same\":0"), "\(answer.text)")
            }
        }
    }

    @Test func refusals() async throws {
        try await DaemonHarness.run(Self.text) { harness throws in
            for target in [
                "/v1/recordings", "/v1/recordings?keep=", "/v1/recordings?keep=%2Fa&export=%2Fd",
                "/v1/recordings?export=d", "/v1/recordings?keep=%2Fa&as=text", "/v1/recordings?export=%2Fd&field=A:1",
                "/v1/drift?service=s&service=t", "/v1/drift?field=A", "/v1/drift?compare=", "/v1/drift?url=a",
            ] {
                let answer = try harness.ask("POST", target)
                #expect(answer.status == 400 && answer.text.contains("Bad query"), "\(target): \(answer.text)")
            }
        }
    }
}
