// Seed folders in the daemon: what of them is logged and counted, and what a new configuration has copied.

import CacheStore
import DownloadCore
import EventLoop
import Logging
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// Sendable: it has no state of its own.
final class SeedService: DaemonFeature {
    let context: DaemonContext
    let stored: StoredEntries

    init(_ context: DaemonContext, stored: StoredEntries) {
        self.context = context
        self.stored = stored
    }

    var parts: DaemonParts { context.parts }

    var routes: [AdminRoute] { seedRoutes }

    var gauges: [Gauge] {
        let (core, plan) = (parts.core, context.plan)
        return [
            Gauge("drydock_seed_files", "Responses in seed folders.") { plan.seeds.reduce(0) { $0 + $1.count } },
            Gauge("drydock_seed_answers_total", "Answers that came from seed folders.", isCounter: true) {
                core.seedAnswerCount
            },
        ]
    }

    /// Logs which folders a plan has opened. Then, in a task of its own, copies the folders that are to be imported
    /// into the store, and writes the files of `store_as` that are missing.
    func use(_ plan: RoutePlan) {
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
}
