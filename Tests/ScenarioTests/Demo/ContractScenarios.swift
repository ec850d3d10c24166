// Requests that are checked by a document of OpenAPI, in the daemon: reported or refused, whoever answers.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Contracts {
        @Test func requestsAreReportedOrRefused() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=60")], "[]")
            }
            let home = try DaemonHome()
            let document = Imports.sample("pets.yaml")
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    journal: 1MiB
                    services:
                      - name: lax
                        match: { prefix: /lax }
                        base_url: \(origin.url)
                        openapi: \(document)
                      - name: strict
                        match: { prefix: /strict }
                        base_url: \(origin.url)
                        openapi: { file: \(document), validate: refuse, body_limit: 1KiB }
                      - name: short
                        match: { prefix: /short }
                        base_url: \(origin.url)
                        openapi: { file: \(document), body_limit: 1KiB }
                      - name: played
                        match: { prefix: /played }
                        demo: { enabled: true, body: played }
                        openapi: { file: \(document), validate: refuse }
                    """
                ),
                at: home
            )
            let right = try daemon.exchange("/lax/pets?limit=5")
            #expect((right.status, right.field("Drydock-OpenAPI")) == (200, nil))
            let stored = try daemon.exchange("/lax/pets?limit=5")
            #expect(stored.field("Cache-Status")?.contains("hit") == true)
            // A hit is checked as well: the request is another one each time.
            for _ in 0..<2 {
                let wrong = try daemon.exchange("/lax/pets?limit=500")
                #expect(wrong.status == 200)
                #expect(
                    wrong.field("Drydock-OpenAPI")
                        == #"violations=1; first="query.limit is more than it may be (pets.yaml#/paths/~1pets/get/parameters/0/schema/maximum)""#
                )
            }
            let asked = origin.requests()
            let refused = try daemon.exchange("/strict/pets?limit=500")
            let problem = try JSONSerialization.jsonObject(with: Data(refused.body)) as? [String: Any]
            #expect((refused.status, refused.field("Content-Type")) == (400, "application/problem+json"))
            #expect(
                problem?["detail"] as? String
                    == "the document under 'openapi' of service strict does not describe this request: query.limit is more than it may be (pets.yaml#/paths/~1pets/get/parameters/0/schema/maximum); correct the request or the document, or write validate: report"
            )
            func post(_ target: String, _ body: some Sequence<UInt8>, coding: String = "identity") throws -> RawResponse
            {
                try daemon.exchange(
                    "POST",
                    target,
                    fields: [
                        ("Content-Type", "application/json"), ("X-Request", "6F9619FF-8B86-4011-B42D-00CF4FC964FF"),
                        ("Content-Encoding", coding),
                    ],
                    body: Array(body)
                )
            }
            let pet = try post("/strict/pets", #"{"name":"","tags":[1]}"#.utf8)
            #expect(pet.status == 400)
            for part in [
                "body/name has 0 characters",
                "body/tags/0 is a number, not string (pets.yaml#/components/schemas/NewPet/properties/tags/items/type)",
            ] {
                #expect(pet.text.contains(part), "\(pet.text)")
            }
            #expect(try daemon.exchange("/strict/none").status == 400)
            #expect(origin.requests() == asked)
            // What was read to be checked arrives whole, and so does what is longer than the limit, which is told of.
            let name = #"{"name":"Ada"}"#
            let long = #"{"name":""# + String(repeating: "x", count: 100_000) + #""}"#
            #expect(try post("/strict/pets", name.utf8).status == 200)
            #expect(origin.log.last?.body == Array(name.utf8))
            let told = try post("/short/pets", long.utf8)
            #expect(told.status == 200)
            #expect(told.field("Drydock-OpenAPI")?.contains("body is longer than 'body_limit'") == true)
            #expect(origin.log.last?.body == Array(long.utf8))
            #expect(try post("/strict/pets", long.utf8).text.contains("body is longer than 'body_limit'"))
            // The codings of a content are taken off first.
            for (coding, bytes) in Coded.jsonBy where coding != "identity" {
                let refused = try post("/strict/pets", bytes, coding: coding).text
                #expect(refused.contains("body has no member 'name'"), "\(coding): \(refused)")
            }
            for (coding, why) in [("gzip", "does not have the coding"), ("zstd", "a coding that is not known")] {
                #expect(try post("/strict/pets", name.utf8, coding: coding).text.contains(why), "\(coding)")
            }
            #expect(try daemon.exchange("/played/pets?limit=1").text == "played")
            #expect(try daemon.exchange("/played/pets").status == 400)
            #expect(try daemon.metric("drydock_openapi_violations_total") == 14)
            let entries = try daemon.command("journal", "--json", "--service", "played").output
            #expect(entries.contains("query.limit is missing (pets.yaml#"), "\(entries)")
            let explained = try daemon.command("explain", "/strict/pets").output
            #expect(explained.contains("checked by     pets.yaml, refuse (configuration, openapi)"), "\(explained)")
            #expect(eventually { daemon.errors.contains("a request is not as the document of its service says") })
        }

        @Test func aDocumentIsReadAgain() throws {
            let home = try DaemonHome()
            let document = try home.folder.write(
                "shop.yaml",
                #"{ "openapi": "3.0.0", "paths": { "/old": { "get": {} } } }"#
            )
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        demo: { enabled: true, body: played }
                        openapi: { file: \(document), validate: refuse }
                    """
                ),
                at: home
            )
            func statuses() throws -> [Int?] {
                try ["/shop/old", "/shop/new"].map { try daemon.exchange($0).status }
            }
            #expect(try statuses() == [200, 400])
            let new =
                "openapi: 3.1.0\npaths:\n  /new:\n    get: { parameters: [{ name: a, in: query, style: deepObject }] }\n"
            try home.folder.write("shop.yaml", new)
            #expect(try daemon.command("reload").succeeded)
            #expect(try statuses() == [400, 200])
            let left = "left out: the style deepObject (\(document)#/paths/~1new/get/parameters/0/style)"
            #expect(eventually { daemon.errors.contains(left) })
            // A change is in force by itself.
            try home.folder.write("shop.yaml", new.replacing("/new", with: "/old"))
            #expect(eventually { (try? statuses()) == [200, 400] })
            // One that is broken is told with its line, and the one before stays in force.
            try home.folder.write("shop.yaml", "openapi: 3.1.0\npaths: { /a: [\n")
            let refused = try daemon.command("reload")
            #expect(!refused.succeeded && refused.errors.contains("at 3:1"), "\(refused.report)")
            #expect(try statuses() == [200, 400])
        }
    }
}
