// Whose folder the daemon takes for its store: not a repository, not a user's files, not a program's own store.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct StoreFolder {
        /// Every path below a folder with its permissions, date and content.
        private func picture(_ path: String) -> [String] {
            let files = FileManager.default
            let names = (files.enumerator(atPath: path)?.allObjects as? [String] ?? []).sorted()
            return ([""] + names).map { name in
                let attributes = try? files.attributesOfItem(atPath: "\(path)/\(name)")
                let mode = attributes?[.posixPermissions] as? Int ?? -1
                let date = attributes?[.modificationDate] as? Date ?? .distantPast
                return "\(name) \(mode) \(date.timeIntervalSince1970) \(readText("\(path)/\(name)"))"
            }
        }

        private func run(_ verb: String, at home: DaemonHome) throws -> ShellResult {
            let text = DaemonSettings("services: []").text(at: home)
            try home.folder.write("drydock.yaml", text)
            return try Shell.run(Daemon.binary(), [verb, "-c", home.configuration])
        }

        @Test("A bare git repository is refused by check and serve, and stays as it is", arguments: ["check", "serve"])
        func aBareRepository(_ verb: String) throws {
            let home = try DaemonHome()
            try Shell.must("git", ["init", "--quiet", "--bare", home.cache])
            try home.folder.write("cache/objects/ab/cdef", "an object")
            try Shell.must("chmod", ["0755", home.cache])
            let before = picture(home.cache)
            let result = try run(verb, at: home)
            #expect(result.end == refused(verb), "\(result.report)")
            #expect(result.errors.contains("drydock.yaml:8:17: 'cache.disk.path' \(home.cache)"), "\(result.report)")
            #expect(result.errors.contains("name an empty folder"), "\(result.report)")
            #expect(picture(home.cache) == before)
        }

        @Test("A user's files in tmp and trash are neither read nor removed", arguments: ["check", "serve"])
        func aUsersFiles(_ verb: String) throws {
            let home = try DaemonHome()
            for name in ["tmp/letter.txt", "trash/photo.jpg", "secret", "lock", "index.sqlite", "rules"] {
                try home.folder.write("cache/\(name)", "mine: \(name)")
            }
            let before = picture(home.cache)
            let result = try run(verb, at: home)
            #expect(result.end == refused(verb) && result.errors.contains("name an empty folder"), "\(result.report)")
            #expect(picture(home.cache) == before)
        }

        @Test("A file in place of the folder is refused, and stays", arguments: ["check", "serve"])
        func aFile(_ verb: String) throws {
            let home = try DaemonHome()
            try home.folder.write("cache", "a file")
            let result = try run(verb, at: home)
            #expect(result.end == refused(verb) && result.errors.contains("is not a folder"), "\(result.report)")
            #expect(readText(home.cache) == "a file")
        }

        @Test("The daemon's own folder is taken again, marked; newer ones and those of programs are refused")
        func ownFolders() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "kept") }
            let daemon = try Daemon(services(service("api", origin.url)))
            let home = daemon.home
            #expect(try daemon.exchange("/api/a").text == "kept")
            #expect(home.folder.text("cache/CACHEDIR.TAG").hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
            #expect(home.folder.text("cache/version") == "drydock 1 shared\n")
            #expect(
                daemon.errors.contains("stored responses are kept in \(home.cache), at most 2.0 GiB"),
                "\(daemon.errors)"
            )
            let check = try Shell.run(Daemon.binary(), ["check", "-c", home.configuration])
            #expect(check.succeeded, "\(check.report)")
            // A reload, too, meets a folder in use.
            #expect(try daemon.command("reload").succeeded)
            try daemon.restart(SIGTERM)
            #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
            // As version 0.1.0 left it.
            #expect(daemon.end() == .exited(0))
            for name in ["CACHEDIR.TAG", "version"] {
                try FileManager.default.removeItem(atPath: "\(home.cache)/\(name)")
            }
            try daemon.restart(SIGTERM)
            #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
            #expect(home.folder.text("cache/version") == "drydock 1 shared\n")
            #expect(daemon.errors.contains("0.1.0"), "\(daemon.errors)")
            #expect(daemon.end() == .exited(0))
            for (version, part) in [("99 shared", "newer version"), ("1 private", "uses the library")] {
                try home.folder.write("cache/version", "drydock \(version)\n")
                for verb in ["check", "serve"] {
                    let result = try Shell.run(Daemon.binary(), [verb, "-c", home.configuration])
                    #expect(result.end == refused(verb) && result.errors.contains(part), "\(result.report)")
                }
            }
        }

        @Test("An admin socket in the store's folder does not make it somebody's")
        func anAdminSocketInTheFolder() throws {
            let home = try DaemonHome()
            let text = DaemonSettings("services: []").text(at: home)
                .replacing("unix:\(home.adminSocket)", with: "unix:\(home.cache)/admin.sock")
            try home.folder.folder("cache")
            let daemon = try Daemon(text: text, at: home)
            #expect(daemon.end() == .exited(0))
            #expect(home.folder.text("cache/version") == "drydock 1 shared\n")
        }

        @Test("serve URL has a folder beside that of make run, and refuses another's")
        func ofAURL() throws {
            let folder = try TemporaryFolder()
            try folder.write("drydock/serve/thesis.tex", "mine")
            let variables = ["XDG_CACHE_HOME": folder.path]
            let result = try Shell.run(
                Daemon.binary(),
                ["serve", "http://127.0.0.1:1"],
                environment: variables
            )
            #expect(result.end == .exited(1), "\(result.report)")
            #expect(result.errors.contains("\(folder.path)/drydock/serve is not empty"), "\(result.report)")
            #expect(folder.text("drydock/serve/thesis.tex") == "mine")
            let demo = readText(URL(filePath: #filePath).deletingLastPathComponent().path + "/../../config/demo.yaml")
            #expect(demo.contains("drydock}/store\""), "make run keeps its store elsewhere")
        }
    }
}
