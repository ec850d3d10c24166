// Demo answers that are wrong on purpose: as curl and a bare socket see them, and as a cache in front has to bear them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct WrongAnswers {
        private static let kinds = [
            "head_length", "head_etag", "head_status", "etag_flips", "no_304", "bare_304", "vary_star", "{ date: -1h }",
            "{ date: 2d }", "{ age: 2h }",
        ]
        private static let body = "0123456789"

        /// An endpoint `/shop/N` for each kind, in their order, and `/shop/right`, all with the same answer.
        private static func origin(_ cacheControl: String) throws -> Daemon {
            let demo = "body: \"\(body)\", headers: { Cache-Control: \(cacheControl), Last-Modified: \"\(modified)\" }"
            let endpoints = kinds.enumerated().map { number, kind in
                "      - { name: e\(number), path: /\(number), demo: { \(demo), misbehave: [\(kind)] } }"
            }
            var settings = DaemonSettings(
                """
                services:
                  - name: shop
                    match: { prefix: /shop }
                    demo: { enabled: true, body: none, random_seed: 42 }
                    endpoints:
                      - { name: right, path: /right, demo: { \(demo) } }
                \(endpoints.joined(separator: "\n"))
                """
            )
            settings.name = "origin"
            return try Daemon(settings)
        }

        private static let modified = "Thu, 01 Jan 2026 00:00:00 GMT"

        private static func path(_ kind: String) throws -> String {
            "/shop/\(try #require(kinds.firstIndex(of: kind)))"
        }

        private static func seconds(_ date: String?) throws -> Double {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(secondsFromGMT: 0)
            format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            return try #require(format.date(from: date ?? "")).timeIntervalSince1970
        }

        /// The wrongs that Drydock-Demo names.
        private static func said(_ answer: RawResponse) -> String? {
            let parts = answer.field("Drydock-Demo")?.components(separatedBy: "; ") ?? []
            return parts.first { $0.hasPrefix("misbehave=") }.map { String($0.dropFirst(10)) }
        }

        @Test func eachWrongIsWhatClientsSee() throws {
            let daemon = try Self.origin("max-age=60")
            let right = try daemon.exchange("/shop/right")
            let tag = try #require(right.field("ETag"))
            #expect((right.status, right.text, Self.said(right)) == (200, Self.body, nil))
            func curl(_ kind: String, _ arguments: String...) throws -> String {
                let url = "\(daemon.url)\(try Self.path(kind))"
                return try Shell.must("curl", ["-sS", "--noproxy", "*"] + arguments + [url])
                    .replacingOccurrences(of: "\r", with: "")
            }
            // HEAD that disagrees with GET.
            #expect(try curl("head_length", "-I").contains("\nContent-Length: 11\n"))
            #expect(try curl("head_length") == Self.body)
            let head = try daemon.exchange("HEAD", Self.path("head_etag"))
            #expect(head.status == 200 && head.field("ETag") != nil && head.field("ETag") != tag)
            #expect((Self.said(head), head.field("Content-Length")) == ("head_etag", "10"))
            #expect(try daemon.exchange(Self.path("head_etag")).field("ETag") == tag)
            #expect(try curl("head_status", "-I").hasPrefix("HTTP/1.1 404 Not Found\n"))
            #expect(try curl("head_status", "-i").hasPrefix("HTTP/1.1 200 OK\n"))
            // Validators.
            let flipping = try (0..<3).map { _ in try daemon.exchange(Self.path("etag_flips")).field("ETag") ?? "" }
            #expect(Set(flipping + [tag]).count == 4)
            let flipped = try daemon.exchange(Self.path("etag_flips"), fields: [("If-None-Match", flipping[2])])
            #expect((flipped.status, flipped.text) == (200, Self.body))
            let condition = [("If-None-Match", tag)]
            #expect(try daemon.exchange("/shop/right", fields: condition).status == 304)
            let whole = try daemon.exchange(Self.path("no_304"), fields: condition)
            #expect((whole.status, whole.text, whole.field("ETag")) == (200, Self.body, tag))
            #expect(Self.said(whole) == "no_304")
            #expect(try Self.said(daemon.exchange(Self.path("no_304"))) == nil)
            let bare = try daemon.exchange(Self.path("bare_304"), fields: condition)
            #expect((bare.status, bare.field("ETag"), bare.field("Last-Modified")) == (304, nil, nil))
            #expect((bare.field("Cache-Control"), Self.said(bare)) == ("max-age=60", "bare_304"))
            // What caches go by.
            #expect(try curl("vary_star", "-i").contains("\nVary: *\n"))
            let behind = try daemon.exchange(Self.path("{ date: -1h }"))
            #expect(try Date.now.timeIntervalSince1970 - Self.seconds(behind.field("Date")) >= 3600)
            #expect(behind.head.all("Date").count == 1 && Self.said(behind) == "date")
            let began = Date.now.timeIntervalSince1970
            let ahead = try daemon.exchange(Self.path("{ date: 2d }"))
            #expect(try Self.seconds(ahead.field("Date")) + 1 >= began + 2 * 86_400)
            #expect(try curl("{ age: 2h }", "-i").contains("\nAge: 7200\n"))
        }

        /// What a cache promises: the right content, a condition that is judged by what the client has, and nothing stale
        /// as if it were fresh.
        @Test(arguments: ["max-age=60", "no-cache"]) func aCacheInFrontKeepsItsPromises(_ control: String) throws {
            let origin = try Self.origin(control)
            let front = try Daemon(
                """
                services:
                  - name: front
                    match: { prefix: / }
                    base_url: \(origin.url)
                """
            )
            for kind in Self.kinds {
                let path = try Self.path(kind)
                func get(_ fields: [(String, String)] = []) throws -> RawResponse {
                    let answer = try front.exchange(path, fields: fields)
                    let isWhole = answer.status == 200 && answer.text == Self.body
                    let isKnown = !fields.isEmpty && answer.status == 304 && answer.body.isEmpty
                    #expect(isWhole || isKnown, "\(kind): \(answer.head)")
                    #expect(answer.field("Age").map { Int($0) ?? -1 >= 0 } ?? true, "\(kind): \(answer.head)")
                    return answer
                }
                let first = try get()
                let tag = first.field("ETag") ?? ""
                let head = try front.exchange("HEAD", path)
                let answers = [try get(), try get([("If-None-Match", tag)]), try get()]
                let hits = answers.filter { $0.field("Cache-Status")?.contains("; hit") == true }
                switch kind {
                // Never fresh, or never for another request.
                case "vary_star", "{ date: -1h }", "{ age: 2h }": #expect(hits.isEmpty, "\(kind): \(hits)")
                default: #expect(hits.isEmpty == (control == "no-cache"), "\(kind): \(answers.map(\.head))")
                }
                // A HEAD that is answered from the store is that of the stored GET.
                if head.field("Cache-Status")?.contains("; hit") == true {
                    #expect((head.status, head.field("Content-Length"), head.field("ETag")) == (200, "10", tag))
                }
            }
        }
    }
}
