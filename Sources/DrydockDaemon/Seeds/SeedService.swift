// The seed folders of the daemon: their gauges and log lines, their import by a configuration, and the commands that
// import and export.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Logging
import Policies
import ProxyServer
import ServiceCore
import Synchronization

/// Imports and exports seed folders.
///
/// Sendable: it has no mutable state of its own.
final class SeedService: DaemonFeature {
    let context: DaemonContext
    let stored: StoredEntries

    init(_ context: DaemonContext, stored: StoredEntries) {
        self.context = context
        self.stored = stored
    }

    var parts: DaemonParts { context.parts }

    var gauges: [Gauge] {
        let (core, plan) = (parts.core, context.plan)
        return [
            Gauge("drydock_seed_files", "Responses in seed folders.") { plan.seeds.reduce(0) { $0 + $1.count } },
            Gauge("drydock_seed_answers_total", "Answers that came from seed folders.", isCounter: true) {
                core.seeds.answerCount
            },
        ]
    }

    /// Logs the folders that a plan has opened. Then, in a task of its own, copies the folders to be imported into the
    /// store, and writes the missing files of `store_as`.
    func use(_ plan: RoutePlan) {
        for folder in plan.seeds {
            parts.log(.store).info(
                "seed folder opened",
                metadata: [
                    "path": "\(folder.path)", "mode": "\(folder.mode.rawValue)", "layout": "\(folder.layout.rawValue)",
                    "files": "\(folder.count)",
                ]
            )
        }
        let (importing, files) = (plan.seeds.filter { $0.mode == .imported }, plan.storedFiles)
        if importing.isEmpty, files.isEmpty { return }
        Task {
            for folder in importing { _ = await importAll(folder, isOwn: true) }
            // These files are of responses that were stored before the configuration asked for files.
            for file in files { await parts.core.store.keepAsFile(file.key, as: file.name) }
        }
    }
}

extension SeedService {
    // MARK: - Export

    func exportSeeds(to path: String, service: String?) async throws(Problem) -> AdminSeedExport {
        let only: String?
        if let service { only = try await stored.stored(service: service) } else { only = nil }
        let files = parts.files
        let opened = try? await files.run { Result { () throws(SeedError) in try SeedWriter(path, pool: files) } }
        guard let opened else { throw Self.ending }
        let writer: SeedWriter
        switch opened {
        case .success(let made): writer = made
        case .failure(let error): throw Problem(status: 422, title: "No seed folder", detail: "\(error)")
        }
        let services = only.map { [$0] } ?? [""] + context.plan.services.map(\.plan.name)
        let done = await SeedExport(of: parts.core, services: services, only: only, to: writer)
        parts.log(.store).info("seeds exported", metadata: ["path": "\(path)", "written": "\(done.written)"])
        return AdminSeedExport(done)
    }

    private static let ending = Problem(
        status: 503,
        title: "Ending",
        detail: "the daemon is ending, and takes no orders any more"
    )

    // MARK: - Import

    func importSeeds(_ order: SeedImportOrder) async throws(Problem) -> AdminSeedImport {
        let (files, logger, path) = (parts.files, parts.log(.store), order.path)
        let opened = try? await files.run {
            Result { () throws(SeedError) in
                var layout = SeedLayout.url
                if let given = order.layout { layout = given } else { layout = try SeedFolder.layout(of: path) }
                return try SeedFolder(path: path, layout: layout, mode: .imported, pool: files) {
                    logger.warning("\($0)")
                }
            }
        }
        guard let opened else { throw Self.ending }
        switch opened {
        case .success(let folder): return await importAll(folder, parents: order.parents, isOwn: false)
        case .failure(let error): throw Problem(status: 422, title: "No seed folder", detail: "\(error)")
        }
    }

    /// Stores each response of a folder for which none is stored yet.
    /// - Parameter isOwn: true if only routes with this seed folder get its responses.
    func importAll(_ folder: SeedFolder, parents: [String] = [], isOwn: Bool) async -> AdminSeedImport {
        let (context, plan) = (context, context.plan)
        let copies = await SeedCopies(
            of: folder,
            into: parts.core,
            parents: parents + plan.knownFolders,
            isEnding: { context.isStopping },
            destination: { urls in
                let targets = urls.flatMap { plan.seedTargets(of: $0) }
                return targets.first { !isOwn || $0.seed == folder }?.destination
            }
        )
        let result = AdminSeedImport(copies)
        parts.log(.store).info(
            "seeds imported",
            metadata: [
                "path": "\(folder.path)", "imported": "\(result.imported)", "kept": "\(result.kept)",
                "unknown": "\(result.unknown)", "refused": "\(result.refused)", "failed": "\(result.failed)",
            ]
        )
        if let error = result.firstError { parts.log(.store).warning("a seed was not imported: \(error)") }
        return result
    }
}

extension AdminSeedExport {
    fileprivate init(_ done: SeedExport) {
        self.init()
        (written, bytes, skipped) = (done.written, Int(clamping: done.bytes), done.skipped)
        (failed, firstError) = (done.failed, done.firstError)
    }
}

extension AdminSeedImport {
    fileprivate init(_ copies: SeedCopies) {
        self.init()
        (imported, kept, unknown) = (copies.imported, copies.kept, copies.unknown)
        (refused, failed, firstError) = (copies.refused, copies.failed, copies.firstError)
    }
}

/// The import that `POST /v1/seed?import=` asks for.
struct SeedImportOrder: Sendable, Equatable {
    /// The absolute path of the folder.
    var path: String
    /// The layout of the folder; nil to detect it by the names in the folder.
    var layout: SeedLayout?
    /// The URLs of the folders to which the names of a folder with the layout `docker` may belong.
    var parents: [String] = []

    init(path: String) { self.path = path }
}

extension SeedService {
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .seed) { request async throws(Problem) in
                let query = request.query
                switch (query["export"], query["import"]) {
                case (let path?, nil):
                    try request.check(["export", "service"])
                    try AdminRequest.check(folder: path)
                    return try .json(await self.exportSeeds(to: path, service: query["service"]))
                case (nil, let path?):
                    try request.check(["import", "layout", "parent"])
                    try AdminRequest.check(folder: path)
                    var order = SeedImportOrder(path: path)
                    if let layout = query["layout"] {
                        guard let known = SeedLayout(rawValue: layout) else {
                            throw Problem.badQuery("layout: there are url and docker, not '\(layout)'")
                        }
                        order.layout = known
                    }
                    order.parents = request.queryItems.filter { $0.name == "parent" }.map(\.value)
                    return try .json(await self.importSeeds(order))
                default: throw Problem.badQuery("give either export=DIR or import=DIR")
                }
            }
        ]
    }
}

// MARK: - Documents

/// The answer of `POST /v1/seed?export=DIR`.
package struct AdminSeedExport: Codable, Sendable, Equatable {
    /// The number of responses that were written to the folder.
    package var written = 0
    /// The number of bytes of the written bodies.
    package var bytes = 0
    /// The number of responses that were left out: they are for one user, or were removed meanwhile.
    package var skipped = 0
    package var failed = 0
    /// The reason why the first response failed; nil if none did.
    package var firstError: String?
}

/// The answer of `POST /v1/seed?import=DIR`.
package struct AdminSeedImport: Codable, Sendable, Equatable {
    package var imported = 0
    /// The number of files for which a response as new was stored already.
    package var kept = 0
    /// The number of files whose name gives no URL, or a URL that no route asks for.
    package var unknown = 0
    /// The number of files that the rules of their route do not allow to be stored.
    package var refused = 0
    package var failed = 0
    /// The reason why the first file failed; nil if none did.
    package var firstError: String?
}
