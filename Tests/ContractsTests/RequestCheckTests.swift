// Requests against a document of OpenAPI: each part, what is wrong with it, and where the document says so.

import Contracts
import HTTPWire
import Matching
import Testing

@Suite struct RequestCheckTests {
    private static let document = #"""
        openapi: 3.1.0
        servers: [{ url: "https://api.example.com/v1/" }]
        paths:
          /items:
            parameters:
              - { name: tenant, in: header, required: true, schema: { type: string, minLength: 2 } }
            get:
              parameters:
                - { name: limit, in: query, required: true, schema: { type: integer, minimum: 1, maximum: 9 } }
                - { name: sort, in: query, schema: { enum: [up, down] } }
                - { name: ids, in: query, schema: { type: array, maxItems: 2, items: { type: integer } } }
                - { name: tags, in: query, explode: false, schema: { type: array, items: { type: string } } }
                - { name: deep, in: query, schema: { type: boolean } }
                - { name: sid, in: cookie, required: true }
            post:
              requestBody:
                required: true
                content:
                  application/json: { schema: { $ref: "#/components/schemas/Item" } }
                  application/x-www-form-urlencoded: { schema: { $ref: "#/components/schemas/Item" } }
                  text/*: {}
          /items/{id}:
            parameters:
              - { name: id, in: path, required: true, schema: { type: integer } }
            get: {}
          /items/new: { get: {} }
          /items/{id}.png:
            get: { parameters: [{ name: id, in: path, required: true, schema: { type: integer } }] }
        components:
          schemas:
            Item:
              type: object
              required: [id, name]
              additionalProperties: false
              properties:
                id: { type: string, readOnly: true }
                name: { type: string, pattern: "^[a-z]+$", maxLength: 5 }
                count: { type: [integer, "null"], multipleOf: 5 }
                at: { type: string, format: date }
                tags: { type: array, uniqueItems: true, items: { type: string } }
                kind: { oneOf: [{ const: a }, { type: integer }] }
        """#

    /// What is wrong with a request, each thing with its location behind the name of the file.
    private static func problems(
        _ method: String,
        _ target: String,
        _ fields: [(String, String)] = [("tenant", "ab"), ("Cookie", "sid=1")],
        body: String? = nil
    ) throws -> [String] {
        let check = try RequestCheck(Array(document.utf8), file: "d")
        var parts = RequestParts(method: method, target: target, fields: Fields(fields))
        if let body { parts.body = .whole(WholeBody(Array(body.utf8))) }
        return check.violations(parts).map { "\($0)" }
    }

    @Test(
        arguments: [
            ("GET", "/items?limit=3", []), ("HEAD", "/v1/items?limit=3&sort=up&ids=1&ids=2&tags=a,b&deep=true", []),
            ("GET", "/items/7", []), ("GET", "/items/7.png", []), ("GET", "/items/%37", []), ("GET", "/items/new", []),
            ("OPTIONS", "/items", []),
            ("GET", "/none", ["path is none of the document (d#/paths)"]),
            ("GET", "/items/7/8", ["path is none of the document (d#/paths)"]),
            ("PUT", "/items", ["method is 'PUT', which the path does not have (d#/paths/~1items)"]),
            ("GET", "/items/x", ["path.id is string, not integer (d#/paths/~1items~1{id}/parameters/0/schema/type)"]),
            ("GET", "/items", ["query.limit is missing (d#/paths/~1items/get/parameters/0/required)"]),
            (
                "GET", "/items?limit=10",
                ["query.limit is more than it may be (d#/paths/~1items/get/parameters/0/schema/maximum)"]
            ),
            (
                "GET", "/items?limit=0x1",
                ["query.limit is string, not integer (d#/paths/~1items/get/parameters/0/schema/type)"]
            ),
            (
                "GET", "/items?limit=1&sort=x",
                [#"query.sort is none of ["up","down"] (d#/paths/~1items/get/parameters/1/schema/enum)"#]
            ),
            (
                "GET", "/items?limit=1&ids=1&ids=a&ids=3",
                [
                    "query.ids has 3 elements, 2 at most (d#/paths/~1items/get/parameters/2/schema/maxItems)",
                    "query.ids/1 is string, not integer (d#/paths/~1items/get/parameters/2/schema/items/type)",
                ]
            ),
            // Whichever of them an origin takes.
            (
                "GET", "/items?limit=1&sort=up&sort=x",
                [#"query.sort is none of ["up","down"] (d#/paths/~1items/get/parameters/1/schema/enum)"#]
            ),
            (
                "GET", "/items?limit=1&limit=zzz",
                ["query.limit is string, not integer (d#/paths/~1items/get/parameters/0/schema/type)"]
            ),
            (
                "GET", "/items?limit=1&deep=yes",
                ["query.deep is string, not boolean (d#/paths/~1items/get/parameters/4/schema/type)"]
            ),
        ] as [(String, String, [String])]
    ) func aRequestIsWhatTheDocumentSays(_ method: String, _ target: String, _ wrong: [String]) throws {
        #expect(try Self.problems(method, target) == wrong)
    }

    @Test func fieldsAndCookiesAreThereWhereTheyMustBe() throws {
        #expect(
            try Self.problems("GET", "/items?limit=1", []) == [
                "cookie.sid is missing (d#/paths/~1items/get/parameters/5/required)",
                "header.tenant is missing (d#/paths/~1items/parameters/0/required)",
            ]
        )
        #expect(
            try Self.problems("GET", "/items?limit=1", [("Tenant", "a"), ("Cookie", "sid=")]) == [
                "header.tenant has 1 characters, 2 at least (d#/paths/~1items/parameters/0/schema/minLength)"
            ]
        )
    }

    @Test(
        arguments: [
            ("application/json", #"{"name":"ab","count":10,"at":"2026-01-02","tags":["x"],"kind":"a"}"#, []),
            ("application/json; charset=utf-8", #"{"name":"ab","count":null,"kind":7}"#, []),
            ("application/json", "", ["body is missing (d#/paths/~1items/post/requestBody/required)"]),
            (
                "application/json", "{",
                [
                    "body is no JSON: the name of a member is missing, at byte 1 (d#/paths/~1items/post/requestBody/content/application~1json)"
                ]
            ),
            (
                "application/json", #"{"name":1,"name":"ab"}"#,
                [
                    "body is no JSON: the member 'name' occurs twice, at byte 16 (d#/paths/~1items/post/requestBody/content/application~1json)"
                ]
            ),
            ("application/json", "[]", ["body is array, not object (d#/components/schemas/Item/type)"]),
            ("application/json", "{}", ["body has no member 'name' (d#/components/schemas/Item/required)"]),
            (
                "application/json", #"{"name":"aB","count":3,"at":"2026-02-30","tags":["x","x"],"kind":"b","more/":1}"#,
                [
                    "body/name does not match ^[a-z]+$ (d#/components/schemas/Item/properties/name/pattern)",
                    "body/count is no multiple of 5 (d#/components/schemas/Item/properties/count/multipleOf)",
                    "body/at is no date (d#/components/schemas/Item/properties/at/format)",
                    "body/tags has an element twice (d#/components/schemas/Item/properties/tags/uniqueItems)",
                    "body/kind is none of what it may be (d#/components/schemas/Item/properties/kind/oneOf)",
                    "body/more~1 is a member that is not known (d#/components/schemas/Item/additionalProperties)",
                ]
            ),
            ("application/x-www-form-urlencoded", "name=ab&count=5&tags=x&tags=y", []),
            (
                "application/x-www-form-urlencoded", "name=abcdef&count=x",
                [
                    "body/name has 6 characters, 5 at most (d#/components/schemas/Item/properties/name/maxLength)",
                    "body/count is string, not integer or null (d#/components/schemas/Item/properties/count/type)",
                ]
            ),
            ("text/csv", "a;b", []),
            (
                "image/png", "x",
                [
                    "header.Content-Type is 'image/png', not application/json or application/x-www-form-urlencoded or text/* (d#/paths/~1items/post/requestBody/content)"
                ]
            ),
        ] as [(String, String, [String])]
    ) func aContentIsWhatItsSchemaSays(_ type: String, _ body: String, _ wrong: [String]) throws {
        #expect(try Self.problems("POST", "/items", [("tenant", "ab"), ("Content-Type", type)], body: body) == wrong)
    }

    @Test func aContentThatWasNotReadIsNotChecked() throws {
        #expect(try Self.problems("POST", "/items", [("tenant", "ab")]) == [])
        let check = try RequestCheck(Array(Self.document.utf8), file: "d")
        #expect(check.unchecked == [])
        // A content that is too long is told of where it would be checked.
        for (type, wrong) in [
            ("application/json", ["body is longer than 'body_limit', and cannot be checked"]), ("text/csv", []),
        ] {
            let fields = Fields([("tenant", "ab"), ("Content-Type", type)])
            let parts = RequestParts(method: "POST", target: "/items", fields: fields, body: .tooLong)
            #expect(check.violations(parts).map { "\($0.part) \($0.reason)" } == wrong)
        }
        #expect(
            check.needsContent(method: "POST", path: "/v1/items") && !check.needsContent(method: "GET", path: "/items")
        )
    }

    /// A schema that names itself many times over takes bounded time, and so does a value that is nested deeply.
    @Test func noSchemaTakesForEver() throws {
        let text =
            ##"{"openapi":"3.0.0","paths":{"/":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},"components":{"schemas":{"A":{"anyOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/A"}]}}}}"##
        let check = try RequestCheck(Array(text.utf8), file: "d")
        var parts = RequestParts(method: "POST", target: "/", fields: Fields([("Content-Type", "application/json")]))
        parts.body = .whole(
            WholeBody(Array(String(repeating: "[", count: 50).utf8) + Array(String(repeating: "]", count: 50).utf8))
        )
        #expect(!check.violations(parts).isEmpty)
    }

    /// A regular expression that goes back for ever is left, and the texts behind it are not compared.
    @Test func noPatternTakesForEver() throws {
        let text =
            ##"{"openapi":"3.0.0","paths":{"/":{"post":{"requestBody":{"content":{"application/json":{"schema":{"type":"array","items":{"type":"string","pattern":"^(a+)+$"}}}}}}}}}"##
        let check = try RequestCheck(Array(text.utf8), file: "d")
        let hostile = "\"" + String(repeating: "a", count: 200) + "!\""
        var parts = RequestParts(method: "POST", target: "/", fields: Fields([("Content-Type", "application/json")]))
        parts.body = .whole(WholeBody(Array("[\(Array(repeating: hostile, count: 2000).joined(separator: ","))]".utf8)))
        let found = check.violations(parts)
        #expect(found.first.map { "\($0.part) \($0.reason)" } == "body/0 takes too long to be compared with ^(a+)+$")
        #expect(found.last?.reason == "is nested too deeply, or is too large, to be checked")
        #expect(found.count == 2)
    }

    /// What the steps do not suffice for is not right, also where a schema says what a value must not be, or names several
    /// of which one holds.
    @Test(arguments: [
        ##"{"not":{"$ref":"#/components/schemas/A"}}"##,
        ##"{"oneOf":[{"type":"array"},{"$ref":"#/components/schemas/A"}]}"##,
        ##"{"anyOf":[{"$ref":"#/components/schemas/A"},{"type":"array"}]}"##,
        #"{"type":"array","uniqueItems":true}"#,
    ])
    func whatIsBeyondTheBudgetIsNotRight(_ schema: String) throws {
        let branch = ##"{"items":{"$ref":"#/components/schemas/A"}}"##
        let nested = "{\"oneOf\":[\(Array(repeating: branch, count: 6).joined(separator: ","))]}"
        let text =
            #"{"openapi":"3.0.0","paths":{"/":{"post":{"requestBody":{"content":{"application/json":{"schema":\#(schema)}}}}}},"components":{"schemas":{"A":\#(nested)}}}"#
        let check = try RequestCheck(Array(text.utf8), file: "d")
        var parts = RequestParts(method: "POST", target: "/", fields: Fields([("Content-Type", "application/json")]))
        let deep = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        let many = (0..<99_000).map(String.init).joined(separator: ",")
        parts.body = .whole(WholeBody(Array((schema.contains("unique") ? "[\(many)]" : deep).utf8)))
        for time in [UInt64.max, 0] {
            let found = check.violations(parts, SchemaBudget(time: time))
            #expect(
                found.last.map { "\($0.part) \($0.reason)" }
                    == "body is nested too deeply, or is too large, to be checked"
            )
        }
    }

    @Test func whatIsNotCheckedIsTold() throws {
        let text = """
            openapi: 3.1.0
            security: [{ key: [] }]
            paths:
              /a:
                get:
                  parameters:
                    - { name: filter, in: query, style: deepObject, schema: { type: object } }
                    - { name: where, in: query, content: { application/json: {} } }
                post:
                  requestBody:
                    content:
                      application/json: { schema: { $ref: "#/components/schemas/A" } }
                put: { requestBody: { $ref: "other.yaml#/body" } }
            components:
              schemas:
                A:
                  if: {}
                  properties:
                    mail: { type: string, format: email }
                    bad: { type: string, pattern: "(" }
                    far: { $ref: "other.yaml#/far" }
                    again: { $ref: "#/components/schemas/A" }
                    count: { type: integer, format: int32 }
                Unused: { contains: {} }
            """
        let schema = "d#/components/schemas/A"
        #expect(
            Set(try RequestCheck(Array(text.utf8), file: "d").unchecked) == [
                "security (d#/security)", "the style deepObject (d#/paths/~1a/get/parameters/0/style)",
                "an object as a parameter (d#/paths/~1a/get/parameters/0/schema)",
                "a parameter with content (d#/paths/~1a/get/parameters/1/content)",
                "a body that is not in this file (d#/paths/~1a/put/requestBody)", "if (\(schema)/if)",
                "the format email (\(schema)/properties/mail/format)",
                "a pattern that is none, since missing closing parenthesis (\(schema)/properties/bad/pattern)",
                "what is not in this file (\(schema)/properties/far)",
            ]
        )
    }

    @Test func whatIsNoDocumentIsAnErrorWithItsLocation() {
        #expect(
            throws: DocumentError(
                DocumentLocation(file: "d", pointer: "/swagger"),
                "this is Swagger 2; convert it to OpenAPI 3 first"
            )
        ) {
            try RequestCheck(Array(#"{"swagger":"2.0"}"#.utf8), file: "d")
        }
    }
}
