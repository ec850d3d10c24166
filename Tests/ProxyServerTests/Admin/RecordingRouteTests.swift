// Recordings in the admin API: what may be asked for, and what is refused before anything is touched.

import AdminAPI
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

private final class ScriptedRecordings: RecordingActions {
    let orders = Monitor<[String]>([])

    func keep(_ question: ExplainQuery) async throws(Problem) -> AdminRecording {
        orders.update { $0.append("keep \(question.url) \(question.fields.map(\.name)) \(question.service ?? "-")") }
        return AdminRecording(service: "a", request: "GET /", status: 200, bytes: 1, name: "n")
    }

    func exportRecordings(to path: String, service: String?) async throws(Problem) -> AdminSeedExport {
        orders.update { $0.append("export \(path) \(service ?? "-")") }
        return AdminSeedExport()
    }

    func drift(_ question: DriftQuestion) async throws(Problem) -> AdminDrift {
        orders.update {
            $0.append("drift \(question.service ?? "-") \(question.fields.map(\.value)) \(question.compared)")
        }
        return AdminDrift()
    }
}

@Suite struct RecordingRouteTests {
    private static func order(_ target: String) async throws -> [String] {
        let (path, members) = AdminQuery.split(target)
        let actions = ScriptedRecordings()
        let route = try #require(actions.recordingRoutes.first { $0.path.rawValue == path && $0.method == .post })
        _ = try await route.perform(AdminRequest(queryItems: members))
        return actions.orders.read { $0 }
    }

    @Test(arguments: [
        ("/v1/recordings?keep=%2Fa", "keep /a [] -"),
        ("/v1/recordings?keep=%2Fa&field=A:1&field=B:2&service=s", "keep /a [\"A\", \"B\"] s"),
        ("/v1/recordings?export=%2Fd", "export /d -"), ("/v1/recordings?export=%2Fd&service=s", "export /d s"),
        ("/v1/drift", "drift - [] []"),
        ("/v1/drift?service=s&field=A:%201&compare=X&compare=Y", #"drift s ["1"] ["X", "Y"]"#),
    ])
    func orders(target: String, order: String) async throws {
        #expect(try await Self.order(target) == [order])
    }

    @Test(arguments: [
        "/v1/recordings", "/v1/recordings?keep=", "/v1/recordings?keep=%2Fa&export=%2Fd", "/v1/recordings?export=d",
        "/v1/recordings?keep=%2Fa&as=text", "/v1/recordings?export=%2Fd&field=A:1", "/v1/drift?service=s&service=t",
        "/v1/drift?field=A", "/v1/drift?compare=", "/v1/drift?url=a",
    ])
    func refusals(target: String) async throws {
        await #expect(throws: Problem.self) { try await Self.order(target) }
    }
}
