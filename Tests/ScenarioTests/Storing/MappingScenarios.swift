// Mapped answers around a real daemon: what is stored and served, how it is checked, and what becomes of documents
// that cannot be mapped.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Mapping {
        private static let map = "response: { map: { name: user.name } }"
        private static let document = #"{"user": {"name": "Ada", "age": 36}, "more": [1, 2, 3]}"#
        private static let dated = ("Last-Modified", "Mon, 02 Jan 2023 00:00:00 GMT")

        private func moving(_ services: String...) throws -> Daemon {
            var settings = DaemonSettings("services:\n" + services.joined())
            settings.rest += "clock: { movable: true }\n"
            return try Daemon(settings)
        }

        @Test func theMappedDocumentHasALengthAndATagOfItsOwn() throws {
            let origin = try ScriptedOrigin { request in
                .answer(
                    to: request,
                    fields: [
                        ("ETag", "\"origin\""), Self.dated, ("Content-MD5", "x"), ("Content-Digest", "sha-256=:AA==:"),
                        ("Content-Type", "text/html"), ("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding"),
                        ("Accept-Ranges", "bytes"),
                    ],
                    Self.document
                )
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            let first = try daemon.exchange("/api/u", fields: [("Accept-Encoding", "gzip, br")])
            let mapped = #"{"name":"Ada"}"#
            #expect(first.status == 200 && first.text == mapped && first.cacheStatus?.isStored == true)
            #expect(first.field("Content-Length") == "14" && first.field("Content-Type") == "application/json")
            let tag = try #require(first.field("ETag"))
            #expect(tag.hasPrefix("\"") && tag != "\"origin\"")
            for name in ["Content-MD5", "Content-Digest", "Last-Modified", "Vary"] {
                #expect(first.field(name) == nil, "\(name)")
            }
            #expect(!first.head.fields.contains { $0.name.lowercased().hasPrefix("drydock-mapped") })
            #expect(origin.log[0].field("Accept-Encoding") == "identity")
            let second = try daemon.exchange("/api/u")
            #expect(second.cacheStatus?.detail == "memory" && second.text == mapped && second.field("ETag") == tag)
            #expect(!second.head.fields.contains { $0.name.lowercased().hasPrefix("drydock-mapped") })
            #expect(try daemon.exchange("/api/u", fields: [("If-None-Match", tag)]).status == 304)
            let head = try daemon.exchange("HEAD", "/api/u")
            #expect(head.field("Content-Length") == "14" && head.field("ETag") == tag)
            #expect(origin.requests() == 1)
        }

        @Test func aRangeIsOneOfTheMappedDocument() throws {
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("Cache-Control", "max-age=60")], Self.document)
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            for _ in 0..<2 {
                let part = try daemon.exchange("/api/u", fields: [("Range", "bytes=2-5")])
                #expect(part.status == 206 && part.text == "name" && part.field("Content-Range") == "bytes 2-5/14")
            }
            #expect(origin.requests() == 1 && origin.log[0].field("Range") == nil)
        }

        @Test func aHeadWithoutAStoredDocumentIsAnsweredByAGet() throws {
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("ETag", "\"o\""), ("Cache-Control", "max-age=60")], Self.document)
            }
            let daemon = try Daemon(
                services(
                    service("api", origin.url, Self.map),
                    service("none", origin.url, Self.map, "cache: { mode: none }")
                )
            )
            let head = try daemon.exchange("HEAD", "/api/u")
            #expect(
                head.status == 200 && head.field("ETag") != "\"o\""
                    && head.field("Content-Length") != "\(Self.document.utf8.count)"
            )
            #expect(try daemon.exchange("/api/u").cacheStatus?.detail == "memory")
            let passed = try daemon.exchange("HEAD", "/none/u", fields: [("If-None-Match", "\"o\"")])
            #expect(passed.status == 200 && passed.field("ETag") == nil && passed.field("Content-Length") == nil)
            let whole = try daemon.exchange("/none/u", fields: [("Range", "bytes=0-1"), ("If-None-Match", "\"o\"")])
            #expect(whole.status == 200 && whole.text == #"{"name":"Ada"}"#)
            #expect(origin.log.last?.field("If-None-Match") == nil)
        }

        @Test(arguments: ["head", "conditional"])
        func checksCarryTheOriginsValidators(_ method: String) throws {
            let version = Counter()
            let origin = try ScriptedOrigin { request in
                let text = #"{"user": {"name": "Ada \#(version.value)"}}"#
                return .resource(request, etag: "\"v\(version.value)\"", fields: [("Cache-Control", "max-age=1")], text)
            }
            let daemon = try moving(service("api", origin.url, Self.map, "cache: { revalidate: \(method) }"))
            let first = try daemon.exchange("/api/u")
            #expect(first.text == #"{"name":"Ada 0"}"#)
            _ = try daemon.command("clock", "advance", "5s")
            let checked = try daemon.exchange("/api/u")
            #expect(checked.cacheStatus?.detail == "revalidated" && checked.text == first.text)
            #expect(checked.field("ETag") == first.field("ETag"))
            #expect(origin.log.last?.field("If-None-Match") == "\"v0\"")
            #expect(origin.log.last?.method == (method == "head" ? "HEAD" : "GET"))
            // Over a restart, from the disk.
            try daemon.restart()
            // The clock stands where it was before it was moved.
            _ = try daemon.command("clock", "advance", "60s")
            let again = try daemon.exchange("/api/u")
            #expect(again.cacheStatus?.detail == "revalidated" && again.text == first.text)
            #expect(origin.log.last?.field("If-None-Match") == "\"v0\"")
            version.add()
            _ = try daemon.command("clock", "advance", "10s")
            let changed = try daemon.exchange("/api/u")
            #expect(changed.text == #"{"name":"Ada 1"}"# && changed.field("ETag") != first.field("ETag"))
        }

        /// The origin's date and length, not those of the mapped document.
        @Test func libraryModeComparesWhatTheOriginSaid() throws {
            let text = Monitor(Self.document)
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [], text.read { $0 }) }
            let daemon = try moving(
                service("api", origin.url, Self.map, "cache: { mode: library, ttl: 10s, compare: [length] }")
            )
            _ = try daemon.exchange("/api/u")
            _ = try daemon.command("clock", "advance", "20s")
            #expect(try daemon.exchange("/api/u").cacheStatus?.detail == "revalidated")
            #expect(origin.log.map(\.method) == ["GET", "HEAD"])
            text.update { $0 = #"{"user": {"name": "Grace"}}"# }
            _ = try daemon.command("clock", "advance", "20s")
            #expect(try daemon.exchange("/api/u").text == #"{"name":"Grace"}"#)
        }

        @Test func aFailureIsA502ThatNamesItAndLeavesTheGoodCopy() throws {
            let text = Monitor(#"{"list": [{"at": "2024-01-02"}]}"#)
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("Cache-Control", "max-age=1")], text.read { $0 })
            }
            let endpoint =
                "endpoints: [{ name: times, path: /t, response: { map: { all: { from: list, each: { at: { from: at, as: date } } } } } }]"
            let daemon = try moving(service("api", origin.url, endpoint, "cache: { stale_if_error: 0s }"))
            let good = try daemon.exchange("/api/t")
            #expect(good.text == #"{"all":[{"at":"2024-01-02T00:00:00Z"}]}"#)
            text.update { $0 = #"{"list": [{"at": 0}, {"at": "soon"}]}"# }
            _ = try daemon.command("clock", "advance", "5s")
            let failed = try daemon.exchange("/api/t")
            #expect(failed.status == 502 && failed.field("Content-Type") == "application/problem+json")
            for part in ["endpoint 'times' of service 'api'", "'all[1].at'", "is no date"] {
                #expect(failed.text.contains(part), "\(failed.text)")
            }
            #expect(try daemon.exchange("/api/t", fields: [("Cache-Control", "max-stale")]).text == good.text)
            text.update { $0 = "<html>" }
            #expect(try daemon.exchange("/api/t").status == 502)
        }

        @Test func aRetryMayBringADocumentThatCanBeMapped() throws {
            let left = Monitor(2)
            let origin = try ScriptedOrigin { request in
                let isBroken = left.update { left in
                    left -= 1
                    return left >= 0
                }
                return .answer(to: request, fields: [], isBroken ? "{ broken" : Self.document)
            }
            let daemon = try Daemon(
                services(service("api", origin.url, Self.map, "retry: { count: 3, delay: 10ms, when: [content] }"))
            )
            #expect(try daemon.exchange("/api/u").text == #"{"name":"Ada"}"#)
            #expect(origin.requests() == 3)
        }

        @Test func codingsThatComeAnywayAreTakenOff() throws {
            let coded: [UInt8] = [
                31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 42, 45, 78, 45, 82, 178, 170, 86, 202, 75, 204, 77, 85, 178,
                82, 114, 76, 73, 84, 170, 173, 5, 0, 67, 39, 67, 92, 23, 0, 0, 0,
            ]
            let origin = try ScriptedOrigin { request in
                let coding = request.target == "/z" ? "zstd" : "gzip"
                let body = request.target == "/cut" ? Array(coded.dropLast(9)) : coded
                return .answer(
                    to: request,
                    fields: [("Content-Encoding", coding), ("Cache-Control", "max-age=60")],
                    body: body
                )
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            let answer = try daemon.exchange("/api/u")
            #expect(answer.text == #"{"name":"Ada"}"# && answer.field("Content-Encoding") == nil)
            #expect(try daemon.exchange("/api/z").status == 502)
            #expect(try daemon.exchange("/api/cut").status == 502)
        }

        @Test func aLongDocumentStreamsAndIsStored() throws {
            let element = #"{"name": {"first": "x"}, "n": "\#(String(repeating: "y", count: 1000))"}"#
            let count = 3000
            let text = #"{"results": ["# + [String](repeating: element, count: count).joined(separator: ",\n") + "]}"
            let origin = try ScriptedOrigin { request in
                let isCut = request.target == "/wrong"
                let body = isCut ? text.dropLast(2) + ", {]}" : text[...]
                return .answer(to: request, fields: [("ETag", "\"o\""), ("Cache-Control", "max-age=60")], String(body))
            }
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "response: { map: { users: { from: results, each: { first: name.first } } } }"
                    )
                )
            )
            let mapped =
                #"{"users":["# + [String](repeating: #"{"first":"x"}"#, count: count).joined(separator: ",") + "]}"
            let answer = try daemon.exchange("/api/long")
            #expect(answer.text == mapped && answer.field("Content-Length") == nil)
            let tag = try #require(answer.field("ETag"))
            #expect(tag != "\"o\"")
            let hit = try daemon.exchange("/api/long")
            #expect(hit.cacheStatus?.isHit == true && hit.text == mapped && hit.field("ETag") == tag)
            #expect(hit.field("Content-Length") == "\(mapped.utf8.count)")
            let wrong = try daemon.exchange("/api/wrong")
            #expect(wrong.end != .complete)
            #expect(try daemon.exchange("/api/wrong").cacheStatus?.isHit != true)
            #expect(origin.requests(target: "/wrong") == 2)
        }

        @Test func aChangedMappingIsAMiss() throws {
            let origin = try ScriptedOrigin { request in
                .resource(request, etag: "\"o\"", fields: [("Cache-Control", "max-age=600")], Self.document)
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            _ = try daemon.exchange("/api/u")
            for (map, expected) in [
                ("response: { map: { age: user.age } }", #"{"age":36}"#), ("", Self.document),
                (Self.map, #"{"name":"Ada"}"#),
            ] {
                try daemon.rewrite(services(service("api", origin.url, map)))
                #expect(try daemon.command("reload").succeeded)
                let answer = try daemon.exchange("/api/u")
                #expect(answer.text == expected && answer.cacheStatus?.isHit == false)
                #expect(try daemon.exchange("/api/u").cacheStatus?.isHit == true)
            }
            #expect(try daemon.command("purge", "/api/u").succeeded)
            #expect(try daemon.exchange("/api/u").cacheStatus?.isHit == false)
        }

        /// Not by the fast way either, once the slow one has looked at it.
        @Test func whatAnotherMappingMadeNeverAnswersWhileTheOriginIsAway() throws {
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("Cache-Control", "max-age=600")], Self.document)
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            _ = try daemon.exchange("/api/u")
            origin.stop()
            try daemon.rewrite(services(service("api", origin.url, "response: { map: { age: user.age } }")))
            #expect(try daemon.command("reload").succeeded)
            for _ in 0..<3 { #expect(try daemon.exchange("/api/u").status == 502) }
            try daemon.rewrite(services(service("api", origin.url, Self.map)))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/api/u").text == #"{"name":"Ada"}"#)
        }

        @Test func answersThatAreNoDocumentsStayAsTheyAre() throws {
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/gone":
                    .answer(404, to: request, fields: [("Cache-Control", "max-age=60"), ("ETag", "\"g\"")], "gone")
                case "/text": .answer(to: request, fields: [("Content-Type", "text/plain")], "done")
                default:
                    .answer(to: request, fields: [("Content-Type", "application/json; charset=utf-8")], Self.document)
                }
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.map)))
            let gone = try daemon.exchange("/api/gone")
            #expect(gone.status == 404 && gone.text == "gone" && gone.field("ETag") == "\"g\"")
            #expect(!gone.head.fields.contains { $0.name.lowercased().hasPrefix("drydock-mapped") })
            #expect(try daemon.exchange("/api/gone").cacheStatus?.isHit == true)
            let put = try daemon.exchange("PUT", "/api/u", body: Array("{}".utf8))
            #expect(put.text == #"{"name":"Ada"}"#)
            #expect(try daemon.exchange("PUT", "/api/text", body: Array("{}".utf8)).text == "done")
        }

        @Test func postsThatAreStoredByContentAreMapped() throws {
            let origin = try ScriptedOrigin {
                .answer(to: $0, fields: [("Content-Type", "application/json")], Self.document)
            }
            let daemon = try Daemon(
                services(service("api", origin.url, Self.map, "cache: { mode: library, methods: [GET, POST] }"))
            )
            for isHit in [false, true] {
                let answer = try daemon.exchange("POST", "/api/q", body: Array("q=1".utf8))
                #expect(answer.text == #"{"name":"Ada"}"# && answer.cacheStatus?.isHit == isHit)
            }
            #expect(origin.requests() == 1)
        }

        @Test func demoAnswersAreMappedLikeLiveOnes() throws {
            let home = try DaemonHome()
            let file = try home.folder.write("user.json", Self.document)
            let demo =
                "{ name: demo, match: { prefix: /demo }, demo: { enabled: true, file: \"\(file)\" }, \(Self.map) }"
            let inner =
                "{ name: outer, match: { prefix: /outer }, base_url: \"service:demo\", response: { map: name } }"
            let daemon = try Daemon(DaemonSettings("services: [\(demo), \(inner)]\n"), at: home)
            let answer = try daemon.exchange("/demo/u")
            #expect(answer.text == #"{"name":"Ada"}"# && answer.field("Content-Type") == "application/json")
            #expect(try daemon.exchange("/outer/u").text == #""Ada""#)
            try home.folder.write("user.json", "{ broken")
            let reload = try daemon.command("reload")
            #expect(!reload.succeeded && (reload.output + reload.errors).contains("service 'demo' cannot be mapped"))
        }
    }
}
