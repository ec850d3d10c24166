// Who is known not to trust the local authority, for how long, and what the log advises.

import Testing

@testable import DrydockDaemon

@Suite struct DistrustTests {
    @Test func `a client and a host are new once, and count for their time`() {
        var table = DistrustTable(lifetime: 100)
        func note(_ client: String, _ target: String, _ reason: String, at now: UInt64, wallTime: Int64 = 9) -> Bool {
            table.note(client: client, target: target, reason, wallTime: wallTime, now: now)
        }
        #expect(note("c", "a:443", "first", at: 1_000, wallTime: 7))
        #expect(!note("c", "a:443", "second", at: 1_050, wallTime: 8))
        #expect(note("c", "b:443", "other host", at: 1_060, wallTime: 9))
        #expect(note("d", "a:443", "other client", at: 1_061, wallTime: 9))
        #expect(table.current(1_070).map(\.reason) == ["second", "other host", "other client"])
        #expect(table.current(1_070).first.map { [$0.since, Int64($0.times)] } == [7, 2])
        #expect(table.contains(client: "c", target: "a:443", now: 1_099))
        #expect(!table.contains(client: "c", target: "a:443", now: 1_100))
        #expect(!table.contains(client: "d", target: "b:443", now: 1_070))
        // What is over is new again, and told of again.
        #expect(note("c", "a:443", "anew", at: 1_100, wallTime: 10))
        #expect(table.current(1_100).map(\.target) == ["b:443", "a:443", "a:443"])
        table.removeAll()
        #expect(table.current(1_100).isEmpty)
    }

    @Test func `of more than the table holds, the first go`() {
        var table = DistrustTable(capacity: 3)
        for index in 0..<1_000 {
            let isNew = table.note(client: "c\(index)", target: "a:443", "", wallTime: 0, now: UInt64(index))
            #expect(isNew)
        }
        #expect(table.current(1_000).map(\.client) == ["c997", "c998", "c999"])
        #expect(!table.contains(client: "c996", target: "a:443", now: 1_000))
    }

    @Test(
        arguments: [
            ("curl/8.5.0", "export CURL_CA_BUNDLE=/ca.pem"),
            ("git/2.39.5", "git config --global http.sslCAInfo /ca.pem"),
            ("python-requests/2.28.1", "export REQUESTS_CA_BUNDLE=/ca.pem"),
            ("pip/23.0.1 {}", "export PIP_CERT=/ca.pem"),
            ("node", "export NODE_EXTRA_CA_CERTS=/ca.pem"), ("undici", "export NODE_EXTRA_CA_CERTS=/ca.pem"),
            ("Java/17.0.1", "keytool -importcert"), ("okhttp/4.9.0", "keytool -importcert"),
            ("Ruby", "export SSL_CERT_FILE=/ca.pem"), ("Go-http-client/1.1", "export SSL_CERT_FILE=/ca.pem"),
            ("MyApp/1 CFNetwork/1490 Darwin/23", "xcrun simctl keychain"),
            ("Mozilla/5.0 (X11; Linux x86_64)", "drydock ca trust, then start the browser again"),
            ("", "'drydock ca lines' has the line for each program"),
            ("Unheard/1.0", "or name the host under 'forward.intercept.except'"),
        ]
    )
    func `the advice is the line of the program`(agent: String, words: String) {
        let text = DistrustAdvice.text(userAgent: agent, certificate: "/ca.pem")
        #expect(text.contains(words), "\(text)")
        #expect(!text.contains("#"))
    }
}
