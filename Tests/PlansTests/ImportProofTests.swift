// Imports that prove themselves: each request of a source is asked of the rules, and its own rule has to answer it.

import Configuration
import Foundation
import Interchange
import TestSupport
import Testing

@testable import Plans

@Suite struct ImportProofTests {
    /// Reads a source, writes its configuration, and asks.
    private static func proof(_ text: String, _ format: ImportFormat? = nil) throws -> ImportProof {
        let source = ImportSource(name: "x.json", bytes: Array(text.utf8))
        let imported = try Importer.read([source], format, ImportOptions()) { _ in nil }
        let folder = try TemporaryFolder("proof")
        try folder.folder("bodies")
        for file in imported.files { try folder.write("bodies/\(file.name)", file.bytes) }
        let path = try folder.write("drydock.yaml", imported.text(comment: ["a test"]))
        return try ImportProof(imported, try Configuration.load(path: path, environment: [:]))
    }

    private static func stub(_ request: String, _ more: String = "") -> String {
        #"{"request":{\#(request)},"response":{}\#(more)}"#
    }

    @Test func whatAnotherRuleAnswersIsTold() throws {
        // Among equals the last one comes first.
        let stubs = [
            Self.stub(#""url":"/a?b=1","method":"GET""#, #","name":"hidden""#),
            Self.stub(#""urlPath":"/a""#, #","name":"wide""#),
            Self.stub(#""urlPath":"/b","queryParameters":{"c":{"contains":"x"}},"cookies":{"d":{"equalTo":"1"}}"#),
            Self.stub(#""urlPath":"/c","method":"POST","bodyPatterns":[{"equalToJson":{"n":1}}]"#),
            Self.stub(#""urlPath":"/d""#, #","scenarioName":"s","requiredScenarioState":"two""#),
            Self.stub(
                #""urlPath":"/d""#,
                #","scenarioName":"s","requiredScenarioState":"Started","newScenarioState":"two""#
            ),
            Self.stub(#""urlPathPattern":"/e/.*""#),
        ]
        let proof = try Self.proof(#"{"mappings":[\#(stubs.joined(separator: ","))]}"#)
        #expect(proof.asked == 6)
        #expect(
            proof.notes.map(\.description) == [
                "x.json#/mappings/0: answered by another rule: the rule 'wiremock/wide' answers GET /a?b=1, of which 'wiremock/hidden' was made"
            ]
        )
    }

    @Test func otherFormatsProveThemselves() throws {
        let har =
            #"{"log":{"entries":[{"request":{"method":"POST","url":"http://h/a?b=c%20d","postData":{"mimeType":"application/json","text":"{\"n\":1}"}},"response":{"status":200,"content":{"text":"x"}}},{"request":{"method":"POST","url":"http://h/a?b=c%20d","postData":{"mimeType":"application/json","text":"{\"n\":2}"}},"response":{"status":201,"content":{"text":"y"}}}]}}"#
        let postman =
            #"{"info":{"name":"c"},"item":[{"request":{"url":"http://h/a/:id/b?q=1"},"response":[{"name":"one","code":200},{"name":"two","code":404}]}]}"#
        let openAPI =
            #"{"openapi":"3.0.0","info":{"title":"t"},"paths":{"/a/{id}":{"get":{"responses":{"200":{"description":""}}}},"/a/new":{"get":{"responses":{"200":{"description":""}}}}}}"#
        for (text, asked) in [(har, 2), (postman, 3), (openAPI, 2)] {
            let proof = try Self.proof(text)
            #expect(proof.asked == asked)
            #expect(proof.notes.isEmpty, "\(proof.notes)")
        }
    }
}
