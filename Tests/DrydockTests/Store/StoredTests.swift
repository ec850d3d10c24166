// What a manager knows of what is stored, seeds included, and how it goes.

import DownloadCore
import EventLoop
import Foundation
import LibrarySupport
import TestSupport
import Testing

@testable import Drydock

@Suite struct StoredTests {
    @Test(arguments: [false, true]) func states(onDisk: Bool) async throws {
        let resource = ChangingResource()
        try await withManager(onDisk: onDisk) {
            resource.reply($0)
        } _: { manager, origin in
            #expect(try await manager.state(of: origin.url()) == .absent)
            _ = try await manager.download(origin.url())
            guard case .valid(let left) = try await manager.state(of: origin.url()) else {
                Issue.record("it has just been downloaded")
                return
            }
            #expect(left > .seconds(7000) && left <= .seconds(7200))
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("A folder that is not empty and has no mark of a manager is refused, and nothing in it is touched")
    func foreignFolders() async throws {
        for (name, text, part) in [
            ("HEAD", "ref: refs/heads/main\n", "name an empty folder"), ("version", "drydock 1 shared\n", "a daemon"),
            ("version", "drydock 9 private\n", "newer version"),
        ] {
            let folder = try TemporaryFolder("drydock-library")
            try folder.write("store/\(name)", text)
            try folder.write("store/tmp/mine", "mine")
            let manager = makeManager(folder)
            let error = await #expect(throws: DownloadError.self) {
                _ = try await manager.state(of: URL(string: "http://127.0.0.1:1/")!)
            }
            guard case .unavailable(let reason) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(reason.contains(folder.file("store")) && reason.contains(part), "\(reason)")
            #expect(folder.text("store/\(name)") == text && folder.text("store/tmp/mine") == "mine")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("store"))
            #expect(Set(names) == [name, "tmp"])
            await manager.close()
        }
    }

    @Test("A manager marks its folder as private, and takes it again") func ownFolders() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        for outcome in [DownloadOutcome.downloaded, .stillValid] {
            let manager = makeManager(folder)
            #expect(try await manager.download(origin.url()).outcome == outcome)
            await manager.close()
            #expect(folder.text("store/version") == "drydock 1 private\n")
        }
    }

    @Test func staleWithoutALifetime() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            guard case .stale = try await manager.state(of: origin.url()) else {
                Issue.record("it is valid for no time at all")
                return
            }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func withoutChecksItIsValidForEver() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.validation = .never
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            resource.change()
            let result = try await manager.download(origin.url())
            #expect(result.outcome == .stillValid)
            #expect(result.text == "version 1")
            #expect(origin.server.requests() == 1)
        }
    }

    @Test(arguments: [false, true]) func removing(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            for path in ["/a", "/b"] { _ = try await manager.download(origin.url(path)) }
            try await manager.remove(origin.url("/a"))
            #expect(try await manager.state(of: origin.url("/a")) == .absent)
            #expect(try await manager.download(origin.url("/b")).outcome == .stillValid)
            #expect(try await manager.download(origin.url("/a")).outcome == .downloaded)
            #expect(origin.server.requests() == 3)
        }
    }

    @Test(arguments: [false, true]) func removingByAge(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            for path in ["/a", "/b"] { _ = try await manager.download(origin.url(path)) }
            #expect(try await manager.remove(olderThan: .seconds(3600)) == 0)
            #expect(try await manager.download(origin.url("/a")).outcome == .stillValid)
            // The time is counted in whole seconds: a second later all is older than no time at all.
            try await manager.engine().core.clock.advance(seconds: 1)
            #expect(
                await eventually {
                    _ = try? await manager.remove(olderThan: .zero)
                    let states = [
                        try? await manager.state(of: origin.url("/a")), try? await manager.state(of: origin.url("/b")),
                    ]
                    return states == [.absent, .absent]
                }
            )
        }
    }

    @Test(arguments: [false, true]) func removingEverything(onDisk: Bool) async throws {
        try await withManager(onDisk: onDisk) {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            for path in ["/a", "/b"] { _ = try await manager.download(origin.url(path)) }
            #expect(try await manager.removeAll() == 2)
            for path in ["/a", "/b"] { #expect(try await manager.state(of: origin.url(path)) == .absent) }
            #expect(try await manager.removeAll() == 0)
        }
    }

    @Test(arguments: [false, true]) func expiringEverything(onDisk: Bool) async throws {
        let resource = ChangingResource()
        try await withManager(onDisk: onDisk) {
            resource.reply($0)
        } _: { manager, origin in
            for path in ["/a", "/b"] { _ = try await manager.download(origin.url(path)) }
            #expect(try await manager.expireAll() == 2)
            for path in ["/a", "/b"] {
                #expect(try await manager.download(origin.url(path)).outcome == .confirmed)
                #expect(try await manager.download(origin.url(path)).outcome == .stillValid)
            }
            #expect(origin.count("GET") == 2)
            #expect(origin.count("HEAD") == 2)
        }
    }

    @Test func givingMemoryBack() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        let manager = makeManager(folder)
        _ = try await manager.download(origin.url())
        #expect(try await manager.download(origin.url()).cacheStatus == "hit; ttl=+; detail=memory")
        // The file is written behind the answer.
        #expect(
            await eventually {
                try? await manager.freeMemory()
                return (try? await manager.download(origin.url()))?.cacheStatus == "hit; ttl=+; detail=disk"
            }
        )
        await manager.close()
    }

    // MARK: - Tiers

    @Test func memoryAloneAndDiskAlone() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        let onDisk = makeManager(folder) { $0.memory = nil }
        _ = try await onDisk.download(origin.url())
        #expect(await eventually { (try? await onDisk.state(of: origin.url())) != .absent })
        #expect(try await onDisk.download(origin.url()).cacheStatus == "hit; ttl=+; detail=disk")
        await onDisk.close()
        let nowhere = makeManager { $0.memory = nil }
        for _ in 0..<2 { #expect(try await nowhere.download(origin.url()).outcome == .downloaded) }
        await nowhere.close()
        #expect(origin.server.requests() == 3)
    }

    @Test("One body may take most of a disk store, unless a smaller limit is set", arguments: [nil, Int64(100_000)])
    func largest(_ limit: Int64?) async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { _ in .pattern(600_000) })
        let manager = makeManager(folder) {
            $0.memory = nil
            $0.disk?.size = 1_000_000
            $0.disk?.maximumEntrySize = limit
        }
        _ = try await manager.download(origin.url())
        if limit == nil {
            #expect(await eventually { (try? await manager.state(of: origin.url())) != .absent })
            #expect(try await manager.download(origin.url()).cacheStatus == "hit; ttl=+; detail=disk")
        } else {
            #expect(try await manager.download(origin.url()).outcome == DownloadOutcome.downloaded)
        }
        #expect(origin.server.requests() == (limit == nil ? 1 : 2))
        await manager.close()
    }

    @Test func theDiskHasALimit() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { _ in .pattern(100_000) })
        let manager = makeManager(folder) {
            $0.memory = nil
            $0.disk?.size = 1_000_000
        }
        for number in 0..<30 { _ = try await manager.download(origin.url("/\(number)")) }
        func stored() async -> Int64 {
            var size: Int64 = 0
            do {
                for try await response in manager.store.responses(.all) { size += response.size ?? 0 }
            } catch {
                Issue.record("\(error)")
            }
            return size
        }
        // What is written last is there, and older responses have made room.
        #expect(await eventually { (try? await manager.state(of: origin.url("/29"))) != .absent })
        let size = await stored()
        #expect((100_000...1_000_000).contains(size), "\(size)")
        #expect(try await manager.state(of: origin.url("/0")) == .absent)
        await manager.close()
    }

    @Test func shortBodiesAreNotKept() async throws {
        try await withManager {
            $0.minimumLength = 100
        } _: { request in
            .pattern(request.target == "/long" ? 100 : 99)
        } _: { manager, origin in
            for path in ["/long", "/long", "/short", "/short"] { _ = try await manager.download(origin.url(path)) }
            #expect(origin.server.log.map(\.target) == ["/long", "/short", "/short"])
        }
    }

    // MARK: - Checks

    @Test func aFailedCheckIsNotRepeatedAtOnce() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.checkPause = .seconds(600)
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            resource.isFailing = true
            origin.server.forgetRequests()
            #expect(try await manager.download(origin.url()).outcome == .checkFailed)
            let asked = origin.server.requests()
            #expect(try await manager.download(origin.url()).outcome == .checkFailed)
            #expect(origin.server.requests() == asked)
        }
    }

    @Test(arguments: [
        (MissingRule.fail, "404", "stale"), (.useStored, "version 1", "stale"), (.remove, "404", "absent"),
    ]) func goneResources(gone: MissingRule, first: String, then state: String) async throws {
        let (resource, isGone) = (ChangingResource(), Monitor(false))
        try await withManager {
            $0.lifetime = .zero
            $0.missing = gone
        } _: { request in
            isGone.read { $0 } ? .answer(404, to: request, "none") : resource.reply(request)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            isGone.update { $0 = true }
            do throws(DownloadError) {
                let result = try await manager.download(origin.url())
                #expect(result.text == first)
                #expect(result.outcome == .checkFailed)
            } catch {
                #expect(error.description.contains(first), "\(error)")
            }
            let known = try await manager.state(of: origin.url())
            #expect("\(known)".hasPrefix(state), "\(known)")
        }
    }

    // MARK: - Seeds

    private func seeds(_ origin: Origin, _ text: String) throws -> TemporaryFolder {
        let folder = try TemporaryFolder("drydock-seeds")
        try folder.write("\(origin.server.authority)/a", text)
        return folder
    }

    @Test func seedsComeFirst() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "from the origin") })
        let folder = try seeds(origin, "from the seed")
        let manager = makeManager {
            $0.seeds = DownloadConfiguration.Seeds(folder: URL(fileURLWithPath: folder.path))
            $0.lifetime = .zero
        }
        #expect(try await manager.state(of: origin.url()) == .seeded)
        for options in [DownloadOptions(), .init(yieldsStaleFirst: true), .init(cachePolicy: .bypass)] {
            let seeded = try await manager.download(origin.url(), options: options)
            #expect(seeded.outcome == .seeded)
            #expect(seeded.text == "from the seed")
            #expect(seeded.cacheStatus == "hit; detail=seed")
        }
        #expect(origin.server.requests() == 0)
        let batch = manager.batch([DownloadBatch.Item(origin.url())])
        #expect(try await batch.run().entries.map(\.outcome) == [.seeded])
        #expect(origin.server.requests() == 0)
        let other = try await manager.download(origin.url(), options: .init(usesSeeds: false))
        #expect(other.text == "from the origin")
        let forced = try await manager.download(origin.url(), options: .init(cachePolicy: .reload))
        #expect(forced.text == "from the origin")
        #expect(try await manager.download(origin.url()).outcome == .seeded)
        await manager.close()
    }

    @Test func importedSeedsAreChecked() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "from the origin") })
        let folder = try seeds(origin, "from the seed")
        let manager = makeManager {
            $0.seeds = DownloadConfiguration.Seeds(folder: URL(fileURLWithPath: folder.path), use: .imported)
        }
        // It is stored, and not valid: the first use asks the origin, which has another one.
        let first = try await manager.download(origin.url())
        #expect(first.outcome == .downloaded)
        #expect(first.text == "from the origin")
        #expect(first.cacheStatus.hasPrefix("fwd=stale"))
        #expect(try await manager.download(origin.url()).outcome == .stillValid)
        await manager.close()
    }

    @Test func aSeedFolderThatIsNone() async throws {
        let manager = makeManager {
            $0.seeds = DownloadConfiguration.Seeds(folder: URL(fileURLWithPath: "/nowhere/at/all"))
        }
        do throws(DownloadError) {
            try await manager.open()
            Issue.record("there is no such folder")
        } catch {
            #expect(error.description.contains("/nowhere/at/all"))
            #expect(error.outcome == .invalid)
        }
    }
}
