// What fields say about their connection: nobody's authenticated one is used for anybody else, and none after
// the time its origin gave it.

import Foundation
import HTTPWire
import TestSupport
import Testing

@testable import Upstream

@Suite struct ConnectionTermsTests {
    // MARK: - The words

    @Test(
        arguments: [
            ("Authorization", "NTLM TlRMTVNTUAABAAAA", true), ("Authorization", "ntlm x", true),
            ("Authorization", "Negotiate YII", true), ("Authorization", "Kerberos YII", true),
            ("Proxy-Authorization", "Negotiate YII", true), ("WWW-Authenticate", "NTLM", true),
            ("WWW-Authenticate", "Basic realm=\"a, b\", Negotiate", true), ("WWW-Authenticate", "Basic,NTLM abc", true),
            ("Proxy-Authenticate", "negotiate", true), ("Authorization", "Basic TlRMTQ==", false),
            ("Authorization", "Bearer ntlm-ish", false), ("WWW-Authenticate", "Digest realm=\"renegotiated\"", false),
            ("Authorization", "", false), ("X-Scheme", "NTLM", false), ("Accept", "NTLM", false),
        ]
    )
    func `schemes that authenticate a connection are known`(name: String, value: String, isFound: Bool) {
        #expect(ConnectionTerms.authenticateConnection(Fields([("Date", "x"), (name, value)])) == isFound)
    }

    @Test func `each of several challenges is looked at`() {
        let fields = Fields([("WWW-Authenticate", "Basic realm=\"a\""), ("WWW-Authenticate", "NTLM")])
        #expect(ConnectionTerms.authenticateConnection(fields))
    }

    @Test(
        arguments: [
            ("timeout=5", 4), ("timeout=5, max=100", 4), ("max=100,timeout=10", 9), ("Timeout = 3", 2),
            ("timeout=\"20\"", 19), ("timeout=1", 0), ("timeout=0", 0), ("timeout=5, timeout=3", 2), ("max=5", nil),
            ("300", nil), ("timeout=", nil), ("timeout=-1", nil), ("timeout=5s", nil), ("", nil), ("xtimeout=5", nil),
        ] as [(String, UInt64?)]
    )
    func `the time of Keep-Alive counts less a margin`(value: String, seconds: UInt64?) {
        #expect(ConnectionTerms.longestIdle(Fields([("Keep-Alive", value)])) == seconds.map { $0 * 1_000_000_000 })
    }

    @Test func `a time without bounds is a long one`() throws {
        let fields = Fields([("Keep-Alive", "timeout=99999999999999999999999999")])
        let longest = try #require(ConnectionTerms.longestIdle(fields))
        #expect(longest > 3_600_000_000_000)
        #expect(longest < UInt64.max / 2)
    }

    // MARK: - On the wire

    /// Requests with credentials of such a scheme, and answers that ask for them.
    static let authenticated: [(request: [(String, String)], status: Int, response: [(String, String)])] = [
        ([("Authorization", "NTLM TlRMTVNTUAADAAAA")], 200, []),
        ([("Authorization", "Negotiate YII")], 200, []),
        ([("Proxy-Authorization", "NTLM x")], 200, []),
        ([], 401, [("WWW-Authenticate", "NTLM TlRMTVNTUAACAAAA")]),
        ([], 401, [("WWW-Authenticate", "Basic realm=\"x\""), ("WWW-Authenticate", "Negotiate")]),
        ([], 407, [("Proxy-Authenticate", "NTLM")]),
        ([], 200, [("WWW-Authenticate", "Negotiate oYG")]),
    ]

    @Test(arguments: authenticated, Carriage.allCases)
    func `no other request goes over a connection that was authenticated`(
        exchange: (request: [(String, String)], status: Int, response: [(String, String)]),
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { request in
            .answer(
                request.target == "/own" ? exchange.status : 200,
                to: request,
                fields: request.target == "/own" ? exchange.response : [],
                "x"
            )
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/own", fields: exchange.request).head?.status == exchange.status)
        #expect(rig.get("\(origin.url)/other").isFinished)
        #expect(origin.log.map(\.connection) == [1, 2])
        // What another one left may still be used: the next connection stays.
        #expect(rig.get("\(origin.url)/other").isFinished)
        #expect(origin.log.map(\.connection) == [1, 2, 2])
    }

    @Test(arguments: Carriage.allCases)
    func `a connection is not used after the time that its origin gives it`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Keep-Alive", "timeout=\(request.target.dropFirst())")], "x")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        // Of one second nothing is left but the margin.
        for target in ["/1", "/0", "/2"] { #expect(rig.get(origin.url + target).isFinished) }
        #expect(origin.log.map(\.connection) == [1, 2, 3])
        Thread.sleep(forTimeInterval: 1.1)
        #expect(rig.get("\(origin.url)/600").isFinished)
        #expect(rig.get("\(origin.url)/600").isFinished)
        #expect(origin.log.map(\.connection) == [1, 2, 3, 4, 4])
    }
}
