// Documents that requests are checked by: what of them is not checked is a warning.

import Policies
import Testing

@testable import Configuration

@Suite struct OpenAPIKeyTests {
    private static func load(_ document: String) throws -> Configuration {
        let folder = try Folder()
        try folder.write("shop.yaml", document)
        let text =
            "services:\n  - { name: s, match: { prefix: / }, demo: { enabled: true, body: x }, openapi: shop.yaml }\n"
        let file = try folder.write("drydock.yaml", text)
        let loaded = try Configuration.load(path: file, environment: [:])
        let openAPI = try #require(loaded.services.first?.openAPI)
        #expect(openAPI.file == folder.path + "/shop.yaml")
        #expect((openAPI.validate, openAPI.bodyLimit) == (.report, 1 << 20))
        #expect(loaded.answerFiles == [openAPI.file])
        return loaded
    }

    @Test func whatIsNotCheckedIsAWarning() throws {
        #expect(try Self.load("openapi: 3.0.0\npaths: { /a: { get: {} } }\n").warnings.isEmpty)
        let formats = (1...7).map { "{ name: p\($0), in: query, schema: { format: f\($0) } }" }
        let parameters = formats.joined(separator: ", ")
        let loaded = try Self.load("openapi: 3.0.0\npaths: { /a: { get: { parameters: [\(parameters)] } } }\n")
        let warning = try #require(loaded.warnings.first)
        #expect(loaded.warnings.count == 1 && (warning.position.line, warning.position.column) == (2, 81))
        let start = "not all that the document under 'openapi' says of requests is checked; left out: the format f1 ("
        #expect(warning.message.hasPrefix(start), "\(warning.message)")
        #expect(warning.message.contains("shop.yaml#/paths/~1a/get/parameters/4/schema/format) and 2 more"))
    }

    @Test func aDocumentWithoutPathsIsAWarning() throws {
        let said = try Self.load("openapi: 3.0.0\npaths: {}\n").warnings
        #expect(said.map(\.position.column) == [81])
        #expect(said.first?.message.hasPrefix("the document under 'openapi' has no paths") == true, "\(said)")
    }
}
