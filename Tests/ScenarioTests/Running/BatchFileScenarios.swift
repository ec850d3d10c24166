// Items of a prefetch that name a file, with the command and a real daemon.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct BatchFiles {
        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                switch request.target {
                case "/missing": .answer(404, to: request, "none")
                case "/moved": .answer(302, to: request, fields: [("Location", "/new")], "")
                case "/private": .answer(to: request, fields: [("Cache-Control", "no-store")], "not stored")
                default: .answer(to: request, fields: [("Cache-Control", "max-age=600")], "text of \(request.target)")
                }
            }
        }

        @Test("what a list names a file for is a file below the disk tier, also where it was stored or moved")
        func aListNamesFiles() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            let files = daemon.home.cache + "/files"
            let list = try daemon.home.folder.write(
                "list",
                """
                {"url": "/api/a", "file": "maps/a.txt"}
                {"url": "/api/moved", "file": "maps/moved.txt"}
                {"url": "/api/private", "file": "private.txt"}
                {"url": "/api/missing", "file": "missing.txt"}
                {"url": "/api/b"}
                {"url": "/api/c", "file": "../c.txt"}

                """
            )
            let done = try daemon.command("prefetch", "--serial", "--file", list)
            #expect(done.end == .exited(1), "\(done.report)")
            #expect(
                done.output == """
                    failed  /api/missing  to missing.txt  (the origin answered 404 Scripted)
                    failed  /api/c  to ../c.txt  ('../c.txt' is not a relative path; write one such as maps/world.json, without empty segments or dot segments)
                    job 1 failed, 6 items: 4 downloaded, 42 B (1 not stored), 2 failed

                    """,
                "\(done.report)"
            )
            #expect(readText(files + "/maps/a.txt") == "text of /a")
            #expect(readText(files + "/maps/moved.txt") == "text of /new")
            #expect(readText(files + "/private.txt") == "not stored")
            let names = FileManager.default.enumerator(atPath: files)?.compactMap { $0 as? String }
            #expect(names?.sorted() == ["maps", "maps/a.txt", "maps/moved.txt", "private.txt"])

            // Nothing is asked for what is stored; a file that somebody has changed is written anew.
            origin.forgetRequests()
            try daemon.home.folder.write("cache/files/maps/a.txt", "changed by somebody")
            let one = try daemon.home.folder.write("one", "{\"url\": \"/api/a\", \"file\": \"maps/a.txt\"}\n")
            let sized = try daemon.command("size", "--save", "--file", one)
            #expect(sized.output.hasPrefix("1 item: 1 to download, 0 B, 1 valid\n"), "\(sized.report)")
            #expect(readText(files + "/maps/a.txt") == "changed by somebody")
            let again = try daemon.command("prefetch", "--job", "2", "--json")
            #expect(again.output.contains("\"file\":\"maps/a.txt\",\"outcome\":\"valid\""), "\(again.report)")
            #expect(readText(files + "/maps/a.txt") == "text of /a")
            #expect(origin.requests() == 0)
        }

        @Test("without a disk tier an item with a file fails, and the others do not")
        func withoutADiskTier() throws {
            let origin = try Self.origin()
            var settings = services(service("api", origin.url))
            settings.disk = nil
            let daemon = try Daemon(settings)
            let list = try daemon.home.folder.write("list", "{\"url\": \"/api/a\", \"file\": \"a.txt\"}\n/api/b\n")
            let done = try daemon.command("prefetch", "--file", list)
            #expect(
                done.output.hasPrefix(
                    "failed  /api/a  to a.txt  (there is no folder for 'a.txt'; set 'cache.disk', or leave 'file' out)\n"
                ),
                "\(done.report)"
            )
            #expect(origin.log.map(\.target) == ["/b"])
        }
    }
}
