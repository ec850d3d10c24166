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
        var result = AdminSeedExport()
        let services = only.map { [$0] } ?? [""] + context.plan.services.map(\.plan.name)
        await parts.core.forEachStored(services: services, only: only) { response in
            if let response { await export(response, to: writer, &result) } else { result.skipped += 1 }
        }
        result.written = writer.tally.written
        result.bytes = Int(clamping: writer.tally.bytes)
        parts.logger.info("seeds exported", metadata: ["path": "\(path)", "written": "\(result.written)"])
        return result
    }

    /// Exports one response. A response to a request with Authorization is left out: a seed folder would show everybody
    /// what an origin told one user.
    private func export(_ response: StoredResponse, to writer: SeedWriter, _ result: inout AdminSeedExport) async {
        guard response.head.requestMethod == .get, !response.head.hadAuthorization,
            parts.core.invalidations.verdict(response) != .gone
        else {
            result.skipped += 1
            return
        }
        do {
            try await writer.write(response)
        } catch {
            result.failed += 1
            result.firstError = result.firstError ?? "\(response.key): \(error)"
        }
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
        // While a tier is finding out what it holds, a stored response may look like an absent one, and would be
        // replaced.
        while parts.core.statistics.isRebuilding, !context.isStopping {
            try? await Task.sleep(for: .milliseconds(100))
        }
        let plan = context.plan
        let (entries, unknown) = await folder.entries(parents: parents + plan.knownFolders)
        var result = AdminSeedImport()
        result.unknown = unknown
        for entry in entries where !context.isStopping {
            let places = entry.urls.flatMap { plan.places(of: $0) }.filter { !isOwn || $0.seed == folder }
            guard let place = places.first else {
                result.unknown += 1
                continue
            }
            guard let copy = await folder.take(entry.name, as: place.key, expecting: place.expectation) else {
                result.failed += 1
                result.firstError = result.firstError ?? "\(entry.name) cannot be used; the log says why"
                continue
            }
            switch await parts.core.adopt(copy, as: place.key, place.policy) {
            case .imported: result.imported += 1
            case .kept: result.kept += 1
            case .refused: result.refused += 1
            case .failed(let reason):
                result.failed += 1
                result.firstError = result.firstError ?? "\(entry.name): \(reason)"
            }
        }
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
