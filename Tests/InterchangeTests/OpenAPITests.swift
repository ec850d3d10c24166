// Documents of OpenAPI as demo answers: examples first, and values that the schemas allow.

import Configuration
import Testing
import Trees

@testable import Contracts
@testable import Interchange

@Suite struct OpenAPITests {
    /// A default that its own schema refuses is not taken, and a reference into another file is told as one.
    @Test func whatADocumentGetsWrongIsTold() throws {
        let text =
            ##"{"openapi":"3.0.0","info":{"title":"t"},"paths":{"/a":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","default":{},"required":["n"],"properties":{"n":{"type":"integer","default":7},"o":{"$ref":"other.yaml#/O"},"p":{"$ref":"#/nowhere"}}}}}},"404":{"$ref":"answers.yaml#/NotFound"}}}}}}"##
        let read = try imported(text, .openapi)
        #expect(read.files.map { String(decoding: $0.bytes, as: UTF8.self) }.first?.contains(#""n":7"#) == true)
        #expect(
            Set(read.told.map { String($0.drop { $0 != " " }.dropFirst()) }).isSuperset(of: [
                "changed: its default has no member 'n': another value is made",
                "changed: 'answers.yaml#/NotFound' is in another file, and one file is read: bundle them into one",
            ]),
            "\(read.told)"
        )
    }

    /// The example of a header comes before its named ones, and these before a value that is made for its schema.
    @Test func fieldsHaveTheirExamples() throws {
        let text = """
            openapi: 3.0.0
            info: { title: t }
            paths:
              /a:
                get:
                  responses:
                    "204":
                      headers:
                        X-One: { example: own, examples: { a: { value: named } }, schema: { type: string } }
                        X-Two: { examples: { away: { externalValue: "x.txt" }, here: { $ref: "#/components/examples/two" } } }
                        X-Three: { examples: {}, schema: { type: integer, minimum: 3, maximum: 3 } }
            components: { examples: { two: { value: second } } }
            """
        let read = try imported(text, .openapi)
        #expect(
            Self.endpoints(read) == [
                #"GET /a [{"name":"answer","status":204,"headers":{"X-One":"own","X-Two":"second","X-Three":"3"}}]"#
            ]
        )
        _ = try checked(read)
    }

    private static func pets(_ options: ImportOptions = ImportOptions()) throws -> ImportedConfiguration {
        try imported(String(decoding: sample("pets.yaml"), as: UTF8.self), nil, options)
    }

    /// The endpoints, each as its method, its path, and its rules in one line of JSON.
    private static func endpoints(_ imported: ImportedConfiguration) -> [String] {
        guard case .array(let endpoints)? = imported.services[0]["endpoints"] else { return [] }
        return endpoints.map { endpoint in
            let rules = endpoint.value(at: ["demo", "rules"]) ?? .null
            return "\(endpoint["method"]?.scalar ?? "GET") \(endpoint["path"]?.scalar ?? "") "
                + String(decoding: JSONWriter.bytes(rules), as: UTF8.self)
        }
    }

    @Test func aDocumentBecomesEndpoints() throws {
        let pets = try Self.pets()
        let service = try #require(try checked(pets).services.first)
        #expect(service.name == "pet-shop")
        #expect(
            pets.text(comment: []).contains("match: { prefix: /v1 }\n    base_url: \"https://eu.example.com/v1\"\n")
        )
        #expect(
            Self.endpoints(pets) == [
                #"GET /pets [{"name":"code-500","when":{"fields":{"Prefer":{"matches":"\\bcode=500\\b"}}},"status":500,"file":"listPets-500.json","headers":{"Content-Type":"application/problem+json"}},{"name":"answer","file":"listPets.json","headers":{"Content-Type":"application/json","X-Total":"7"}}]"#,
                #"POST /pets [{"name":"example-dog","when":{"fields":{"Prefer":{"matches":"(?:^|[,;\\s])example=\"?dog\"?(?:$|[,;\\s])"}}},"status":201,"file":"addPet-dog.json","headers":{"Content-Type":"application/json"}},{"name":"code-409","when":{"fields":{"Prefer":{"matches":"\\bcode=409\\b"}}},"status":409,"file":"addPet-409.json","headers":{"Content-Type":"application/json"}},{"name":"answer","status":201,"file":"addPet-cat.json","headers":{"Content-Type":"application/json"}}]"#,
                #"GET /pets/:petId [{"name":"example-text-plain","when":{"fields":{"Accept":{"matches":"\\A\\s*text/plain\\s*(?:$|[,;])"}}},"file":"get-pets-petId.txt","headers":{"Content-Type":"text/plain"}},{"name":"code-404","when":{"fields":{"Prefer":{"matches":"\\bcode=404\\b"}}},"status":404},{"name":"answer","file":"get-pets-petId.json","headers":{"Content-Type":"application/json"}}]"#,
                #"DELETE /pets/:petId [{"name":"answer","status":204}]"#,
                #"GET /tree [{"name":"answer","file":"tree.json","headers":{"Content-Type":"application/json"}}]"#,
                #"GET /report [{"name":"answer"}]"#,
            ]
        )
        #expect(pets.body("addPet-dog.json") == #"{"id":2,"name":"Rex"}"#)
        #expect(pets.body("get-pets-petId.txt") == "7: Ada")
        #expect(
            pets.told == [
                "/components/schemas/Problem/properties/code/pattern changed: no text was made for this pattern; give an example",
                "/paths/~1pets~1{petId}.png/get left out: the path of an endpoint has parameters that are whole segments, and no characters to be encoded",
                "/paths/~1report/get/responses/200/content/application~1xml changed: there is no example, and values are made for JSON and texts alone: the answer has no content",
            ]
        )
    }

    @Test func valuesAreThoseOfTheSeed() throws {
        var options = ImportOptions()
        let first = try Self.pets(options)
        #expect(try Self.pets(options).files == first.files)
        options.seed = 1
        let other = try Self.pets(options)
        #expect(other.body("listPets.json") != first.body("listPets.json"))
        #expect(other.body("addPet-cat.json") == first.body("addPet-cat.json"))
        #expect(
            first.body("tree.json").map {
                $0.hasPrefix(#"{"value":0."#) && $0.hasSuffix(#","left":null,"children":[]}"#)
            } == true
        )
    }

    /// The value that is made for the schema of a document's only response.
    private static func made(_ schema: String, seed: UInt64 = 0, more: String = "{}") throws -> (
        ContentTree, [SchemaViolation], [String]
    ) {
        let text =
            #"{"openapi":"3.1.0","paths":{"/a":{"get":{"responses":{"200":{"content":{"application/json":{"schema":\#(schema)}}}}}}},"components":{"schemas":\#(more)}}"#
        var options = ImportOptions()
        options.seed = seed
        let imported = try imported(text, nil, options)
        let value = try JSONReader.read(imported.files.first?.bytes ?? [])
        let document = try OpenAPIDocument(JSONReader.read(Array(text.utf8)), DocumentLocation(file: "x.json"))
        let responses = try #require(document.operations.first?.part.part("responses")?.part("200")?.part("content"))
        let part = try #require(responses.part("application/json")?.part("schema"))
        return (
            value,
            SchemaCheck.violations(value, part, document, SchemaWords(document).patterns, SchemaBudget(time: .max)),
            imported.told
        )
    }

    @Test(arguments: [
        #"{"type":"integer"}"#, #"{"type":"integer","minimum":7,"maximum":9}"#,
        #"{"type":"integer","exclusiveMinimum":7,"maximum":8}"#,
        #"{"type":"integer","multipleOf":25,"minimum":1}"#, #"{"type":"number","minimum":-0.5,"maximum":0.5}"#,
        #"{"type":"number","maximum":-3}"#, #"{"type":"string","minLength":40,"maxLength":41}"#,
        #"{"type":"string","maxLength":0}"#,
        #"{"type":"string","format":"date-time"}"#, #"{"type":"string","format":"date"}"#,
        #"{"type":"string","format":"uuid"}"#,
        #"{"type":"string","format":"email"}"#, #"{"type":["null","boolean"]}"#, #"{"type":"null"}"#,
        #"{"const":{"a":1}}"#,
        #"{"enum":["x","y"]}"#, #"{"type":"array","items":{"type":"integer"},"minItems":4,"maxItems":4}"#,
        #"{"type":"array","items":{"type":"string"},"maxItems":0}"#, #"{"type":"array"}"#, "{}", "true",
        ##"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"$ref":"#/components/schemas/N"}}}"##,
        #"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        ##"{"oneOf":[{"$ref":"#/components/schemas/N"},{"type":"string"}]}"##,
        #"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        #"{"allOf":[{"required":["n"],"properties":{"n":{"type":"integer"}}},{"properties":{"m":{"type":"boolean"}}}]}"#,
        ##"{"$ref":"#/components/schemas/R"}"##,
    ]) func aValueIsWhatItsSchemaSays(_ schema: String) throws {
        let more =
            ##"{"N":{"type":"integer","minimum":3},"R":{"type":"object","required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#/components/schemas/R"}},"up":{"$ref":"#/components/schemas/R"}}}}"##
        for seed in 0..<20 as Range<UInt64> {
            let (value, violations, told) = try Self.made(schema, seed: seed, more: more)
            #expect(violations.isEmpty, "\(value)")
            #expect(told.isEmpty)
        }
    }

    @Test(arguments: [
        (
            #"{"$ref":"other.yaml#/A"}"#,
            "'other.yaml#/A' is in another file, and one file is read: bundle them into one; the value is null"
        ),
        (##"{"$ref":"#/nowhere"}"##, "'#/nowhere' is not in this file; the value is null"),
        (##"{"$ref":"#/components/schemas/Loop"}"##, "'#/components/schemas/Loop' leads to itself; the value is null"),
        (##"{"$ref":"#/components/schemas/Endless"}"##, "the schema goes on without an end: its value is cut here"),
        (#"{"type":"integer","minimum":2,"maximum":1}"#, "no number is within its bounds"),
    ]) func whatCannotBeMadeIsTold(_ schema: String, _ reason: String) throws {
        let more =
            ##"{"Loop":{"$ref":"#/components/schemas/Loop"},"Endless":{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/components/schemas/Endless"},"b":{"$ref":"#/components/schemas/Endless"}}}}"##
        let told = try Self.made(schema, more: more).2
        #expect(!told.isEmpty && told.allSatisfy { $0.hasSuffix(reason) }, "\(told)")
    }

    @Test(arguments: [
        ("openapi: 2.0\npaths: {}\n", "x.json#/openapi: this is no version that can be read; it has to be 3.0 or 3.1"),
        (#"{"swagger":"2.0"}"#, "x.json#/swagger: this is Swagger 2; convert it to OpenAPI 3 first"),
        ("openapi: 3.0.0\n", "x.json#/paths: there are no paths"),
        ("openapi: 3.0.0\npaths: {a\n", "x.json: this cannot be read: did not find expected ',' or '}', at 3:1"),
        ("openapi: 3.0.0\npaths: {}\npaths: {}\n", "x.json: this cannot be read: 'paths' occurs twice, at 3:1"),
        ("a: &a [1]\nb: [*a, *c]\n", "x.json: this cannot be read: found undefined alias, at 2:9"),
        ("openapi: 3.1.0\npaths: {}\n", "x.json: nothing in it can be made into a rule"),
    ]) func whatCannotBeReadIsAnErrorWithItsLocation(_ text: String, _ error: String) {
        #expect { try imported(text) } throws: {
            "\($0)" == error
        }
    }

    @Test func damagedFilesAreErrorsOrRightConfigurations() throws {
        let bytes = try sample("pets.yaml")
        var random = SeededGenerator(17)
        let values = [
            " null", " -1", " \"\"", " [x]", " {}", " \"${x}\"", " true", " \"#/paths\"",
            " { $ref: \"#/components/schemas/Tree\" }",
        ]
        var written = 0
        for _ in 0..<200 {
            var text = bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let colons = text.indices.dropLast().filter {
                    text[$0] == UInt8(ascii: ":") && text[$0 + 1] == UInt8(ascii: " ")
                }
                guard let colon = colons.randomElement(using: &random) else { continue }
                let end = text[colon...].firstIndex { ",}\n".utf8.contains($0) } ?? text.endIndex
                text.replaceSubrange(colon + 1..<end, with: Array(values.randomElement(using: &random)!.utf8))
            }
            guard
                let pets = try? Importer.read(
                    [ImportSource(name: "x", bytes: text)],
                    .openapi,
                    ImportOptions(),
                    bodyFile: { _ in nil }
                )
            else { continue }
            written += 1
            try checked(pets)
        }
        #expect(written > 50)
    }
}
