// Responses that break a rule of HTTP/1.1 and can be read in one way only: taken from either carrier, and the
// connection ends where their framing is odd.

import HTTPWire
import TestSupport
import Testing
import Upstream

struct Leniency: Sendable, CustomTestStringConvertible {
    let response: String
    let isOdd: Bool
    var status = 200
    var testDescription: String { response.prefix(90).debugDescription }

    init(_ response: String, isOdd: Bool = false, status: Int = 200) {
        (self.response, self.isOdd, self.status) = (response, isOdd, status)
    }

    static func fields(_ lines: String, isOdd: Bool = false, body: String = "hello") -> Leniency {
        Leniency("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)", isOdd: isOdd)
    }

    static let all: [Leniency] = [
        .fields("Content-Length: 5\r\nContent-Length: 5", isOdd: true),
        .fields("Content-Length: 5, 5", isOdd: true),
        .fields("X-A : b\r\nContent-Length: 5"),
        .fields("X-A: b\r\n c\r\nContent-Length: 5"),
        .fields("X-A: b\r\n\tc\r\nContent-Length: 5"),
        .fields("X-A: b\u{1}c\r\nContent-Length: 5"),
        .fields("X-A: b\nContent-Length: 5", isOdd: true),
        Leniency("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", isOdd: true),
        Leniency("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello", isOdd: true),
        Leniency("HTTP/1.1 600 OK\r\nContent-Length: 5\r\n\r\nhello", status: 600),
        Leniency("HTTP/1.1 999 OK\r\nContent-Length: 5\r\n\r\nhello", status: 999),
        Leniency("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", isOdd: true),
        .fields("Transfer-Encoding: chunked", body: "5 \r\nhello\r\n0  \r\n\r\n"),
        Leniency("HTTP/1.1 103 Early\r\nLink : x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        Leniency("HTTP/1.1 103 Early\n\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", isOdd: true),
    ]
}

@Suite struct LeniencyTests {
    @Test(arguments: Leniency.all, Carriage.allCases)
    func `is taken, and its connection kept where nothing about its framing is odd`(
        row: Leniency,
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { request in
            request.target == "/good" ? .answer(to: request, "good") : .raw(row.response)
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/good").text == "good")
        let heard = rig.get("\(origin.url)/bad")
        #expect(heard.isFinished && heard.text == "hello", "\(heard)")
        #expect(heard.head?.status == row.status)
        #expect(heard.head?.isOddlyFramed == row.isOdd)
        #expect(rig.get("\(origin.url)/good").text == "good")
        #expect(origin.connections == (row.isOdd ? 2 : 1))
    }

    @Test(arguments: Leniency.all, Carriage.allCases)
    func `without leniency it is refused`(row: Leniency, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in .raw(row.response) }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.run(UpstreamRequest(url: origin.url, isLenient: false))
        guard case .protocolViolation = heard.error?.kind else {
            Issue.record("not refused: \(heard)")
            return
        }
        #expect(!heard.isFinished && heard.error?.status == 502)
    }

    @Test(arguments: Carriage.allCases)
    func `a policy of 9 KB is no reason to refuse`(carriage: Carriage) throws {
        let policy = String(repeating: "p", count: 9216)
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Content-Security-Policy", policy)], "good")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.run(UpstreamRequest(url: origin.url, limits: .response))
        #expect(heard.text == "good")
        #expect(heard.head?.fields.first("content-security-policy") == policy)
    }
}
