// Which answers are refused for their media type.

import Content
import DownloadCore
import HTTPCaching
import HTTPWire
import Testing

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5)))
struct ExpectedTypeSourceTests {
    private func run(
        _ script: SourceScript,
        _ method: HTTPWire.Method = .get,
        success: [String] = []
    ) async throws -> SourceRun {
        let types = try #require(ExpectedTypes(["application/json", "text/*"]))
        var policy = CachePolicy()
        if !success.isEmpty { policy.success = StatusSet(success.compactMap(StatusSet.range)) }
        return try await play(script, method) { [policy] in
            ExpectedTypeSource($0, types, policy, owner: "endpoint 'list' of service 'people'")
        }
    }

    private static let body = Array("body".utf8)

    @Test("an expected type passes as it came")
    func passes() async throws {
        for type in ["application/json", "TEXT/plain; charset=utf-8"] {
            let run = try await run(SourceScript(fields: [("Content-Type", type)], body: Self.body))
            #expect(run.status == 200 && run.body == Self.body && run.isOver && run.error == nil && !run.isCancelled)
        }
    }

    @Test("another one is a failure that names endpoint, found and expected type, and ends the fetch")
    func refused() async throws {
        let run = try await run(SourceScript(fields: [("Content-Type", "image/png")], body: Self.body))
        #expect(
            run.error
                == .type(
                    "the answer for endpoint 'list' of service 'people' has the type image/png, and 'response.type' "
                        + "expects application/json or text/*; correct the origin, or what its route expects"
                )
        )
        #expect(run.head == nil && run.body.isEmpty && run.isCancelled)
        #expect(run.error?.status == 502 && run.error?.isOriginFailure == true)
        let bare = try await self.run(SourceScript(body: Self.body))
        guard case .type(let message)? = bare.error else { return #expect(Bool(false), "\(bare)") }
        #expect(message.contains(" has no Content-Type, "))
        // A HEAD as well: its fields are those of the GET.
        let head = try await self.run(
            SourceScript(fields: [("Content-Type", "image/png")], framing: BodyFraming.none),
            .head
        )
        #expect(head.error != nil)
    }

    @Test("what has no content, or is no success, has no type to be expected")
    func exempt() async throws {
        let png = [("Content-Type", "image/png")]
        for (script, method) in [
            (SourceScript(status: 204, framing: BodyFraming.none), .get),
            (SourceScript(status: 304, framing: BodyFraming.none), .get),
            (SourceScript(status: 201, framing: .length(0)), .post),
            (SourceScript(status: 404, fields: png, body: Self.body), .get),
            (SourceScript(status: 302, fields: png, body: Self.body), .get),
            (
                SourceScript(
                    status: 206,
                    fields: [("Content-Type", "multipart/byteranges; boundary=x")],
                    body: Self.body
                ), .get
            ),
            (SourceScript(framing: BodyFraming.none), .head), (SourceScript(fields: png, body: Self.body), .options),
        ] as [(SourceScript, HTTPWire.Method)] {
            let run = try await run(script, method)
            #expect(run.status == script.status && run.body == script.body && run.error == nil, "\(script)")
        }
        let accepted = SourceScript(status: 202, fields: png, body: Self.body)
        #expect(try await run(accepted).error != nil)
        #expect(try await run(accepted, success: ["200"]).error == nil)
    }
}
