// The folder of the disk tier in other hands: damage, a full disk, a second daemon. The answer arrives all the same.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Disk {
        enum Damage: CaseIterable {
            case deleted, truncated, headBit, bodyBit, indexBit, indexDeleted, indexGarbage
        }

        static func makeOrigin(_ size: Int) throws -> ScriptedOrigin {
            try ScriptedOrigin { _ in .pattern(size, fields: [("Cache-Control", "max-age=600"), ("ETag", "\"1\"")]) }
        }

        static func files(_ daemon: Daemon) -> [String] {
            let objects = daemon.home.cache + "/objects"
            let names = FileManager.default.enumerator(atPath: objects)?.compactMap { $0 as? String } ?? []
            return names.filter { $0.utf8.count == 38 }.map { "\(objects)/\($0)" }
        }

        /// What the log warns of, besides the machine's limit of open files.
        private func warnings(of daemon: Daemon) -> [Substring] {
            (daemon.errors + daemon.output).split(separator: "\n").filter {
                $0.contains("warning") && !$0.contains("limits.connections is")
            }
        }

        private func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            body(&bytes)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }

        private func damage(_ daemon: Daemon, _ damage: Damage, _ size: Int) throws {
            let file = try #require(Self.files(daemon).first)
            let index = daemon.home.cache + "/index.sqlite"
            switch damage {
            case .deleted: try FileManager.default.removeItem(atPath: file)
            case .truncated: try change(file) { $0.removeLast($0.count - 4096 - size / 2) }
            case .headBit: try change(file) { $0[4096 + size + 80] ^= 1 }
            case .bodyBit: try change(file) { $0[4096 + size / 2] ^= 1 }
            case .indexBit:
                // The URL stands in the row and in the index by URL; what is before it in the row are its numbers.
                try change(index) { bytes in
                    let url = Array("http://127.0.0.1".utf8)
                    for offset in 32..<(bytes.count - url.count) where bytes[offset..<(offset + url.count)] == url[...]
                    {
                        bytes[offset - 12] ^= 1
                    }
                }
            case .indexDeleted: try FileManager.default.removeItem(atPath: index)
            case .indexGarbage: try change(index) { $0 = $0.map { _ in 0x5A } }
            }
        }

        @Test(arguments: Damage.allCases)
        func theAnswerArrivesTheEntryGoesAndTheLogSaysSoOnce(_ damage: Damage) throws {
            let size = 50_000
            let origin = try Self.makeOrigin(size)
            let daemon = try Daemon(services(service("api", origin.url)))
            _ = try daemon.exchange("/api/a")
            #expect(eventually { Self.files(daemon).count == 1 })
            daemon.end()
            try self.damage(daemon, damage, size)
            try daemon.restart()
            for round in 0..<3 {
                let answer = try daemon.exchange("/api/a")
                #expect(answer.status == 200 && answer.end == .complete)
                #expect(answer.body.count == size && answer.body.withUnsafeBytes { Pattern.matches($0, at: 0) })
                #expect((answer.field("Cache-Status") ?? "").contains("hit") == (round > 0 || isOfIndex(damage)))
            }
            #expect(origin.requests() == (isOfIndex(damage) ? 1 : 2))
            #expect(eventually { Self.files(daemon).count == 1 })
            daemon.end()
            let lines = warnings(of: daemon)
            // An index that is not there is like a new one: nothing is lost by it.
            let isTold = damage != .indexDeleted
            #expect(lines.count == (isTold ? 1 : 0), "\(lines)")
            if isTold, !isOfIndex(damage) {
                #expect(lines.first?.contains("\(origin.url)/a") == true && lines.first?.contains("/objects/") == true)
            }
        }

        private func isOfIndex(_ damage: Damage) -> Bool {
            [.indexBit, .indexDeleted, .indexGarbage].contains(damage)
        }

        /// Up to 8 MiB a body is verified before its first byte; a longer one is cut, and never goes on wrong.
        @Test(arguments: [900_000, 8 << 20, 9_000_000])
        func aLaterBlockThatIsDamagedIsNeverServed(_ size: Int) throws {
            let origin = try Self.makeOrigin(size)
            let daemon = try Daemon(services(service("api", origin.url)))
            _ = try daemon.exchange("/api/a")
            #expect(eventually { Self.files(daemon).count == 1 })
            daemon.end()
            try damage(daemon, .bodyBit, size)
            try daemon.restart()
            let first = try daemon.exchange("/api/a")
            #expect(first.end == (size > 8 << 20 ? .cut : .complete))
            #expect(first.body.withUnsafeBytes { Pattern.matches($0, at: 0) })
            let second = try daemon.exchange("/api/a")
            #expect(second.end == .complete && second.body.count == size)
            #expect(second.body.withUnsafeBytes { Pattern.matches($0, at: 0) })
            #expect(origin.requests() == 2)
        }

        @Test func whereMinFreeIsNotThereAnswersArriveAndTheLogSaysSoOnce() throws {
            let size = 300_000
            let origin = try Self.makeOrigin(size)
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 1MiB, max_object: 4KiB }"
            let home = try DaemonHome()
            let text = settings.text(at: home).replacingOccurrences(of: "min_free: 1MiB", with: "min_free: 900TiB")
            let daemon = try Daemon(text: text, at: home)
            for number in 0..<5 {
                let answer = try daemon.exchange("/api/\(number)")
                #expect(answer.status == 200 && answer.end == .complete && answer.body.count == size)
            }
            daemon.end()
            #expect(Self.files(daemon).isEmpty)
            let lines = (daemon.errors + daemon.output).split(separator: "\n").filter { $0.contains("min_free") }
            #expect(lines.count == 1, "\(lines)")
        }

        @Test(arguments: [1000, 300_000])
        func whereTheFolderIsEmptiedUnderTheDaemonItIsMadeAnewAndTheLogSaysSoOnce(_ size: Int) throws {
            let origin = try Self.makeOrigin(size)
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 1MiB, max_object: 256B }"
            let daemon = try Daemon(settings)
            for number in 0..<5 { _ = try daemon.exchange("/api/\(number)") }
            #expect(eventually { Self.files(daemon).count == 5 })
            try Shell.must("sh", ["-c", "rm -rf '\(daemon.home.cache)'/*"])
            for number in 0..<5 {
                let answer = try daemon.exchange("/api/\(number)")
                #expect(answer.status == 200 && answer.body.count == size && answer.end == .complete)
                #expect(
                    answer.field("Cache-Status")?.hasSuffix("; stored") == true,
                    "\(answer.field("Cache-Status") ?? "")"
                )
                #expect(eventually { Self.files(daemon).count == number + 1 })
            }
            for number in 0..<5 {
                #expect(try daemon.exchange("/api/\(number)").field("Cache-Status")?.contains("; hit") == true)
            }
            try daemon.restart()
            for number in 0..<5 {
                #expect(try daemon.exchange("/api/\(number)").field("Cache-Status")?.contains("; hit") == true)
            }
            daemon.end()
            let lines = warnings(of: daemon)
            #expect(lines.count == 1, "\(lines)")
            #expect(
                lines.first?.contains("somebody has removed") == true
                    && lines.first?.contains(daemon.home.cache) == true
            )
        }

        @Test func aPipeInThePlaceOfAFileIsAMissAndNotWaitedFor() throws {
            let size = 300_000
            let origin = try Self.makeOrigin(size)
            let daemon = try Daemon(services(service("api", origin.url)))
            for path in ["a", "b"] { _ = try daemon.exchange("/api/\(path)") }
            #expect(eventually { Self.files(daemon).count == 2 })
            daemon.end()
            for file in Self.files(daemon) { try Shell.must("sh", ["-c", "rm '\(file)' && mkfifo '\(file)'"]) }
            // As after a kill, too: the walk meets it.
            try FileManager.default.removeItem(atPath: daemon.home.cache + "/index.sqlite")
            try daemon.restart()
            for path in ["a", "b", "a", "b"] {
                let answer = try daemon.exchange("/api/\(path)")
                #expect(answer.status == 200 && answer.body.count == size && answer.end == .complete)
            }
            #expect(origin.requests() == 4)
        }

        @Test func aSecondDaemonOnTheFolderIsRefusedAndTheFolderIsNobodyElses() throws {
            let origin = try Self.makeOrigin(10)
            let daemon = try Daemon(services(service("api", origin.url)))
            var status = stat()
            #expect(stat(daemon.home.cache, &status) == 0 && status.st_mode & 0o777 == 0o700)
            let other = try DaemonHome()
            let text = services(service("api", origin.url)).text(at: other)
                .replacingOccurrences(of: other.cache, with: daemon.home.cache)
            try other.folder.write("drydock.yaml", text)
            let second = try Shell.run(Daemon.binary(), ["serve", "-c", other.configuration])
            #expect(second.end == .exited(1))
            #expect(second.errors.contains("the cache folder \(daemon.home.cache) is in use by another daemon"))
            #expect(second.errors.contains("cache.disk.path"))
            #expect(try daemon.exchange("/api/a").status == 200)
        }
    }
}
