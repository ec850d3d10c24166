// What logins carry, in contents of every kind: hidden, and nothing else of the content changed.

import Testing

@testable import Content

@Suite struct SecretContentTests {
    private static func hidden(_ text: String, _ type: String?, shown: [String] = []) -> String {
        let content = SecretContent(shown: shown).hidden(Array(text.utf8), type: type)
        return String(decoding: content, as: UTF8.self)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let type: String?
        let text: String
        let hidden: String
        var testDescription: String { "\(type ?? "none") \(text)" }

        init(_ type: String?, _ text: String, _ hidden: String) {
            (self.type, self.text, self.hidden) = (type, text, hidden)
        }
    }

    private static let json = "application/json; charset=utf-8"
    private static let form = "application/x-www-form-urlencoded"
    private static let xml = "application/soap+xml"

    static let cases = [
        Case(
            json,
            #"{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"b","id_token":"c","scope":"x"}"#,
            #"{"access_token":"***","token_type":"Bearer","expires_in":3600,"refresh_token":"***","id_token":"***","scope":"x"}"#
        ),
        Case(json, #"[{"a":{"b":[{"password" : "x\"y"}]}}]"#, #"[{"a":{"b":[{"password" : "***"}]}}]"#),
        Case(
            json,
            #"{"client_secret":"s","cvv":123,"clientAssertion":"j"}"#,
            #"{"client_secret":"***","cvv":"***","clientAssertion":"***"}"#
        ),
        // Its siblings say what a code is for, before it or behind it; those of another object do not.
        Case(
            json,
            #"{"code":"c","code_verifier":"v","grant_type":"authorization_code"}"#,
            #"{"code":"***","code_verifier":"***","grant_type":"authorization_code"}"#
        ),
        Case(
            json,
            #"{"password":"p","otp":123456,"address":{"country":{"code":"DE","pin":"1"}}}"#,
            #"{"password":"***","otp":"***","address":{"country":{"code":"DE","pin":"1"}}}"#
        ),
        Case(json, #"{"country":{"code":"DE"},"pin":5}"#, #"{"country":{"code":"DE"},"pin":5}"#),
        Case(
            json,
            #"{"key":"a","nextPageToken":"b","session":"c","password":{"type":"string"},"password":true,"password":""}"#,
            #"{"key":"a","nextPageToken":"b","session":"c","password":{"type":"string"},"password":true,"password":""}"#
        ),
        Case(
            json,
            #"{"p\u0061ssword":"x","passwords":["a"],"password":["a",1]}"#,
            #"{"p\u0061ssword":"***","passwords":["a"],"password":["***","***"]}"#
        ),
        Case(json, #"{"password":"cut"#, #"{"password":"***""#),
        Case(nil, #" {"id_token":"a"}"#, #" {"id_token":"***"}"#),
        Case(
            form,
            "grant_type=authorization_code&code=c&code%5Fverifier=v&client_id=i&client_secret=s",
            "grant_type=authorization_code&code=***&code%5Fverifier=***&client_id=i&client_secret=***"
        ),
        Case(form, "user=a;password=b;c&x=1", "user=a;password=***;c&x=1"),
        Case(form, "password=b;c&code=1", "password=***&code=***"),
        Case(form, "code=DE&pin=1&SAMLResponse=PHg%2B&password=", "code=***&pin=***&SAMLResponse=***&password="),
        Case(form, "code=DE&pin=1", "code=DE&pin=1"),
        Case("text/plain", "access_token=a&token_type=bearer", "access_token=***&token_type=bearer"),
        Case("text/plain", "a password=b is it", "a password=b is it"),
        Case(
            xml,
            "<?xml version='1.0'?><s:a><w:Password Type=\"x\"> p </w:Password><code>1</code><b><code>DE</code></b></s:a>",
            "<?xml version='1.0'?><s:a><w:Password Type=\"x\"> *** </w:Password><code>***</code><b><code>DE</code></b></s:a>"
        ),
        Case(xml, "<a password='p' code=\"1\"/><b code='DE'/>", "<a password='***' code=\"***\"/><b code='DE'/>"),
        Case(xml, "<password><![CDATA[a<b]]></password><cvv>1", "<password><![CDATA[***]]></password><cvv>***"),
        Case(xml, "<!-- <password>x</password> --><a/>", "<!-- <password>x</password> --><a/>"),
        Case("image/png", "password=b", "password=b"),
    ]

    @Test(arguments: cases) func hiddenInRecordings(_ one: Case) {
        #expect(Self.hidden(one.text, one.type) == one.hidden)
        // What has no secrets any more is the same afterwards.
        #expect(Self.hidden(one.hidden, one.type) == one.hidden)
    }

    @Test func namesThatAreNoSecretsStay() {
        let text = #"{"ID_Token":"a","password":"b","code":"c"}"#
        #expect(
            Self.hidden(text, nil, shown: ["id_token", "code"]) == #"{"ID_Token":"a","password":"***","code":"c"}"#
        )
        #expect(Self.hidden(text, nil, shown: ["PASSWORD"]) == #"{"ID_Token":"***","password":"b","code":"***"}"#)
        #expect(!SecretContent(shown: ["x-session-id"]).isSecret("X-Session-Id"))
    }

    /// In each coding of Unicode, with a mark and without one: the content keeps its coding.
    @Test(arguments: [(2, true), (2, false), (4, true), (4, false)])
    func everyUnicode(width: Int, isLittle: Bool) {
        func coded(_ text: String, mark: Bool) -> [UInt8] {
            let units = width == 4 ? text.unicodeScalars.map(\.value) : text.utf16.map { UInt32($0) }
            return ((mark ? [0xFEFF] : []) + units).flatMap { unit -> [UInt8] in
                let bytes = (0..<width).map { UInt8(truncatingIfNeeded: unit >> (8 * UInt32($0))) }
                return isLittle ? bytes : bytes.reversed()
            }
        }
        for mark in [true, false] {
            let content = coded(#"{"a":"é😀","password":"é😀"}"#, mark: mark)
            let hidden = SecretContent().hidden(content, type: "application/json; charset=utf-16")
            #expect(hidden == coded(#"{"a":"é😀","password":"***"}"#, mark: mark))
        }
    }

    /// Whatever the depth and the order, it takes one pass, and ends.
    @Test func deepContentsEnd() {
        let deep = String(repeating: #"{"a":"#, count: 100_000)
        #expect(Self.hidden(deep + #"{"password":"x"}"#, nil) == deep + #"{"password":"***"}"#)
        let elements = String(repeating: "<a>", count: 100_000)
        #expect(Self.hidden("<b>" + elements, "text/xml") == "<b>" + elements)
    }
}
