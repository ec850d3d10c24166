// What a line about bodies says of them.

import DownloadCore
import HTTPWire
import Testing
import Upstream

@testable import ProxyServer

@Suite struct BodyLogTests {
    @Test func ofACodedRequestOnlyTheLengthIsShown() {
        let log = BodyLog(limit: 100)
        let body = log.watching(ContentSource(Array("{}".utf8)))
        var buffer = [UInt8](repeating: 0, count: 10)
        #expect(buffer.withUnsafeMutableBytes { body.read(into: $0) } == .bytes(2))
        func shown(_ fields: [(String, String)]) -> String? {
            let all = [("Content-Type", "application/json")] + fields
            let head = RequestHead(method: .post, target: "/", fields: Fields(all))
            return log.facts(head, nil).first { $0.0 == "request" }?.1
        }
        #expect(shown([]) == "{}")
        #expect(shown([("Content-Encoding", "gzip")]) == "2 bytes, gzip")
        // Two lines are one list (RFC 9110 section 5.3).
        #expect(shown([("Content-Encoding", "identity"), ("Content-Encoding", "br")]) == "2 bytes, identity, br")
    }
}
