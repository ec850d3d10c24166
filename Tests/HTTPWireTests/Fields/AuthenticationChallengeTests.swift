// WWW-Authenticate: several challenges in one line, in several lines, and lines that are none.

import Testing

@testable import HTTPWire

@Suite struct AuthenticationChallengeTests {
    private typealias Challenge = FieldChallenge

    @Test(
        "RFC 9110 11.6.1",
        arguments: [
            ("", []),
            (" , ,", []),
            ("Negotiate", [Challenge(scheme: "negotiate")]),
            ("Negotiate YWJj==", [Challenge(scheme: "negotiate", token: "YWJj==")]),
            (
                "Negotiate YWJj== , Basic",
                [Challenge(scheme: "negotiate", token: "YWJj=="), Challenge(scheme: "basic")]
            ),
            (#"Basic realm="a b""#, [Challenge(scheme: "basic", parameters: ["realm": "a b"])]),
            (
                #"BASIC Realm = "a \"b\"", x=y"#,
                [Challenge(scheme: "basic", parameters: ["realm": #"a "b""#, "x": "y"])]
            ),
            (#"Basic realm="1", realm="2""#, [Challenge(scheme: "basic", parameters: ["realm": "1"])]),
            (
                #"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
                [
                    Challenge(
                        scheme: "newauth",
                        parameters: ["realm": "apps", "type": "1", "title": #"Login to "apps""#]
                    ),
                    Challenge(scheme: "basic", parameters: ["realm": "simple"]),
                ]
            ),
            ("Bearer error=invalid_token", [Challenge(scheme: "bearer", parameters: ["error": "invalid_token"])]),
            (
                #"Basic realm="a, b", Digest nonce=1"#,
                [
                    Challenge(scheme: "basic", parameters: ["realm": "a, b"]),
                    Challenge(scheme: "digest", parameters: ["nonce": "1"]),
                ]
            ),
            // What follows a mistake is left out.
            (#"Basic, Digest realm="open"#, [Challenge(scheme: "basic"), Challenge(scheme: "digest")]),
            ("realm=a, Basic", []),
            ("Basic @, Digest", [Challenge(scheme: "basic")]),
            (#"Basic realm="a"b, Digest"#, [Challenge(scheme: "basic")]),
            ("Basic realm=, Digest", [Challenge(scheme: "basic", token: "realm="), Challenge(scheme: "digest")]),
            ("Basic a=b, realm=, Digest", [Challenge(scheme: "basic", parameters: ["a": "b"])]),
        ] as [(String, [FieldChallenge])]
    )
    func oneLine(_ value: String, _ expected: [FieldChallenge]) {
        #expect(FieldChallenge.parse(value) == expected)
    }

    @Test func severalLines() {
        let fields = Fields([("WWW-Authenticate", "Basic realm=a"), ("www-authenticate", "Bearer")])
        #expect(
            FieldChallenge.all(in: fields)
                == [Challenge(scheme: "basic", parameters: ["realm": "a"]), Challenge(scheme: "bearer")]
        )
        #expect(FieldChallenge.all(in: Fields()).isEmpty)
    }

    @Test func anyBytesEnd() {
        let alphabet = Array("Ba ,=\"\\/\t\u{e9}".unicodeScalars)
        var state: UInt64 = 1
        for _ in 0..<5000 {
            var text = ""
            for _ in 0..<12 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text.unicodeScalars.append(alphabet[Int(state >> 33) % alphabet.count])
            }
            for challenge in FieldChallenge.parse(text) { #expect(!challenge.scheme.isEmpty) }
        }
    }
}
