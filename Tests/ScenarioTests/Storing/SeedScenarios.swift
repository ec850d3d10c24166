// Seed folders around a real daemon: what answers from them, on either way to it, and what a reload finds.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Seeds {
        static let fields = [("Cache-Control", "max-age=60")]

        private func settings(_ origin: ScriptedOrigin, _ folder: TemporaryFolder, _ keys: String = "")
            -> DaemonSettings
        {
            let cache = "cache: { seed_dir: \"\(folder.file("seed"))\"\(keys) }"
            var settings = services(service("api", origin.url, cache))
            settings.rest += "forward: { allow: [127.0.0.1], \(cache) }\n"
            return settings
        }

        @Test func aPinnedSeedAnswersFirst() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "origin") }
            let seed = "seed/\(origin.authority)"
            try folder.write("\(seed)/other", "other seed")
            let daemon = try Daemon(settings(origin, folder))
            #expect(try daemon.exchange("/api/x").text == "origin")
            #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "memory")
            // Found at the next reload, also by a connection whose last request was a hit in memory.
            try folder.write("\(seed)/x", "seed")
            let client = try daemon.client()
            let host = "127.0.0.1:\(daemon.port)"
            #expect(try client.exchange("GET", "/api/x", host: host).text == "origin")
            #expect(try daemon.command("reload").succeeded)
            for _ in 0..<2 {
                let answer = try client.exchange("GET", "/api/x", host: host)
                #expect(answer.status == 200 && answer.text == "seed", "\(answer.head)")
                #expect(answer.cacheStatus?.isHit == true && answer.cacheStatus?.detail == "seed", "\(answer.head)")
            }
            #expect(try daemon.exchange(origin.url + "/x").cacheStatus?.detail == "seed")
            #expect(try daemon.exchange("HEAD", "/api/x").field("Content-Length") == "4")
            let part = try daemon.exchange("/api/x", fields: [("Range", "bytes=1-2")])
            #expect(part.status == 206 && part.text == "ee")
            #expect(try daemon.exchange("/api/x", fields: [("Cache-Control", "no-cache")]).text == "origin")
            #expect(try daemon.exchange("/api/x").text == "seed")
            #expect(origin.requests() == 2)
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("\ndrydock_seed_files 2\n"))
            #expect(metrics.contains("\ndrydock_seed_answers_total 6\n"), "\(metrics)")
            #expect(daemon.errors.contains("seed folder opened"), "\(daemon.errors)")
        }

        @Test func nothingOutsideIsRead() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "origin") }
            try folder.write("seed/\(origin.authority)/x", "seed")
            try folder.write("secret", "secret")
            let links = FileManager.default
            try links.createSymbolicLink(
                atPath: folder.file("seed/\(origin.authority)/link"),
                withDestinationPath: folder.file("secret")
            )
            let daemon = try Daemon(settings(origin, folder))
            for path in [
                "/../secret", "/../../secret", "/x/../../../secret", "/%2e%2e/%2e%2e/secret", "/..%2f..%2fsecret",
                "/link",
                "//secret", "/x%00", "/\(String(repeating: "a", count: 400))", "/~", "/x.head.json",
            ] {
                #expect(try daemon.exchange("/api" + path).text == "origin", "\(path)")
            }
            #expect(try daemon.exchange("/api/x").text == "seed")
        }

        @Test func aBrokenFolderChangesNothing() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "origin") }
            try folder.write("seed/\(origin.authority)/x", "seed")
            try folder.write("seed/\(origin.authority)/y", "seed")
            try folder.write("seed/\(origin.authority)/y.head.json", "no JSON")
            let daemon = try Daemon(settings(origin, folder))
            #expect(try daemon.exchange("/api/y").text == "origin")
            #expect(daemon.errors.contains("\(origin.authority)/y is left out"), "\(daemon.errors)")
            try FileManager.default.moveItem(atPath: folder.file("seed"), toPath: folder.file("moved"))
            let reload = try daemon.command("reload")
            #expect(reload.end == .exited(1) && reload.report.contains("'cache.seed_dir'"), "\(reload.report)")
            try FileManager.default.moveItem(atPath: folder.file("moved"), toPath: folder.file("seed"))
            #expect(try daemon.exchange("/api/x").text == "seed")
        }

        @Test func anImportedSeedIsCheckedFirst() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: Self.fields + [("ETag", "\"e\"")], "four")
            }
            let seed = "seed/\(origin.authority)"
            try folder.write("\(seed)/x", "seed")
            try folder.write("\(seed)/x.head.json", "{ \"fields\": [[\"ETag\", \"\\\"e\\\"\"]] }")
            let daemon = try Daemon(settings(origin, folder, ", seed_mode: import"))
            #expect(
                eventually { daemon.errors.contains("seeds imported") && daemon.errors.contains("\"imported\":\"1\"") }
            )
            let list = try daemon.command("list")
            #expect(list.output.contains("\(origin.url)/x"), "\(list.report)")
            let first = try daemon.exchange("/api/x")
            #expect(first.text == "seed" && first.cacheStatus?.detail == "revalidated", "\(first.head)")
            #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "memory")
            #expect(origin.requests() == 1)
            // A restart copies nothing over it.
            try daemon.restart()
            #expect(eventually { daemon.errors.contains("\"kept\":\"1\"") }, "\(daemon.errors)")
            #expect(try daemon.exchange("/api/x").cacheStatus?.isHit == true)
        }

        @Test("a folder with the old download manager's names answers first, and what it lacks is fetched")
        func aFolderWithOldNamesAnswersFirst() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "origin") }
            // Several slashes in a row count as one in the digest.
            let digest = try Shell.run("md5sum", input: Array("http:/\(origin.authority)/images/previews".utf8))
            let name = "\(digest.output.prefix(32))_street.jpg"
            try folder.write("seed/\(name)", "seed")
            let dates =
                "<plist version=\"1.0\"><dict><key>\(name)</key><date>2014-05-13T16:53:20Z</date></dict></plist>"
            try folder.write("seed/ResourceInfos.plist", dates)
            let daemon = try Daemon(settings(origin, folder, ", seed_layout: docker"))
            for target in ["/api/images/previews/street.jpg", origin.url + "/images/previews/street.jpg"] {
                let answer = try daemon.exchange(target)
                #expect(answer.status == 200 && answer.text == "seed", "\(answer.head)")
                #expect(answer.cacheStatus?.detail == "seed", "\(answer.head)")
                #expect(answer.field("Content-Type") == "image/jpeg", "\(answer.head)")
                #expect(answer.field("Last-Modified") == "Tue, 13 May 2014 16:53:20 GMT", "\(answer.head)")
            }
            #expect(origin.requests() == 0)
            #expect(try daemon.exchange("/api/images/other/street.jpg").text == "origin")
            #expect(try daemon.exchange("/api/images/previews/other.jpg").text == "origin")
            #expect(origin.requests() == 2)
        }

        @Test func whatIsExportedIsImportedElsewhere() throws {
            let folder = try TemporaryFolder("drydock-seeds")
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "text of \($0.target)") }
            let daemon = try Daemon(services(service("api", origin.url)))
            for path in ["/a.json", "/b/", "/b/c?d=e"] { _ = try daemon.exchange("/api" + path) }
            let seed = folder.file("out/seed")
            let onDisk = { try daemon.command("list", "--tier", "disk").output.split(separator: "\n").count }
            #expect(try eventually { try onDisk() == 3 })
            let done = try daemon.command("seed", "export", seed)
            #expect(done.succeeded && done.output.hasPrefix("3 written ("), "\(done.report)")
            #expect(folder.text("out/seed/\(origin.authority)/a.json") == "text of /a.json")
            #expect(folder.text("out/seed/\(origin.authority)/b/c?d=e") == "text of /b/c?d=e")
            for (service, count) in [("api", 3), ("forward", 0)] {
                let only = try daemon.command("seed", "export", folder.file(service), "--service", service, "--json")
                #expect(only.output.contains("\"written\":\(count)"), "\(only.report)")
            }
            let unknown = try daemon.command("seed", "export", seed, "--service", "apis")
            #expect(unknown.report.contains("no service is called apis; did you mean 'api'?"), "\(unknown.report)")
            let refused = try daemon.command("seed", "export", "/proc/no/such")
            #expect(refused.end == .exited(1) && refused.report.contains("seed folder"), "\(refused.report)")

            let other = try Daemon(services(service("api", origin.url)))
            let imported = try other.command("seed", "import", seed)
            #expect(
                imported.output == "3 imported, 0 stored already, 0 unknown, 0 refused, 0 failed\n",
                "\(imported.report)"
            )
            #expect(
                try other.command("seed", "import", seed, "--layout", "url", "--json").output.contains("\"kept\":3")
            )
            #expect(try other.command("offline", "on").succeeded)
            #expect(try other.exchange("/api/b/c?d=e").text == "text of /b/c?d=e")
            #expect(try other.command("seed", "import", folder.file("nothing")).end == .exited(1))
            #expect(try other.command("seed", "import", seed, "--layout", "tar").end == .exited(2))
        }

        @Test func anEndpointIsKeptAsAFile() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: Self.fields, "text of \($0.target)") }
            let endpoint = "endpoints: [{ name: e, path: /world.json, cache: { store_as: maps/world.json } }]"
            let daemon = try Daemon(services(service("api", origin.url, endpoint)))
            let path = daemon.home.cache + "/files/maps/world.json"
            #expect(try daemon.exchange("/api/world.json").status == 200)
            #expect(eventually { readText(path) == "text of /world.json" })
            #expect(try daemon.exchange("/api/world.json?other").status == 200)
            #expect(try eventually { try daemon.command("list", "--json").output.contains("?other") })
            #expect(readText(path) == "text of /world.json")
            // A file that is missing is written from what is stored.
            try FileManager.default.removeItem(atPath: path)
            #expect(try daemon.command("reload").succeeded)
            #expect(eventually { readText(path) == "text of /world.json" })
        }
    }
}
