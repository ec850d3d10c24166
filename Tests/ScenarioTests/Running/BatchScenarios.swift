// Batches around a real daemon: the list that holds everything, restarts, schedules, and the commands.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(4))) struct Batches {
        static let fields = [("Cache-Control", "max-age=6000"), ("ETag", "\"1\"")]

        /// `/missing` 404, `/nohead` refuses HEAD, `/unknown` says no length, everything else ten
        /// bytes; GETs wait for the gate.
        static func origin(_ gate: Gate? = nil) throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                let isHead = request.method == "HEAD"
                let wait = OriginReply(gate.map { isHead || request.target == "/fresh" ? [] : [.wait($0)] } ?? [])
                switch request.target {
                case "/missing": return .answer(404, to: request, fields: [("Cache-Control", "no-store")], "none")
                case "/nohead" where isHead: return .answer(405, to: request, "")
                case "/unknown" where isHead: return OriginReply([OriginReply.head(200, fields: fields)])
                case "/unknown": return wait.then(.chunked(["1234", "567"], fields: fields))
                default: return wait.then(.answer(to: request, fields: fields, "0123456789"))
                }
            }
        }

        private static let list = """
            # everything that a list may hold
            /api/a
            /api/fresh

            {"url": "/api/missing"}
            {"url": "/api/nohead", "headers": {"X_A": "1"}}
            /api/unknown
            ORIGIN/a
            /api/seeded
            """

        /// Without what differs from run to run: the times, and where the origin is.
        private func plain(_ text: String, _ origin: ScriptedOrigin) -> String {
            text.replacingOccurrences(of: origin.url, with: "ORIGIN").replacing(
                /"(created|ended|started)":[0-9]+/,
                with: { "\"\($0.1)\":0" }
            )
        }

        private static let sized = """
            {"concurrency":10,"created":0,"ended":0,"first_error":{"reason":"the origin answered 404 Scripted","url":"/api/missing"},\
            "id":"1","items":[\
            {"check":"sized","received":0,"size":10,"state":"queued","url":"/api/a"},\
            {"check":"valid","received":0,"size":10,"state":"done","url":"/api/fresh"},\
            {"check":"failed","reason":"the origin answered 404 Scripted","received":0,"state":"failed","status":404,"url":"/api/missing"},\
            {"check":"unknown-size","reason":"the origin does not answer HEAD (405)","received":0,"state":"queued","url":"/api/nohead"},\
            {"check":"unknown-size","reason":"the origin says no length","received":0,"state":"queued","url":"/api/unknown"},\
            {"check":"duplicate","duplicate_of":0,"outcome":"duplicate","received":0,"state":"done","url":"ORIGIN/a"},\
            {"check":"valid","received":0,"size":4,"state":"done","url":"/api/seeded"}],\
            "kind":"size","on_error":"continue","started":0,"state":"checked","totals":{"bytes":10,"cancelled":0,"checked":7,"done":3,\
            "duplicates":1,"failed":1,"items":7,"not_stored":0,"queued":3,"received":0,"remaining":10,"running":0,\
            "unknown_size":2,"valid":2}}

            """

        private static let downloaded = """
            {"concurrency":10,"created":0,"ended":0,"first_error":{"reason":"the origin answered 404 Scripted","url":"/api/missing"},\
            "id":"1","items":[\
            {"check":"sized","outcome":"downloaded","received":10,"size":10,"state":"done","status":200,"url":"/api/a"},\
            {"check":"valid","received":0,"size":10,"state":"done","url":"/api/fresh"},\
            {"check":"failed","reason":"the origin answered 404 Scripted","received":0,"state":"failed","status":404,"url":"/api/missing"},\
            {"check":"unknown-size","outcome":"downloaded","received":10,"size":10,"state":"done","status":200,"url":"/api/nohead"},\
            {"check":"unknown-size","outcome":"downloaded","received":7,"size":7,"state":"done","status":200,"url":"/api/unknown"},\
            {"check":"duplicate","duplicate_of":0,"outcome":"duplicate","received":0,"state":"done","url":"ORIGIN/a"},\
            {"check":"valid","received":0,"size":4,"state":"done","url":"/api/seeded"}],\
            "kind":"size","on_error":"continue","started":0,"state":"failed","totals":{"bytes":27,"cancelled":0,"checked":7,"done":6,\
            "duplicates":1,"failed":1,"items":7,"not_stored":0,"queued":0,"received":27,"remaining":0,"running":0,\
            "unknown_size":0,"valid":2}}

            """

        @Test(
            "a list that holds a duplicate, a fresh item, a 404, a HEAD answered 405, one without length and a seed gives exactly this JSON, also with a second job beside it",
            arguments: [false, true]
        )
        func theWholeList(_ hasSecond: Bool) throws {
            let folder = try TemporaryFolder("drydock-batch")
            let gate = Gate()
            let origin = try Self.origin(gate)
            try folder.write("seed/\(origin.authority)/seeded", "seed")
            let list = try folder.write("list", Self.list.replacing("ORIGIN", with: origin.url))
            let daemon = try Daemon(
                services(service("api", origin.url, "cache: { seed_dir: \"\(folder.file("seed"))\" }"))
            )
            #expect(try daemon.exchange("/api/fresh").text == "0123456789")
            origin.forgetRequests()

            let size = try daemon.command("size", "--json", "--save", "--file", list)
            #expect(size.end == .exited(1), "\(size.report)")
            #expect(plain(size.output, origin) == Self.sized, "\(size.report)")
            let heads = ["/a", "/missing", "/nohead", "/unknown"]
            #expect(origin.log.map { "\($0.method) \($0.target)" }.sorted() == heads.map { "HEAD \($0)" })
            #expect(origin.log.first { $0.target == "/nohead" }?.field("X_A") == "1")

            #expect(try daemon.command("prefetch", "--job", "1", "--detach").succeeded)
            #expect(origin.waitForRequests(3, method: "GET"))
            if hasSecond {
                // The same list and more of its own, while the first is under way.
                let begun = try daemon.command("prefetch", "--detach", "--file", list, "/api/other")
                #expect(begun.output == "job 2: 'drydock jobs show 2' shows its progress\n", "\(begun.report)")
                #expect(origin.waitForRequests(1, method: "GET", target: "/other"))
            }
            gate.open()
            #expect(try eventually { try daemon.command("jobs").output.contains(#/1  size +failed +7 of 7 items/#) })
            let done = try daemon.command("jobs", "show", "1", "--json")
            #expect(plain(done.output, origin) == Self.downloaded, "\(done.report)")
            if hasSecond {
                #expect(try eventually { try daemon.command("jobs").output.contains(#/2  prefetch +failed +8 of 8/#) })
                #expect(origin.requests(method: "GET", target: "/missing") == 1)
            } else {
                #expect(origin.requests(method: "GET", target: "/missing") == 0)
            }
            for (target, count) in [("/a", 1), ("/nohead", 1), ("/unknown", 1), ("/fresh", 0), ("/seeded", 0)] {
                #expect(origin.requests(method: "GET", target: target) == count, "\(target)")
                #expect(try daemon.exchange("/api" + target).cacheStatus?.isHit == true, "\(target)")
            }
            // Only what has failed is asked for again.
            origin.forgetRequests()
            let retry = try daemon.command("prefetch", "--job", "1", "--retry-failed")
            #expect(retry.end == .exited(1), "\(retry.report)")
            #expect(origin.log.map { "\($0.method) \($0.target)" } == ["GET /missing"])
            #expect(
                retry.output.contains("failed  /api/missing  (the origin answered 404 Scripted)\n"),
                "\(retry.report)"
            )
        }

        @Test("after kill -9 a job goes on: what is done stays done, what was under way is begun anew")
        func restart() throws {
            let gate = Gate()
            let origin = try Self.origin(gate)
            let daemon = try Daemon(services(service("api", origin.url)))
            gate.open()
            #expect(try daemon.command("prefetch", "/api/a").succeeded)
            let closed = Gate()
            let slow = try Self.origin(closed)
            try daemon.rewrite(services(service("api", slow.url), service("old", origin.url)))
            #expect(try daemon.command("reload").succeeded)
            let begun = try daemon.command("prefetch", "--detach", "--serial", "/old/a", "/old/b", "/api/c", "/api/d")
            #expect(begun.succeeded, "\(begun.report)")
            #expect(slow.waitForRequests(1, method: "GET", target: "/c"))
            // It is written down every other second.
            let file = "\(daemon.home.cache)/jobs/2.json"
            #expect(eventually { readText(file).components(separatedBy: "\"downloaded\"").count == 3 })
            try daemon.restart(SIGKILL)
            #expect(slow.waitForRequests(2, method: "GET", target: "/c"))
            closed.open()
            #expect(try eventually { try daemon.command("jobs").output.contains(#/2  prefetch +done +4 of 4 items/#) })
            #expect(origin.requests(target: "/b") == 1 && slow.requests(target: "/d") == 1)
            #expect(try daemon.command("jobs").output.hasPrefix("1  prefetch  done  1 of 1 item"))
            #expect(daemon.errors.contains("batch goes on"))
            // What has ended stays known over an ordinary restart, too, and can be forgotten.
            try daemon.restart()
            #expect(try daemon.command("jobs", "remove", "2").succeeded)
            #expect(try daemon.command("jobs").output.split(separator: "\n").count == 1)
            #expect(eventually { !FileManager.default.fileExists(atPath: file) })
        }

        @Test("a job is cancelled, and goes on where it was")
        func cancel() throws {
            let gate = Gate()
            let origin = try Self.origin(gate)
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.command("prefetch", "--detach", "/api/a", "/api/b").succeeded)
            #expect(origin.waitForRequests(2))
            #expect(try daemon.command("jobs", "cancel", "1").succeeded)
            #expect(
                try daemon.command("jobs").output.hasPrefix("1  prefetch  cancelled  0 of 2 items, 2 cancelled\n")
            )
            gate.open()
            let again = try daemon.command("prefetch", "--job", "1", "--retry-failed")
            #expect(again.succeeded && again.output.contains("job 1 done, 2 items: "), "\(again.report)")
            #expect(again.errors.contains("prefetch 1: 2 of 2 items"), "\(again.report)")
            #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
            // One that has ended stays as it is, and each item counts once.
            let before = try daemon.command("jobs", "--json").output
            #expect(try daemon.command("jobs", "cancel", "1").succeeded)
            #expect(try daemon.command("jobs", "--json").output == before)
            let metrics = try RawClient(unix: daemon.home.adminSocket).exchange("/metrics").text
            #expect(metrics.contains("\ndrydock_batch_items_total 2\n"), "\(metrics)")
            #expect(metrics.contains("\ndrydock_jobs 1\n") && metrics.contains("\ndrydock_jobs_running 0\n"))
        }

        @Test("what a cancelled job tells is what has come, when the command returns and later")
        func cancelTellsWhatCame() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                if request.target == "/whole" { return .answer(to: request, fields: Self.fields, "0123456789") }
                let head = OriginReply.head(200, fields: Self.fields + [("Content-Length", "1000")])
                return OriginReply([head, .pattern(100, from: 0), .wait(gate), .pattern(900, from: 100)])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            let urls = ["/api/whole", "/api/half", "/api/never"]
            #expect(try daemon.command(["prefetch", "--detach", "--serial"] + urls).succeeded)
            let isHalf = try eventually {
                try daemon.command("jobs").output.contains("running  1 of 3 items, 110 B of 1010 B")
            }
            #expect(isHalf)
            let line = "1  prefetch  cancelled  1 of 3 items, 110 B, 2 cancelled\n"
            #expect(try daemon.command("jobs", "cancel", "1").output == line)
            #expect(try daemon.command("jobs").output == line)
            let document = try daemon.command("jobs", "show", "1", "--json").output
            #expect(document.contains("\"bytes\":110,\"cancelled\":2"), "\(document)")
            #expect(document.contains("\"received\":110,\"remaining\":0"), "\(document)")
            gate.open()
        }

        @Test("a POST, a demo answer and what may not be stored are downloaded, and said not to be stored")
        func others() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "no-store")], "\(request.method) \(request.body.count)")
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            let folder = try TemporaryFolder("drydock-batch")
            let list = try folder.write(
                "list",
                "{\"url\":\"/api/form\",\"method\":\"POST\",\"body\":\"a=1\"}\n/api/x\n"
            )
            let done = try daemon.command("prefetch", "--file", list)
            #expect(done.succeeded, "\(done.report)")
            #expect(done.output == "job 1 done, 2 items: 2 downloaded, 11 B (2 not stored)\n", "\(done.report)")
            #expect(origin.log.first { $0.method == "POST" }?.body == Array("a=1".utf8))
            let size = try daemon.command("size", "--file", list)
            #expect(size.output.hasSuffix("2 items: 2 to download, 6 B and 1 of unknown size\n"), "\(size.report)")
            #expect(try daemon.command("jobs").output.split(separator: "\n").count == 1)
        }

        @Test("in library mode a POST is prefetched under its content, and clients get it from the store")
        func posts() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, String(decoding: $0.body, as: UTF8.self)) }
            let cache = "cache: { mode: library, methods: [GET, POST], ttl: 1h }"
            let daemon = try Daemon(services(service("api", origin.url, cache)))
            let folder = try TemporaryFolder("drydock-batch")
            let lines = ["one", "two", "one"].map { "{\"url\":\"/api/q\",\"method\":\"POST\",\"body\":\"\($0)\"}\n" }
            let list = try folder.write("list", lines.joined())
            let done = try daemon.command("prefetch", "--file", list)
            #expect(done.output == "job 1 done, 3 items: 2 downloaded, 6 B, 1 duplicate\n", "\(done.report)")
            for text in ["one", "two"] {
                let answer = try daemon.exchange("POST", "/api/q", body: Array(text.utf8))
                #expect(answer.text == text && answer.cacheStatus?.isHit == true, "\(answer.head)")
            }
            #expect(origin.requests() == 2)
            let size = try daemon.command("size", "--file", list)
            #expect(size.output == "3 items: 0 to download, 0 B, 2 valid, 1 duplicate\n", "\(size.report)")
        }

        @Test("schedules prefetch by themselves, and end with the configuration that asks for them")
        func schedules() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder("drydock-batch")
            let list = try folder.write("list", "/api/b\n")
            var settings = services(service("api", origin.url))
            settings.rest += """
                prefetch:
                  - { name: often, urls: [/api/a], file: "\(list)", every: 1s, at_start: true, force: true }
                  - { name: rarely, urls: [/api/c], every: 1h }

                """
            let daemon = try Daemon(settings)
            #expect(origin.waitForRequests(2, target: "/a"))
            #expect(origin.waitForRequests(1, target: "/b"))
            #expect(origin.requests(target: "/c") == 0)
            #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
            #expect(try daemon.command("jobs").output.contains("often"))
            #expect(daemon.errors.contains("batch done"))
            settings.rest =
                services(service("api", origin.url)).rest + """
                    prefetch:
                      - { name: other, urls: [/api/d], every: 1s, force: true }

                    """
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            // A turn that had begun is over.
            let isOver = try eventually {
                let lines = try daemon.command("jobs").output.split(separator: "\n")
                return !lines.contains { $0.hasSuffix("often") && ($0.contains("running") || $0.contains("queued")) }
            }
            #expect(isOver)
            let count = origin.requests(target: "/a") + origin.requests(target: "/b")
            let turns = origin.requests(target: "/d")
            // Two turns of another schedule with the same pause are further apart than two of it.
            #expect(origin.waitForRequests(turns + 2, target: "/d"))
            #expect(origin.requests(target: "/a") + origin.requests(target: "/b") == count)
        }

        @Test("what a command does not understand it says, with its place; so does the API")
        func refusals() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            let folder = try TemporaryFolder("drydock-batch")
            for (text, message) in [
                (
                    "/api/a\n{\"uri\": \"/x\"}\n",
                    ":2: 'uri' is not known; there are url, method, headers, body, force, seed, store"
                ),
                ("{\"method\": \"GET\"}\n", ":1: 'url' is missing"), ("\n{\"url\": 7}\n", ":2: "),
                ("/api/a b\n", ":1: '/api/a b' is not a URL"), ("{\"url\": \"/a\"\n", ":1: "),
            ] {
                let list = try folder.write("list", text)
                let result = try daemon.command("prefetch", "--file", list)
                #expect(result.end == .exited(1) && result.errors.contains(list + message), "\(result.report)")
            }
            for arguments in [
                ["prefetch"], ["size"], ["prefetch", "--job", "1", "/api/a"],
                ["size", "--serial", "--concurrency", "2", "/x"],
                ["size", "--concurrency", "0", "/x"], ["prefetch", "--on-error", "never", "/x"],
                ["size", "-H", "bad", "/x"],
            ] {
                let environment = ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
                let result = try Shell.run(try Daemon.binary(), arguments, environment: environment)
                #expect(result.end == .exited(2), "\(arguments) \(result.report)")
            }
            #expect(try daemon.command("prefetch", "--job", "77").errors.contains("there is no job 77"))
            let refused = try daemon.command("prefetch", "/nowhere", "http://127.0.0.1:1/x", "ftp://x/y")
            #expect(refused.end == .exited(1), "\(refused.report)")
            #expect(refused.output.contains("failed  /nowhere  (No such service: "), "\(refused.report)")
            #expect(refused.output.contains("failed  http://127.0.0.1:1/x  ("), "\(refused.report)")
            #expect(refused.output.contains("failed  ftp://x/y  ("), "\(refused.report)")
            for (method, path, body, status) in [
                ("POST", "/v1/prefetch", "{}", 400), ("POST", "/v1/prefetch", "[]", 400),
                ("POST", "/v1/size", "{\"job\": \"1\"}", 400), ("GET", "/v1/jobs/9", "", 404),
                ("POST", "/v1/jobs/9/cancel", "", 404), ("DELETE", "/v1/jobs/9", "", 404),
                ("GET", "/v1/jobs/1?a=b", "", 400),
                ("POST", "/v1/prefetch", "{\"items\":[],\"concurrency\":0}", 400), ("DELETE", "/v1/jobs/1", "", 200),
                ("POST", "/v1/prefetch", "{\"items\":[]}", 202),
            ] {
                let body = method == "GET" ? nil : Array(body.utf8)
                let api = try RawClient(unix: daemon.home.adminSocket)
                #expect(try api.exchange(method, path, body: body).status == status, "\(method) \(path)")
            }
        }
    }
}
