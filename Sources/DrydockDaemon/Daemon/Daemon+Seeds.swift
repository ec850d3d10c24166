// Seed folders in the daemon: how they are opened, what is told and counted of them.

internal import CacheStore
internal import DownloadCore
internal import EventLoop
internal import Logging
internal import Policies
internal import ProxyServer
internal import ServiceCore
internal import Synchronization

extension Daemon {
    static func seedOpener(_ files: IOPool, _ logger: Logger) -> SeedOpener {
        SeedOpener(pool: files) { logger.warning("\($0)") }
    }

    /// Tells which folders are in use from now on, copies what is to be imported, and writes the files that are missing;
    /// both behind.
    func tellSeeds(_ plan: RoutePlan) {
        for folder in plan.seeds {
            parts.logger.info(
                "seed folder opened",
                metadata: [
                    "path": "\(folder.path)", "mode": "\(folder.mode.rawValue)", "layout": "\(folder.layout.rawValue)",
                    "files": "\(folder.count)",
                ]
            )
        }
        let (importing, files) = (plan.seeds.filter { $0.mode == .import }, plan.storedFiles)
        if importing.isEmpty, files.isEmpty { return }
        Task {
            for folder in importing { _ = await importAll(folder, isOwn: true) }
            // What was stored before the configuration asked for a file.
            for file in files { await parts.core.keepAsFile(file.key, as: file.name) }
        }
    }

    var seedGauges: [Gauge] {
        let (core, plan) = (parts.core, state.withLock { $0.plan })
        return [
            Gauge("drydock_seed_files", "Responses in seed folders.") { plan.seeds.reduce(0) { $0 + $1.count } },
            Gauge("drydock_seed_answers_total", "Answers that came from seed folders.", isCounter: true) {
                core.seedAnswerCount
            },
        ]
    }
}
