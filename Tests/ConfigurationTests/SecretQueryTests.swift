// Query items that carry credentials: by their name, or since the configuration says so.

import Policies
import Testing

@testable import Configuration

@Suite struct SecretQueryTests {
    @Test func itemsByNameAndByWord() throws {
        let text = """
            defaults: { query: { appid: { value: d3fault, secret: true } } }
            services:
              - name: a
                match: { prefix: /a }
                base_url: http://127.0.0.1:9
                query:
                  page: 1
                  tag: [a, b]
                  api_key: plain
                  sort_key: { value: name, secret: false }
                  list: { value: [x, y], secret: true }
                  bare: { value: z }
                endpoints:
                  - { name: e, path: /e, query: { page: { value: 2, secret: true }, appid: open } }
            """
        let service = try #require(try load(text).services.first)
        #expect(
            service.query == [
                QueryRule(name: "appid", values: ["d3fault"], isSecret: true),
                QueryRule(name: "page", values: ["1"], isSecret: false),
                QueryRule(name: "tag", values: ["a", "b"], isSecret: false),
                QueryRule(name: "api_key", values: ["plain"], isSecret: true),
                QueryRule(name: "sort_key", values: ["name"], isSecret: false),
                QueryRule(name: "list", values: ["x", "y"], isSecret: true),
                QueryRule(name: "bare", values: ["z"], isSecret: false),
            ]
        )
        let endpoint = try #require(service.endpoints.first)
        #expect(endpoint.query.filter(\.isSecret).map(\.name) == ["page", "api_key", "list"])
        #expect(endpoint.query.first { $0.name == "appid" }?.values == ["open"])
    }

    @Test func whatIsWrongIsToldAtItsPosition() {
        let text = "services:\n" + service("a")
        expectError(text + "    query: { k: { secret: true } }\n", "5:17", ["'services.query.k'", "needs 'value'"])
        expectError(text + "    query: { k: { value: 1, secert: true } }\n", "5:29", ["did you mean 'secret'?"])
        expectError(text + "    query: { k: { value: 1, secret: maybe } }\n", "5:37", ["secret"])
        expectError(text + "    query: { k: { value: { a: b } } }\n", "5:26", ["value"])
    }

    @Test func valuesAreHiddenAndReadBack() throws {
        let text =
            "services:\n"
            + service(
                "a",
                "query: { page: 1, appid: { value: s3cret1, secret: true }, more: { value: [s3cret2, s3cret3], secret: true }, "
                    + "accessToken: s3cret4, sort_key: { value: open, secret: false }, env: { value: \"${E}\", secret: false } }"
            )
        let loaded = try load(text, environment: ["E": "s3cret5"])
        let shown = loaded.shown()
        #expect(!shown.contains("s3cret"), "\(shown)")
        #expect(shown.contains("page: 1, appid: { value: \"(hidden)\", secret: true }"), "\(shown)")
        #expect(shown.contains("sort_key: { value: open, secret: false }"), "\(shown)")
        let whole = loaded.text(hidingSecrets: false)
        #expect(whole.split(separator: "s3cret").count == 6)
        #expect(try load(whole) == loaded)
    }
}
