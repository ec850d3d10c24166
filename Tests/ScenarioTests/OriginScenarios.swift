// A real nginx as the origin: miss, memory, disk, restart, kill, revalidation by HEAD, a
// change, an origin that is gone.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct RealOrigin {
        static let bigSize = 64 << 20
        static let names = ["page.html", "data.json", "pixel.png", "big.bin"]

        /// An nginx whose `/fresh` may be kept ten minutes and whose `/short` may be kept one minute.
        static func nginx() throws -> NginxOrigin {
            let nginx = try NginxOrigin(
                server: """
                    location /fresh/ { add_header Cache-Control "max-age=600"; }
                    location /short/ { add_header Cache-Control "max-age=60"; }
                    """
            )
            for folder in ["fresh", "short"] {
                try nginx.write("\(folder)/page.html", "<!doctype html><title>Drydock</title><p>Hello.</p>\n")
                try nginx.write("\(folder)/data.json", #"{"users": [1, 2, 3]}"#)
                try nginx.write("\(folder)/pixel.png", pixel)
            }
            try nginx.folder.writePattern("root/fresh/big.bin", count: bigSize)
            return nginx
        }

        /// A daemon whose clock `expire` moves.
        private static func daemon(_ services: String...) throws -> Daemon {
            try Daemon(DaemonSettings("clock: { movable: true }\nservices:\n" + services.joined()))
        }

        /// Moves the clock on, until what may be kept for a minute is stale.
        private func expire(_ daemon: Daemon) throws {
            let moved = try daemon.command("clock", "advance", "100s")
            #expect(moved.succeeded, "\(moved.report)")
        }

        static let pixel: [UInt8] = Array(
            Data(
                base64Encoded:
                    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
            ) ?? Data()
        )

        /// Fetches every fresh file, compares checksums, and expects `check` of each Cache-Status.
        private func fetchAll(
            _ daemon: Daemon,
            _ nginx: NginxOrigin,
            _ check: (String, CacheStatusMember) -> Bool
        ) throws {
            let client = try daemon.client()
            for name in Self.names {
                let response = try client.exchange("/files/fresh/\(name)")
                #expect(response.status == 200)
                #expect(response.end == .complete)
                #expect(try SHA256.bytes(response.body) == SHA256.file("\(nginx.root)/fresh/\(name)"), "\(name)")
                let status = try #require(response.cacheStatus)
                #expect(check(name, status), "\(name): \(status)")
                #expect(response.field("Via")?.contains("1.1 drydock") == true)
                if status.isHit { #expect(response.field("Age").flatMap { Int($0) } != nil) }
            }
        }

        private func expectOneGetEach(_ nginx: NginxOrigin) throws {
            for name in Self.names {
                #expect(try nginx.requests(method: "GET", path: "/fresh/\(name)") == 1, "\(name)")
            }
        }

        /// Blocks until every fresh file has reached the disk tier.
        private func waitUntilOnDisk(_ daemon: Daemon) throws {
            var list = ""
            let stored = try eventually {
                list = try daemon.command("list").output
                return Self.names.allSatisfy { name in
                    list.split(separator: "\n").contains { $0.contains(name) && $0.contains("disk") }
                }
            }
            #expect(stored, "not all on disk: \(list)")
        }

        @Test func missThenMemoryThenDiskAfterRestartAndKill() throws {
            let nginx = try Self.nginx()
            let daemon = try Daemon(services(service("files", nginx.url)))
            try fetchAll(daemon, nginx) { _, status in
                status.forwarded == "uri-miss" && status.isStored && !status.isHit
            }
            try expectOneGetEach(nginx)
            // The 64 MiB file is above max_object of the memory tier.
            try fetchAll(daemon, nginx) { name, status in
                status.isHit && status.detail == (name == "big.bin" ? "disk" : "memory")
            }
            try waitUntilOnDisk(daemon)

            try daemon.restart(SIGTERM)
            try fetchAll(daemon, nginx) { _, status in status.isHit && status.detail == "disk" }
            try daemon.restart(SIGKILL)
            try fetchAll(daemon, nginx) { _, status in status.isHit && status.detail == "disk" }
            try expectOneGetEach(nginx)
            #expect(try nginx.requests(method: "HEAD") == 0)
        }

        @Test func staleIsRevalidatedByOneHead() throws {
            let nginx = try Self.nginx()
            let daemon = try Self.daemon(service("files", nginx.url))
            let first = try daemon.exchange("/files/short/pixel.png")
            #expect(first.body == Self.pixel)
            try expire(daemon)
            let second = try daemon.exchange("/files/short/pixel.png")
            #expect(second.body == Self.pixel)
            #expect(second.cacheStatus?.forwarded == "stale")
            #expect(["200", "304"].contains(second.cacheStatus?.parameters["fwd-status"]))
            #expect(second.cacheStatus?.detail == "revalidated")
            #expect(try nginx.requests(method: "HEAD", path: "/short/pixel.png") == 1)
            #expect(try nginx.requests(method: "GET", path: "/short/pixel.png") == 1)
            #expect(try daemon.exchange("/files/short/pixel.png").cacheStatus?.isHit == true)
            #expect(try nginx.requests() == 2)
        }

        @Test func staleIsRevalidatedByConditionalGetWhereConfigured() throws {
            let nginx = try Self.nginx()
            let daemon = try Self.daemon(service("files", nginx.url, "cache: { revalidate: conditional }"))
            _ = try daemon.exchange("/files/short/page.html")
            try expire(daemon)
            let second = try daemon.exchange("/files/short/page.html")
            #expect(second.status == 200)
            #expect(second.text.contains("Hello."))
            #expect(second.cacheStatus?.detail == "revalidated")
            #expect(try nginx.requests(method: "HEAD") == 0)
            #expect(nginx.log.map(\.status) == [200, 304])
        }

        @Test func aChangeIsFetchedOnce() throws {
            let nginx = try Self.nginx()
            let daemon = try Self.daemon(service("files", nginx.url))
            _ = try daemon.exchange("/files/short/data.json")
            try nginx.write("short/data.json", #"{"users": [1, 2, 3, 4, 5]}"#)
            try expire(daemon)
            let answers = try Threads.run(20) { _ in try daemon.exchange("/files/short/data.json") }
            for answer in answers { #expect(answer.text == #"{"users": [1, 2, 3, 4, 5]}"#) }
            #expect(answers.contains { $0.cacheStatus?.detail == "replaced" })
            #expect(try nginx.requests(method: "GET", path: "/short/data.json") == 2)
            #expect(try nginx.requests(method: "HEAD", path: "/short/data.json") == 1)
        }

        @Test func withoutItsOriginItAnswersStaleWhereConfiguredElse502() throws {
            let nginx = try Self.nginx()
            let daemon = try Self.daemon(
                service("files", nginx.url, "cache: { stale_if_error: 1d }"),
                service("strict", nginx.url, "cache: { stale_if_error: 0s }")
            )
            for name in ["files", "strict"] { _ = try daemon.exchange("/\(name)/short/page.html") }
            try expire(daemon)
            nginx.stop()

            let stale = try daemon.exchange("/files/short/page.html")
            #expect(stale.status == 200)
            #expect(stale.text.contains("Hello."))
            #expect(stale.cacheStatus?.forwarded == "stale")
            #expect(stale.cacheStatus?.detail == "stale-if-error")

            for target in ["/strict/short/page.html", "/files/fresh/data.json"] {
                let failed = try daemon.exchange(target)
                expectProblem(failed, 502)
                #expect(failed.field("Proxy-Status")?.contains("error=") == true)
                #expect((failed.problem?["detail"] as? String)?.contains(nginx.authority) == true, "\(failed.text)")
            }

            try nginx.start()
            #expect(try daemon.exchange("/strict/short/page.html").status == 200)
        }
    }
}
