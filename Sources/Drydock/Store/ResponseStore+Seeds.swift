// Seeds of a manager: what is stored as a folder of seeds, a folder of seeds as what is stored.

import CacheStore
import DownloadCore
import EventLoop
public import FoundationEssentials
import Logging
import Policies

/// What ``ResponseStore/exportSeeds(to:)`` has written.
public struct SeedExportReport: Sendable, Hashable {
    /// Responses that are in the folder now.
    public var written = 0
    /// Bytes of their bodies.
    public var bytes: Int64 = 0
    /// Responses that no seed can be, or that went meanwhile.
    public var skipped = 0
    /// Responses that could not be written.
    public var failed = 0
    /// Why the first one could not.
    public var firstError: String?
}

/// What ``ResponseStore/importSeeds(from:layout:below:)`` has stored.
public struct SeedImportReport: Sendable, Hashable {
    /// Seeds that are stored now.
    public var imported = 0
    /// Seeds of which something at least as new was stored already.
    public var kept = 0
    /// Files whose URL cannot be told from their name.
    public var unknown = 0
    /// Seeds that the rules do not allow to be stored.
    public var refused = 0
    /// Seeds that could not be read or stored.
    public var failed = 0
    /// Why the first one could not.
    public var firstError: String?
}

extension ResponseStore {
    /// Writes what is stored into a folder of seeds, in ``DownloadConfiguration/Seeds/Layout/url``; `drydock seed
    /// import` and every manager can read it. The folder is made where there is none. Seeds of the same URL are
    /// replaced, other files stay, and each file is whole at any moment. Answers to requests with Authorization, and
    /// what is found by more than its URL, such as the answer to a POST, are left out; so are the lines of Set-Cookie.
    /// - Parameter folder: a file URL.
    /// - Throws: `DownloadError.invalidRequest`, `.file` where the folder cannot be had, `.unavailable`, `.closed`;
    ///   `.cancelled` when the task is cancelled, and what has been written until then stays.
    @concurrent
    public func exportSeeds(to folder: URL) async throws(DownloadError) -> SeedExportReport {
        let path = try folder.seedPath
        return try await use { engine throws(DownloadError) in
            let files = engine.files
            let writer = try await opened(on: files) { () throws(SeedError) in try SeedWriter(path, pool: files) }
            let done = await SeedExport(
                of: engine.core,
                services: [""],
                only: "",
                to: writer,
                isEnding: { [sessions] in Task.isCancelled || sessions.isClosed }
            )
            if sessions.isClosed { throw .closed }
            if Task.isCancelled { throw .cancelled }
            return SeedExportReport(done)
        }
    }

    /// Stores the seeds of a folder of which nothing as new is stored. They are no longer valid, so that their first use
    /// checks them; where the layout says until when they are, they are until then.
    /// - Parameters:
    ///   - folder: a file URL.
    ///   - layout: how the files are named; nil, the default, tells it by the names.
    ///   - parents: URLs of folders, such as `https://example.com/images`. Names of layout `docker` are those of files
    ///     below one of them; in layout `url`, a file without a head is taken for the one below them, and for that of an
    ///     `https` URL where it is below none. None by default.
    /// - Throws: `DownloadError.invalidRequest`, `.file` where the folder cannot be read, `.unavailable`, `.closed`;
    ///   `.cancelled` when the task is cancelled, and what has been stored until then stays.
    @concurrent
    public func importSeeds(
        from folder: URL,
        layout: DownloadConfiguration.Seeds.Layout? = nil,
        below parents: [URL] = []
    ) async throws(DownloadError) -> SeedImportReport {
        let path = try folder.seedPath
        let (configuration, sessions, logger) = (configuration, sessions, logger)
        let parents = parents.map(\.absoluteString)
        return try await use { engine throws(DownloadError) in
            let files = engine.files
            let seeds = try await opened(on: files) { () throws(SeedError) in
                var used = SeedLayout.url
                if let layout { used = layout.files } else { used = try SeedFolder.layout(of: path) }
                return try SeedFolder(path: path, layout: used, mode: .import, pool: files) { logger.warning("\($0)") }
            }
            let copies = await SeedCopies(
                of: seeds,
                into: engine.core,
                parents: parents,
                isEnding: { Task.isCancelled || sessions.isClosed },
                place: { urls in
                    let url = urls.first { url in parents.contains { url.hasPrefix($0) } } ?? urls.first
                    return url.flatMap { Self.seedPlace($0, configuration, engine) }
                }
            )
            if sessions.isClosed { throw .closed }
            if Task.isCancelled { throw .cancelled }
            return SeedImportReport(copies)
        }
    }

    /// Looks again at the folder of ``DownloadConfiguration/seeds``: new files are seeds from now on. Files that change or
    /// go are noticed without it.
    /// - Returns: how many seeds there are; 0 without such a folder.
    /// - Throws: `DownloadError.unavailable` where the folder cannot be read, and what was there stays in use; `.closed`.
    @discardableResult
    public func reloadSeeds() async throws(DownloadError) -> Int {
        let engine = try await engine()
        guard let seeds = configuration.seeds else { return 0 }
        let (files, logger) = (engine.files, logger)
        do {
            let folder = try await files.run { try seeds.open(files) { logger.warning("\($0)") } }
            engine.use(folder)
            return folder.count
        } catch is CancellationError {
            throw .closed
        } catch {
            throw .unavailable("the seeds cannot be looked at again: \(error)")
        }
    }

    /// Holds up the end of the manager.
    private func use<Value>(
        _ body: (DownloadEngine) async throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        let engine = try await engine()
        try sessions.begin()
        defer { sessions.end() }
        return try await body(engine)
    }

    /// Where the seed of a URL is stored; nil for a URL that cannot be asked for.
    private static func seedPlace(
        _ text: String,
        _ configuration: DownloadConfiguration,
        _ engine: DownloadEngine
    ) -> SeedPlace? {
        guard let url = URL(string: text),
            let question = try? DownloadRequest(url, configuration, DownloadOptions())
        else { return nil }
        let ask = engine.identified(question).ask(configuration, seed: nil)
        return SeedPlace(key: ask.key, policy: ask.policy, expectation: nil)
    }

    private func opened<Value: Sendable>(
        on files: IOPool,
        _ open: @escaping @Sendable () throws(SeedError) -> Value
    ) async throws(DownloadError) -> Value {
        do {
            return try await files.run { try open() }
        } catch let error as SeedError {
            throw .file("\(error)")
        } catch {
            throw .closed
        }
    }
}

extension URL {
    /// - Throws: `DownloadError.invalidRequest` where it is no file URL.
    fileprivate var seedPath: String {
        get throws(DownloadError) {
            guard isFileURL else { throw .invalidRequest("'\(self)' is not a folder: name it by a file URL") }
            return path(percentEncoded: false)
        }
    }
}

extension SeedExportReport {
    fileprivate init(_ done: SeedExport) {
        (written, bytes, skipped) = (done.written, done.bytes, done.skipped)
        (failed, firstError) = (done.failed, done.firstError)
    }
}

extension SeedImportReport {
    fileprivate init(_ copies: SeedCopies) {
        (imported, kept, unknown) = (copies.imported, copies.kept, copies.unknown)
        (refused, failed, firstError) = (copies.refused, copies.failed, copies.firstError)
    }
}
