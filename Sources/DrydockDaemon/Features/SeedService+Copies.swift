// Seeds by command: writes stored responses into a folder, and copies a folder into the store.

import AdminAPI
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

extension SeedService: SeedActions {
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
        parts.logger.info("seeds exported", metadata: ["path": "\(path)", "written": "\(done.written)"])
        return AdminSeedExport(done)
    }

    private static let ending = Problem(
        status: 503,
        title: "Ending",
        detail: "the daemon is ending, and takes no orders any more"
    )

    // MARK: - Import

    func importSeeds(_ order: SeedImportOrder) async throws(Problem) -> AdminSeedImport {
        let (files, logger, path) = (parts.files, parts.logger, order.path)
        let opened = try? await files.run {
            Result { () throws(SeedError) in
                var layout = SeedLayout.url
                if let given = order.layout { layout = given } else { layout = try SeedFolder.layout(of: path) }
                return try SeedFolder(path: path, layout: layout, mode: .import, pool: files) {
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

    /// Stores each response of a folder of which none is stored yet.
    /// - Parameter isOwn: only routes whose own seed folder this is get its responses.
    func importAll(_ folder: SeedFolder, parents: [String] = [], isOwn: Bool) async -> AdminSeedImport {
        let (context, plan) = (context, context.plan)
        let copies = await SeedCopies(
            of: folder,
            into: parts.core,
            parents: parents + plan.knownFolders,
            isEnding: { context.isStopping },
            place: { urls in
                let places = urls.flatMap { plan.places(of: $0) }
                return places.first { !isOwn || $0.seed == folder }?.place
            }
        )
        let result = AdminSeedImport(copies)
        parts.logger.info(
            "seeds imported",
            metadata: [
                "path": "\(folder.path)", "imported": "\(result.imported)", "kept": "\(result.kept)",
                "unknown": "\(result.unknown)", "refused": "\(result.refused)", "failed": "\(result.failed)",
            ]
        )
        if let error = result.firstError { parts.logger.warning("a seed was not imported: \(error)") }
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
