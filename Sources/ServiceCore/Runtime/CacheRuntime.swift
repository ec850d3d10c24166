// What a cache runs on, in the daemon and in a program that uses the library alike: its threads, its tiers and its
// core.

package import CacheStore
package import DiskStore
package import DownloadCore
package import EventLoop
package import Files

/// The threads of a cache, started together and ended together.
package struct CacheThreads: Sendable {
    package let loops: LoopGroup
    /// Reads and writes files; four threads.
    package let files: IOPool
    /// Asks the system for addresses, so that a name server that does not answer delays no file.
    package let names: IOPool

    /// - Parameters:
    ///   - loops: how many; nil is one per processor.
    ///   - nameThreads: how many threads ask the system for addresses.
    /// - Throws: `SystemError` if one thread cannot be started; those before it are ended.
    package static func start(loops: Int?, nameThreads: Int) throws(SystemError) -> CacheThreads {
        let files = try IOPool(threads: 4, name: "files")
        do throws(SystemError) {
            let names = try IOPool(threads: nameThreads, name: "names")
            do throws(SystemError) {
                return CacheThreads(loops: try LoopGroup.start(count: loops), files: files, names: names)
            } catch {
                names.stop()
                throw error
            }
        } catch {
            files.stop()
            throw error
        }
    }

    /// Ends the loops, then the pools, which finish what is queued. Blocks: not on one of these threads.
    package func stop() {
        loops.stop()
        files.stop()
        names.stop()
    }
}

/// What the tiers of a cache may hold.
package struct CacheLimits: Sendable {
    /// The disk tier: its folder, and what may be in it.
    package struct Disk: Sendable {
        package var path: String
        package var limits: DiskLimits
        package var kind: StoreKind
        /// What the tier does to its files; tests have failing ones.
        package var calls = FileCalls.real

        package init(path: String, limits: DiskLimits, kind: StoreKind) {
            self.path = path
            self.limits = limits
            self.kind = kind
        }
    }

    /// Bytes of everything in memory.
    package var memorySize: Int
    /// Responses in memory.
    package var memoryObjects: Int
    /// Bytes of one body in memory.
    package var memoryMaxObject: Int
    /// nil stores nothing on disk.
    package var disk: Disk?

    package init(memorySize: Int, memoryObjects: Int, memoryMaxObject: Int, disk: Disk?) {
        self.memorySize = memorySize
        self.memoryObjects = memoryObjects
        self.memoryMaxObject = memoryMaxObject
        self.disk = disk
    }
}

/// A cache without its services: threads, tiers, the download core and the resolver of names.
///
/// Sendable: its members are, and none of them changes.
package struct CacheRuntime: Sendable {
    package let threads: CacheThreads
    package let core: DownloadCore

    /// Opens the tiers and makes the core.
    /// - Parameters:
    ///   - name: the cache's name in the field Cache-Status.
    ///   - threads: they belong to the runtime only when this has returned; the caller ends them if it throws.
    ///   - onTrouble: told of what is wrong with the disk tier; any I/O thread.
    ///   - report: told of what the core finds worth a line of a log; any thread.
    /// - Throws: why the disk tier cannot be opened.
    package static func open(
        name: String,
        _ limits: CacheLimits,
        on threads: CacheThreads,
        onTrouble: @escaping @Sendable (DiskTrouble) -> Void,
        report: @escaping @Sendable (CoreEvent) -> Void
    ) async throws -> CacheRuntime {
        var disk: DiskTier?
        if let tier = limits.disk {
            disk = try await DiskTier.open(
                path: tier.path,
                limits: tier.limits,
                kind: tier.kind,
                pool: threads.files,
                calls: tier.calls,
                onTrouble: onTrouble
            )
        }
        let memory = MemoryTier(
            size: limits.memorySize,
            objects: limits.memoryObjects,
            maxObject: limits.memoryMaxObject,
            pins: disk?.invalidations.pins ?? Pins()
        )
        let core = DownloadCore(
            cacheName: name,
            memory: memory,
            memoryMaxObject: limits.memoryMaxObject,
            behind: disk.map { [$0] } ?? [],
            diskMaxObject: limits.disk.map { Int(clamping: $0.limits.maxObject ?? $0.limits.size) } ?? 0,
            budget: BodyBudget(maxObject: limits.memoryMaxObject),
            clock: WallClock(),
            report: report
        )
        return CacheRuntime(threads: threads, core: core)
    }

    /// Ends the loops with whatever still runs on them, closes the tiers behind memory, and ends the pools, which
    /// finish what is queued. Blocks: not on one of these threads.
    package func stop() {
        // The tiers take what loops hand them until these have ended, and their own work needs the
        // pool until they are closed.
        threads.loops.stop()
        core.store.close()
        threads.files.stop()
        threads.names.stop()
    }
}
