// Resources asked for through a download manager: where they are, and what becomes of their bytes.

import Drydock
import Foundation
import HTTPTypes
import TestSupport
import Testing

private struct Text: Drydock.Resource {
    var endpoint: Endpoint

    func model(from result: DownloadResult) throws -> String { String(decoding: result.data, as: UTF8.self) }
}

@Suite struct ResourceTests {
    @Test func aPathIsAppendedToTheBase() async throws {
        try await withManager {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            let loader = ResourceLoader(transport: manager, base: origin.url("/api"))
            let loaded = try await loader.load(Text(endpoint: Endpoint("/a?b=1")))
            #expect(loaded.model == "hello")
            #expect(loaded.outcome == .downloaded)
            #expect(loaded.response.status == .ok)
            #expect(origin.count("GET", "/api/a?b=1") == 1)
        }
    }

    @Test func aStatusThatIsNoSuccessIsAnErrorWithItsBody() async throws {
        try await withManager {
            .answer(404, to: $0, "gone")
        } _: { manager, origin in
            let loader = ResourceLoader(transport: manager)
            let error = await #expect(throws: ServiceError.self) {
                try await loader.load(Text(endpoint: Endpoint(origin.url().absoluteString)))
            }
            guard case .status(let result, failure: nil) = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(result.response.status.code == 404)
            #expect(result.text == "gone")
        }
    }
}
