// The table of keys alone has defaults: what is resolved has those, and no other
// is written in the sources.

import Foundation
import KeySupport
import Testing

@testable import Configuration

@Suite(SharedKeyFolder()) struct DefaultTests {
    /// All but the one that the base document needs for itself.
    static let cases = KeyCase.all().filter {
        $0.key.kind.section == nil && $0.key.defaultText != nil && $0.description != "cache.disk.path"
    }

    @Test(arguments: cases)
    func ofTheTableIsTheOneThatIsResolved(_ one: KeyCase) throws {
        let folder = try #require(SharedKeyFolder.current)
        let way = one.way.map(\.name) + [one.key.name]
        var before = KeyDocuments.document(around: one)
        // A failure is there only where it is given.
        if one.way.last?.name == "failure" { before = before.setting(way.dropLast() + ["file"], to: "x.json") }
        let said = before.setting(way[...], to: one.key.defaultText ?? "")
        let (explicit, implicit) = try folder.loadBoth(said, before)
        #expect(explicit == implicit)
    }

    @Test func ofTheModelAreThoseOfTheTable() throws {
        #expect(try load("") == Configuration())
        #expect(try load("cache: { disk: {} }").cache.disk == DiskTierConfiguration(path: "/var/cache/drydock"))
        #expect(Configuration().limits == LimitsConfiguration())
        #expect(Configuration().forward.cache == CacheConfiguration())
        let text = "services:\n" + service("s", "endpoints: [{ name: e, path: /e }]")
        let loaded = try #require(try load(text).services.first)
        var made = ServiceConfiguration(name: loaded.name, match: loaded.match, baseURL: loaded.baseURL)
        let endpoint = try #require(loaded.endpoints.first)
        made.endpoints = [EndpointConfiguration(name: "e", path: endpoint.path)]
        #expect(loaded == made)
    }

    @Test func standsNowhereButInTheTable() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/Configuration")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        #expect(paths.count > 30)
        for path in paths {
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            let name = path.split(separator: "/").last ?? ""
            for line in text.split(separator: "\n") {
                #expect(!line.contains("?? result."), "\(name): \(line)")
                // Another value of the model, a list or nothing at all may stand there: no key has them for its default.
                guard let initial = line.wholeMatch(of: #/    package var .* = (.*)/#)?.1 else { continue }
                #expect(["[]", "[:]"].contains(initial) || initial.hasSuffix("()"), "\(name): \(line)")
            }
        }
    }
}
