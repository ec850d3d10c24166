// The daemon is killed at random moments under load, again and again: whatever it serves afterwards is whole.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Kills {
        /// How often the daemon is killed.
        static let kills = 200
        /// How many answers it gives between two kills, at most.
        static let answers = 100
        static let resources = 100
        static let sizes = [0, 1, 700, 5000, 66_000, 262_144, 300_000, 700_000]

        /// What the origin has: the bytes of each version differ, and the validator names number, version and size.
        struct Resource: Equatable {
            var number: Int
            var version: Int

            init(number: Int, version: Int) {
                self.number = number
                self.version = version
            }

            /// From the value of an ETag field.
            init?(etag: String?) {
                let parts = (etag ?? "").split(whereSeparator: { "\"-".contains($0) }).compactMap { Int($0) }
                guard parts.count == 2 else { return nil }
                self.init(number: parts[0], version: parts[1])
            }

            var etag: String { "\"\(number)-\(version)\"" }
            var size: Int { Kills.sizes[(number + version) % Kills.sizes.count] }
            var offset: Int { number * 131 + version * 17 }
        }

        /// Changes every twelfth time that it is asked for; some live for long, some for a second, some have no length.
        static func makeOrigin() throws -> ScriptedOrigin {
            let asked = Monitor([Int: Int]())
            return try ScriptedOrigin { request in
                guard let number = Int(request.target.dropFirst()) else { return .answer(404, "none") }
                let count = asked.update { asked in
                    asked[number, default: 0] += 1
                    return asked[number] ?? 0
                }
                let resource = Resource(number: number, version: count / 12)
                let age = number % 3 == 0 ? 0 : number % 3 == 1 ? 1 : 600
                let fields = [("ETag", resource.etag), ("Cache-Control", "max-age=\(age)")]
                if request.field("If-None-Match") == resource.etag {
                    return OriginReply([OriginReply.head(304, fields: fields)])
                }
                let size = resource.size
                let isHead = request.method == "HEAD"
                if number % 5 == 0 {
                    let chunked = OriginReply.head(200, fields: fields + [("Transfer-Encoding", "chunked")])
                    if isHead { return OriginReply([chunked]) }
                    let chunk = OriginReply.text("\(String(size, radix: 16))\r\n")
                    let end = OriginReply.text("0\r\n\r\n")
                    if size == 0 { return OriginReply([chunked, end]) }
                    return OriginReply([
                        chunked, chunk, .pattern(size, from: resource.offset), OriginReply.text("\r\n"), end,
                    ])
                }
                let head = OriginReply.head(200, fields: fields + [("Content-Length", "\(size)")])
                return OriginReply(isHead ? [head] : [head, .pattern(size, from: resource.offset)])
            }
        }

        /// What the clients have seen.
        struct Seen {
            var whole = 0
            var cut = 0
            var fromDisk = 0
            var wrong: [String] = []
        }

        /// Asks for one resource and looks at every byte of an answer that claims to be complete.
        static func ask(_ client: RawClient, _ daemon: Daemon, _ number: Int, _ seen: Monitor<Seen>) throws {
            let answer = try client.exchange("GET", "/api/\(number)", host: "127.0.0.1:\(daemon.port)")
            let status = answer.field("Cache-Status") ?? ""
            let resource = Resource(etag: answer.field("ETag"))
            let isRight =
                resource?.number == number && answer.body.count == resource?.size
                && answer.body.withUnsafeBytes { Pattern.matches($0, at: resource?.offset ?? 0) }
            seen.update { seen in
                if answer.end != .complete {
                    seen.cut += 1
                } else if answer.status == 200, isRight {
                    seen.whole += 1
                    if status.contains("hit"), status.contains("detail=disk") { seen.fromDisk += 1 }
                } else {
                    seen.wrong.append("\(number): \(answer.head), \(answer.body.count) bytes")
                }
            }
            if answer.end != .complete { throw RawClientError.cutInHead }
        }

        @Test func whateverTheMomentEveryServedBodyIsWhole() throws {
            let origin = try Self.makeOrigin()
            var settings = services(service("api", origin.url))
            // Little memory, so that the disk answers; little disk, so that files make room all the time.
            settings.memory = "{ size: 1MiB, max_object: 64KiB }"
            settings.disk = "12MiB, max_object: 4MiB"
            let daemon = try Daemon(settings)
            let seen = Monitor(Seen())
            let stop = Counter()
            let ended = Counter()
            defer { stop.add() }
            for _ in 0..<4 {
                Threads.start("load") {
                    var client: RawClient?
                    while stop.value == 0 {
                        do {
                            let connection = try client ?? daemon.client()
                            client = connection
                            try Self.ask(connection, daemon, Int.random(in: 0..<Self.resources), seen)
                        } catch {
                            // It was killed, or is not there yet.
                            client = nil
                            usleep(2000)
                        }
                    }
                    ended.add()
                }
            }
            for _ in 0..<Self.kills {
                // After so many answers, and then at any moment of the next ones.
                let answers = seen.read { $0.whole } + Int.random(in: 0..<Self.answers)
                #expect(seen.wait(120) { $0.whole >= answers })
                usleep(UInt32.random(in: 0..<2_000))
                try daemon.restart(SIGKILL)
            }
            stop.add()
            #expect(ended.wait(for: 4))

            let during = seen.read { $0 }
            #expect(during.wrong.isEmpty, "\(during.wrong.prefix(3))")
            #expect(during.whole > 10 * Self.kills)
            #expect(during.fromDisk > Self.kills)
            // Files get their names when they are whole, so a killed process leaves none that is damaged.
            let log = daemon.errors + daemon.output
            #expect(!log.contains(" is removed"), "\(log.suffix(2000))")

            // And at the end, all there is, after an end in order, too.
            for _ in 0..<2 {
                for number in 0..<Self.resources { try Self.ask(try daemon.client(), daemon, number, seen) }
                try daemon.restart()
            }
            let (wrong, cut) = seen.read { ($0.wrong, $0.cut) }
            #expect(wrong.isEmpty, "\(wrong.prefix(3))")
            #expect(cut == during.cut)
            let left = try FileManager.default.contentsOfDirectory(atPath: daemon.home.folder.file("cache/tmp"))
            #expect(left.isEmpty, "\(left)")
        }
    }
}
