// The document that an error mapping takes from, and what becomes of it.

import Testing

@testable import Mapping

struct ErrorDocumentTests {
    private static func document(_ body: String? = nil, code: String = "http_404") -> ErrorDocument {
        ErrorDocument(
            status: 404,
            code: code,
            message: "Not \"Found\"",
            service: "people",
            endpoint: nil,
            source: .origin,
            body: body.map { Array($0.utf8) }
        )
    }

    private static func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    @Test("every member is there, whatever is known")
    func members() {
        #expect(
            Self.text(Self.document().json())
                == #"{"status":404,"code":"http_404","message":"Not \"Found\"","service":"people","endpoint":null,"#
                + #""source":"origin","body":null}"#
        )
        var other = Self.document(#"{"a":1}"#)
        other.endpoint = "list"
        other.source = .drydock
        #expect(
            Self.text(other.json())?.hasSuffix(#""endpoint":"list","source":"drydock","body":{"a":1}}"#) == true
        )
    }

    @Test(
        "content as JSON, as text, or not at all",
        arguments: [
            (#" {"a": [1, 2]} "#, "text/plain", #"{"a": [1, 2]}"#), ("[1]", nil, "[1]"),
            ("17", "application/json", "17"), ("17", "text/plain", #""17""#),
            ("null", "application/problem+json; charset=utf-8", "null"),
            ("{ broken", "application/json", #""{ broken""#),
            ("no\tsuch \"user\"\n", nil, #""no\u0009such \"user\"\n""#),
            ("<!doctype html><p>ä</p>", "text/html", #""<!doctype html><p>ä</p>""#),
            ("<plist><dict><key>a</key><integer>3</integer></dict></plist>", nil, #"{"a":3}"#),
            ("", "application/json", nil), ("  \r\n", "text/plain", nil),
        ] as [(String, String?, String?)]
    )
    func body(_ content: String, _ type: String?, _ expected: String?) {
        #expect(Self.text(ErrorDocument.body(Array(content.utf8), mediaType: type)) == expected)
    }

    @Test("bytes that are no UTF-8 are text where the type says so, and nothing elsewhere")
    func otherBytes() {
        let bytes: [UInt8] = [0x67, 0x72, 0xFC, 0x6E]
        #expect(Self.text(ErrorDocument.body(bytes, mediaType: "text/plain; charset=iso-8859-1")) == "\"grün\"")
        #expect(ErrorDocument.body(bytes, mediaType: "image/png") == nil)
        #expect(ErrorDocument.body(bytes, mediaType: nil) == nil)
    }

    @Test("a mapping takes what it names")
    func mapped() throws {
        let error = try object([
            "code": rule("code"),
            "text": MappingRule(from: MappingPath("body.error.text"), standIn: Array(#""?""#.utf8)),
        ])
        let plan = MappingPlan(MappingRule(.object([.init(name: "error", rule: MappingRule(error))])))
        #expect(
            Self.text(Self.document(#"{"error":{"text":"gone"}}"#).mapped(by: plan))
                == #"{"error":{"code":"http_404","text":"gone"}}"#
        )
        for body in [nil, #""gone""#, "[]", "{}"] {
            #expect(
                Self.text(Self.document(body).mapped(by: plan)) == #"{"error":{"code":"http_404","text":"?"}}"#
            )
        }
    }

    @Test("where values do not fit the mapping, the document itself goes out and says why")
    func trouble() throws {
        let plan = try MappingPlan(MappingRule(object(["at": rule("body.at", .converted(.date, .usual))])))
        let text = try #require(Self.text(Self.document(#"{"at":"soon"}"#).mapped(by: plan)))
        #expect(text.hasPrefix(#"{"status":404,"code":"http_404","#) && text.contains(#""body":{"at":"soon"}"#))
        #expect(text.contains(#""mapping":"'at': \"soon\" is no date; compare 'error.map'"#), "\(text)")
    }
}
