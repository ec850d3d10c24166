// Collections of Postman: saved responses, variables, and what cannot be kept.

import Configuration
import Interchange
import Testing

@Suite struct PostmanTests {
    /// Requests of one target that differ in their body become rules that differ; the rest has what no other one asks for.
    @Test func bodiesTellRequestsApart() throws {
        func item(_ body: String, _ code: Int) -> String {
            #"{"request":{"method":"POST","url":"http://h/a","body":\#(body)},"response":[{"code":\#(code)}]}"#
        }
        let items = [
            item(#"{"mode":"raw","raw":"{\"n\": 1}"}"#, 201), item(#"{"mode":"raw","raw":"{\"n\":2}"}"#, 202),
            item(
                #"{"mode":"urlencoded","urlencoded":[{"key":"n","value":"3"},{"key":"off","value":"x","disabled":true}]}"#,
                203
            ),
            item(#"{"mode":"raw","raw":"{\"password\":\"p\"}"}"#, 400), item(#"{"mode":"raw","raw":"text"}"#, 207),
        ]
        let read = try imported(#"{"info":{"name":"c"},"item":[\#(items.joined(separator: ","))]}"#)
        try checked(read)
        func rule(_ body: String, _ status: Int) -> String {
            #"{"when":{"method":"POST","path":"/a"\#(body.isEmpty ? "" : ",\"body\":" + body)},"status":\#(status)}"#
        }
        #expect(
            read.rulesAsJSON == [
                rule(#"{"is":{"n":1}}"#, 201), rule(#"{"is":{"n":2}}"#, 202), rule(#"{"form":{"n":"3"}}"#, 203),
                rule(#"{"text":"text"}"#, 207), rule("", 400),
            ]
        )
        #expect(read.told.map { String($0.prefix(31)) } == ["/item/3/request/body changed: t"])
        // Alone, a body is not asked for.
        let one = try imported(#"{"info":{"name":"c"},"item":[\#(items[0])]}"#)
        #expect(one.rulesAsJSON == [rule("", 201)])
    }

    /// A collection of requests, each with its URL and its saved responses.
    private static func collection(_ items: (url: String, responses: String)..., variables: String = "") -> String {
        let items = items.map {
            #"{"name":"R","request":{"method":"GET","url":\#($0.url)},"response":[\#($0.responses)]}"#
        }
        return #"{"info":{"name":"c"},"item":[\#(items.joined(separator: ","))],"variable":[\#(variables)]}"#
    }

    private static let saved = #"{"name":"n","code":200,"body":"b"}"#

    @Test func aCollectionBecomesAConfiguration() throws {
        let users = try imported(String(decoding: sample("users.postman_collection.json"), as: UTF8.self))
        #expect(try checked(users).services.map(\.name) == ["users-api"])
        #expect(
            users.rulesAsJSON == [
                #"{"when":{"method":["GET","HEAD"],"path":"/v2/users/me","query":{"fields":"name","apikey":{"present":true},"page":{"present":true}}},"file":"Me-Me.txt","headers":{"Content-Type":"text/plain"}}"#,
                #"{"when":{"method":["GET","HEAD"],"path":{"matches":"\\A/v2/users/[^/]+\\z"},"fields":{"x-mock-response-name":"No such user"}},"status":404,"file":"Get-user-No-such-user.json"}"#,
                #"{"when":{"method":["GET","HEAD"],"path":{"matches":"\\A/v2/users/[^/]+\\z"},"fields":{"x-mock-response-code":"404"}},"status":404,"file":"Get-user-No-such-user.json"}"#,
                #"{"when":{"method":["GET","HEAD"],"path":{"matches":"\\A/v2/users/[^/]+\\z"}},"file":"Get-user-Found.json","headers":{"Content-Type":"application/json","Set-Cookie":"sid=***; Path=/"}}"#,
                #"{"when":{"method":"DELETE","path":{"matches":"\\A/v2/users/[^/]+\\z"}},"status":204}"#,
            ]
        )
        #expect(users.body("Get-user-Found.json") == #"{"name":"Ada"}"#)
        #expect(
            users.told == [
                "/item/0/item/1/response/0/originalRequest/url changed: the value of 'apikey' may be a secret: the rule asks only that it is there",
                "/item/1/response left out: it has no saved response",
                "/item/2/request/url left out: this is no http or https URL of a plain host",
            ]
        )
    }

    @Test(arguments: [
        (#""http://h/a""#, "", #""path":"/a""#),
        (#""h/a/""#, "", #""path":"/a/""#),
        (#""{{base}}/a?x={{y}}&z=1""#, "", #""path":"/a","query":{"x":{"present":true},"z":"1"}"#),
        (#""{{base}}/{{part}}/b""#, #"{"key":"base","value":"http://h"}"#, #""path":{"matches":"\\A/[^/]+/b\\z"}"#),
        (
            #""{{base}}/a""#, #"{"key":"base","value":"{{host}}/x"},{"key":"host","value":"http://h"}"#,
            #""path":"/x/a""#
        ),
        (#""http://h/{{me}}""#, #"{"key":"me","value":"{{me}}{{me}}"}"#, #""path":{"matches":"\\A/[^/]+\\z"}"#),
        (#""http://h/{{token}}""#, #"{"key":"token","value":"s3cr3t"}"#, #""path":{"matches":"\\A/[^/]+\\z"}"#),
        (
            #"{"protocol":"https","host":["a","b"],"path":["c","d"],"query":[{"key":"q","value":"1"}]}"#, "",
            #""path":"/c/d","query":{"q":"1"}"#
        ),
    ]) func targetsBecomeConditions(_ url: String, _ variables: String, _ condition: String) throws {
        let collection = try imported(Self.collection((url, Self.saved), variables: variables))
        try checked(collection)
        #expect(
            collection.rulesAsJSON.map { $0.replacing(#","file":"R-n.txt"}"#, with: "") } == [
                #"{"when":{"method":["GET","HEAD"],\#(condition)}"#
            ]
        )
    }

    @Test func everyOriginIsAService() throws {
        let collection = try imported(
            Self.collection((#""http://a.example/x""#, Self.saved), (#""{{b}}/x""#, Self.saved))
        )
        #expect(try checked(collection).services.map(\.name) == ["a.example", "other"])
    }

    @Test(arguments: [
        (#"{"info":{},"item":[]}"#, "x.json: nothing in it can be made into a rule"),
        (
            #"{"collection":{"item":[]}}"#,
            "x.json#/collection: a collection is within another document; export it by itself"
        ),
        (
            #"{"info":{},"item":[{"request":"http://h/","response":[{"code":99}]}]}"#,
            "x.json: nothing in it can be made into a rule; the first reason is at x.json#/item/0/response/0/code: left out: there is no status from 200 to 599"
        ),
    ]) func whatCannotBeReadIsAnErrorWithItsLocation(_ text: String, _ error: String) {
        #expect { try imported(text) } throws: { "\($0)" == error }
    }

    @Test func damagedFilesAreErrorsOrRightConfigurations() throws {
        let bytes = try sample("users.postman_collection.json")
        var random = SeededGenerator(19)
        let values = [
            "null", "-1", "\"\"", "\"/\\u2028\"", "[]", "{}", "\"{{\"", "\"http://h/{{\"", "true", "\"/*\"", "7",
            "\"?\"",
        ]
        var written = 0
        for _ in 0..<200 {
            var text = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let colons = text.indices.filter { text[$0] == UInt8(ascii: ":") }
                guard let colon = colons.randomElement(using: &random) else { continue }
                let end = text[colon...].firstIndex { ",}\n".utf8.contains($0) } ?? text.endIndex
                text.replaceSubrange(colon + 1..<end, with: Array(values.randomElement(using: &random)!.utf8))
            }
            guard
                let users = try? Importer.read(
                    [ImportSource(name: "x", bytes: text)],
                    .postman,
                    ImportOptions(),
                    bodyFile: { _ in nil }
                )
            else { continue }
            written += 1
            try checked(users)
        }
        #expect(written > 30)
    }
}
