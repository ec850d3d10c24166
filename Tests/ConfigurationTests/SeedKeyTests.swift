// Seeds and stored files in the configuration: inheritance, what they need beside them, what is refused.

import Foundation
import Policies
import Testing

@testable import Configuration

@Suite struct SeedKeyTests {
    private func text(_ lines: String..., disk: Bool = true) -> String {
        let head = disk ? "cache: { disk: { path: tier } }\n" : ""
        return head + "services:\n" + service("a", "endpoints:") + lines.map { "      " + $0 + "\n" }.joined()
    }

    /// One error at the last value of `store_as`.
    private func expectRefused(_ text: String, _ part: String, location: SourceLocation = #_sourceLocation) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let line = lines.lastIndex(where: { $0.contains("store_as: ") }),
            let key = lines[line].range(of: "store_as: ")
        else { return }
        let column = lines[line].distance(from: lines[line].startIndex, to: key.upperBound) + 1
        expectError(text, "\(line + 1):\(column)", [part], location: location)
    }

    @Test func `a folder is inherited, and the nearest word counts`() throws {
        let folder = try Folder()
        try folder.write("seed/x", "")
        try folder.write("own/x", "")
        let text = """
            defaults: { cache: { seed_dir: ./seed, seed_layout: docker } }
            forward: { cache: { seed_dir: own } }
            services:
              - name: a
                match: { prefix: /a }
                base_url: https://a.example
                endpoints:
                  - { name: e, path: /e, cache: { seed_dir: ./own, seed_mode: import } }
              - { name: b, match: { prefix: /b }, base_url: "https://b.example", cache: { seed_mode: import } }
            """
        let configuration = try folder.load(text)
        let seeds = configuration.services.map(\.cache.seed) + [configuration.services[0].endpoints[0].cache.seed]
        #expect(seeds.map { $0?.path.split(separator: "/").last } == ["seed", "seed", "own"])
        #expect(seeds.map(\.?.mode) == [.pinned, .imported, .imported])
        #expect(seeds.map(\.?.layout) == [.hashed, .hashed, .hashed])
        #expect(configuration.forward.cache.seed?.layout == .url)
    }

    @Test func `what a folder needs`() throws {
        let folder = try Folder()
        try folder.write("file", "")
        for (path, reason) in [("./nowhere", "does not exist"), ("./file", "is not a folder")] {
            let error = #expect(throws: ConfigurationErrors.self) {
                try folder.load("forward: { cache: { seed_dir: \(path) } }\n")
            }
            #expect(error?.errors.first?.message.contains(reason) == true, "\(path)")
            #expect(error?.errors.first?.message.hasPrefix("'cache.seed_dir'") == true, "\(path)")
        }
        expectError("forward: { cache: { seed_mode: copy } }\n", "1:32", ["pinned, import"])
    }

    @Test func `a stored file is one resource's`() throws {
        let one = text("- { name: e, path: /e, cache: { store_as: maps/world.json } }")
        #expect(try load(one).services[0].endpoints[0].cache.storeAs == "maps/world.json")
        for path in ["/e/:id", "/e/*"] {
            expectRefused(text("- { name: e, path: \"\(path)\", cache: { store_as: x } }"), "is not one")
        }
        expectRefused(text("- { name: e, path: /e, method: PUT, cache: { store_as: x } }"), "'PUT /e' is not one")
        for cache in ["disk: off", "mode: none"] {
            let keys = "cache: { \(cache), store_as: x }"
            expectRefused(text("- { name: e, path: /e, \(keys) }"), "which this endpoint does not use")
        }
        expectRefused(
            text("- { name: e, path: /e, cache: { store_as: x } }", disk: false),
            "set the daemon's 'cache.disk'"
        )
        expectRefused(
            text("- { name: e, path: /e, cache: { store_as: x } }", "- { name: f, path: /f, cache: { store_as: x } }"),
            "the endpoint 'e' is already stored as 'x'"
        )
        for path in ["/x", "../x", "a/../x", "a//x", "x/", ".", "a/./b", "\"a\\nb\""] {
            expectRefused(text("- { name: e, path: /e, cache: { store_as: \(path) } }"), "is not a relative path")
        }
        expectError("services:\n" + service("a", "cache: { store_as: x }"), "5:14", ["unknown key 'store_as'"])
    }
}
