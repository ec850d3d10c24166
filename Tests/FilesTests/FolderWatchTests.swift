// Folders that are watched: every way in which a file changes is told, and what concerns no file is not.

import EventLoop
import Files
import Glibc
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct FolderWatchTests {
    /// A folder with a folder `in` and a file `in/a`, and a watch over the file.
    final class World: Sendable {
        let path: String
        let loops: LoopGroup
        let box: LoopBox<FolderWatch>
        let changes: AsyncStream<Void>

        init() async throws {
            var template = Array("/tmp/drydock-watch-XXXXXX".utf8CString)
            let path = try #require(mkdtemp(&template).map { String(cString: $0) })
            self.path = path
            mkdir("\(path)/in", 0o755)
            let loops = try LoopGroup.start(count: 1)
            self.loops = loops
            let (changes, told) = AsyncStream<Void>.makeStream()
            self.changes = changes
            box = try await Self.watch("\(path)/in/a", on: loops.loops[0], told)
            try write("in/a", "1")
            await next()
        }

        private static func watch(
            _ file: String,
            on loop: isolated EventLoop,
            _ told: AsyncStream<Void>.Continuation
        ) throws -> LoopBox<FolderWatch> {
            try LoopBox(on: loop) { loop in
                let watch = try FolderWatch(on: loop, settling: 1_000_000) { told.yield() }
                #expect(watch.watch(filesAt: [file]).isEmpty)
                return watch
            }
        }

        func write(_ name: String, _ text: String) throws {
            let file = try #require(fopen("\(path)/\(name)", "w"))
            #expect(fputs(text, file) >= 0)
            #expect(fclose(file) == 0)
        }

        /// Waits for the next word of the watch, and takes those that came with it.
        func next() async {
            for await _ in changes { return }
        }

        /// Ends the watch and removes the folder.
        func end() async {
            _ = await box.run { _, loop in }
            await Self.take(box, on: loops.loops[0])
            loops.stop()
            for name in ["in/a", "in/b", "a", "out/a", "c"] { unlink("\(path)/\(name)") }
            for name in ["in", "out", "new"] { rmdir("\(path)/\(name)") }
            rmdir(path)
        }

        private static func take(_ box: LoopBox<FolderWatch>, on loop: isolated EventLoop) { _ = box.take(on: loop) }
    }

    @Test("writing, moving into place, removing and touching a file")
    func changes() async throws {
        let world = try await World()
        try world.write("in/a", "2")
        await world.next()
        try world.write("a", "3")
        #expect(rename("\(world.path)/a", "\(world.path)/in/a") == 0)
        await world.next()
        #expect(unlink("\(world.path)/in/a") == 0)
        await world.next()
        #expect(symlink("/dev/null", "\(world.path)/in/a") == 0)
        await world.next()
        await world.end()
    }

    @Test("a folder in the place of another, which then is watched itself")
    func folders() async throws {
        let world = try await World()
        #expect(mkdir("\(world.path)/new", 0o755) == 0)
        #expect(rename("\(world.path)/in", "\(world.path)/out") == 0)
        await world.next()
        #expect(rename("\(world.path)/new", "\(world.path)/in") == 0)
        let path = "\(world.path)/in/a"
        let troubles = await world.box.run { watch, loop in watch.watch(filesAt: [path]).map(\.error) }
        #expect(troubles == [])
        try world.write("in/a", "4")
        await world.next()
        await world.end()
    }

    @Test("a folder that is missing is named")
    func missing() async throws {
        let world = try await World()
        let path = "\(world.path)/none/a"
        let troubles = await world.box.run { watch, loop in watch.watch(filesAt: [path]).map { "\($0)" } }
        #expect(troubles == ["(folder: \"\(world.path)/none\", error: \(ENOENT))"])
        await world.end()
    }
}
