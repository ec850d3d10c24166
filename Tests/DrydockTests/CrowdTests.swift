// Ten thousand calls at once on one manager.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct CrowdTests {
    /// What the process has in memory, in bytes.
    private static func residentMemory() -> Int {
        let fields = readText("/proc/self/statm").split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * 4096
    }

    @Test func tenThousandCallsAreEachAnsweredOnce() async throws {
        #if DRYDOCK_SANITIZED
            // Each access of memory is looked at, and memory is taken for what is known of it.
            let calls = 1000
        #else
            let calls = 10_000
        #endif
        let body = String(repeating: "x", count: 1000)
        try await withManager(configure: { $0.maximumFetches = 50 }) { request in
            let text = "\(request.target) \(String(decoding: request.body, as: UTF8.self)) \(body)"
            // Fresh for longer than the crowd takes on any machine.
            return .answer(to: request, fields: [("Cache-Control", "max-age=600")], text)
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/0"))
            #if !DRYDOCK_SANITIZED
                let before = Self.residentMemory()
            #endif
            let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for call in 0..<calls {
                    group.addTask {
                        switch call % 4 {
                        // A hundred resources, which the store has sooner or later.
                        case 0, 1: return (call, try await manager.download(origin.url("/\(call % 100)")).text)
                        case 2:
                            let request = TransportRequest(
                                origin.request(.post, "/post"),
                                body: .data(Data("\(call)".utf8))
                            )
                            let response = try await manager.send(request)
                            let data = try await response.body.collect(upTo: 10_000)
                            return (call, String(decoding: data, as: UTF8.self))
                        default:
                            let body = RequestBody.data(Data("\(call)".utf8))
                            return (call, try await manager.download(origin.request(.put, "/put"), body: body).text)
                        }
                    }
                }
                var answers: [Int: String] = [:]
                for try await (call, text) in group {
                    #expect(answers[call] == nil)
                    answers[call] = text
                }
                return answers
            }
            #expect(answers.count == calls)
            for (call, text) in answers {
                let expected = ["/\(call % 100) ", "/\(call % 100) ", "/post \(call)", "/put \(call)"][call % 4]
                #expect(text == "\(expected) \(body)", "call \(call)")
            }
            // One request for each resource, one for each content.
            #expect(origin.count("GET") == 50)
            #expect(origin.count("POST") == calls / 4)
            #expect(origin.count("PUT") == calls / 4)
            #expect(origin.server.connections <= 50)
            #expect(manager.downloadCount == 0)
            // Without optimisation a call that waits takes some 80 KB, frames of tasks nearly all of it; what it must not
            // do is grow with what other calls wait for. Tests beside this one have their share in the number, too.
            #if !DRYDOCK_SANITIZED
                #expect(Self.residentMemory() - before < calls * 200_000)
            #endif
        }
    }
}
