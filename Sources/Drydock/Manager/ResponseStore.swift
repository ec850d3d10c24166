// What a manager has stored: listed, removed, pinned, copied into files, and kept or taken as seeds.

import CacheStore
import DownloadCore
import EventLoop
public import FoundationEssentials
import HTTPCaching
public import HTTPTypes
import Logging
public import Policies

/// What a manager has stored, and what can be done to it. Programs get it from ``DownloadManager/store``; it is a value
/// that costs nothing, and no call of it asks an origin.
public struct ResponseStore: Sendable {
    let configuration: DownloadConfiguration
    let sessions: DownloadSessions
    let logger: Logger
    /// Opens the manager where it is not open.
    let engine: @Sendable () async throws(DownloadError) -> DownloadEngine

    // MARK: - What there is

    /// What is stored, in the order of URLs. Seeds that are used in their folder are not in it. Each iteration looks
    /// anew, page by page: what is stored or goes meanwhile may be in it or not. It fails with
    /// `DownloadError.invalidRequest` for a selection that names no URL, `.unavailable`, `.closed`, and
    /// ``DownloadError/cancelled`` when the task is cancelled.
    /// - Parameter selection: which stored responses; all by default.
    public func responses(
        _ selection: StoredSelection = .all
    ) -> some AsyncSequence<StoredResponse, DownloadError> & Sendable {
        StoredResponses { after throws(DownloadError) in try await page(selection, after: after) }
    }

    private func page(
        _ selection: StoredSelection,
        after: String?
    ) async throws(DownloadError) -> (responses: [StoredResponse], next: String?) {
        let engine = try await engine()
        let now = engine.core.clock.now()
        let target = try selection.rule(configuration, isSoft: false, now: now).target
        var query = ListQuery(target)
        query.after = after
        do {
            let page = try await engine.core.store.listing(on: engine.files).page(query) { $0.isMeant(by: target) }
            return (page.responses.compactMap { StoredResponse($0, configuration, now: now) }, page.next)
        } catch is CancellationError {
            throw .closed
        } catch {
            throw .unavailable("what is stored cannot be listed: \(error)")
        }
    }

    // MARK: - Removing

    /// Removes stored responses, in memory and on disk; when it returns, not even a crash brings one of them back. A
    /// download under way that a selection means is not stored, and is not joined by those that begin after this. Seeds
    /// stay.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func remove(_ selection: StoredSelection) async throws(DownloadError) -> Int {
        try await purge(selection, isSoft: false)
    }

    /// Ends the validity of stored responses: the next download of each checks it. Nothing is removed.
    /// - Returns: how many stored responses there are.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func expire(_ selection: StoredSelection) async throws(DownloadError) -> Int {
        try await purge(selection, isSoft: true)
    }

    private func purge(_ selection: StoredSelection, isSoft: Bool) async throws(DownloadError) -> Int {
        let engine = try await engine()
        let rule = try selection.rule(configuration, isSoft: isSoft, now: engine.core.clock.now())
        do throws(PurgeError) {
            return try await engine.core.housekeeping.purge([rule], on: engine.files)
        } catch {
            switch error {
            case .ended: throw .closed
            case .notWritten(let error):
                throw .unavailable(
                    "it is in force until the manager closes, but could not be written: \(error); make room on the disk, "
                        + "or its folder writable, and do it again"
                )
            }
        }
    }

    // MARK: - Pins

    /// Pins a URL: what is stored of it, now or later, makes no room for others, and does not go for its age. A pin is
    /// kept in the folder of ``DownloadConfiguration/disk``; without one it ends with the manager. 1000 URLs of at most
    /// 8192 bytes can be pinned.
    /// - Returns: false where it was pinned already.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func pin(_ url: URL) async throws(DownloadError) -> Bool {
        try await change(url) { engine, url throws(PinError) in
            try await engine.core.housekeeping.pin(url, on: engine.files)
        }
    }

    /// Removes the pin of a URL; what is stored stays.
    /// - Returns: false where it was not pinned.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func unpin(_ url: URL) async throws(DownloadError) -> Bool {
        try await change(url) { engine, url throws(PinError) in
            try await engine.core.housekeeping.unpin(url, on: engine.files)
        }
    }

    /// The pinned URLs, in their order, whether anything is stored of them or not.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    public func pins() async throws(DownloadError) -> [URL] {
        try await engine().core.invalidations.pins.all.compactMap { URL(string: $0) }
    }

    private func change(
        _ url: URL,
        _ change: (DownloadEngine, String) async throws(PinError) -> Bool
    ) async throws(DownloadError) -> Bool {
        let question = try DownloadRequest(url, configuration, DownloadOptions())
        let engine = try await engine()
        do throws(PinError) {
            return try await change(engine, question.key.description)
        } catch {
            switch error {
            case .tooMany, .tooLong: throw .invalidRequest("'\(url)' is not pinned: \(error)")
            case .ended: throw .closed
            case .notWritten(let error):
                throw .unavailable(
                    "it is in force until the manager closes, but could not be written: \(error); make room on the disk, "
                        + "or its folder writable, and do it again"
                )
            }
        }
    }

    // MARK: - Files

    /// Copies the stored body of a URL into a file, whether it is still valid or not, or that of a seed. The folders on
    /// the way are made; the file appears, or takes the place of the one that was there, when it is whole.
    /// - Parameters:
    ///   - url: what was downloaded.
    ///   - file: a file URL.
    /// - Returns: the stored response; ``DownloadResult/data`` is empty.
    /// - Throws: `DownloadError.notStored` where nothing may be used, and as ``DownloadManager/download(_:to:options:)``.
    @discardableResult
    public func copy(_ url: URL, to file: URL) async throws(DownloadError) -> DownloadResult {
        try await copy(try DownloadRequest(url, configuration, Self.storedOnly), to: file)
    }

    /// Copies what is stored for a request into a file, as ``copy(_:to:)`` does for a URL.
    /// - Parameters:
    ///   - request: GET, and in ``DownloadConfiguration/Mode/fixedLifetime`` POST.
    ///   - body: of a POST; none by default.
    ///   - file: a file URL.
    @discardableResult
    public func copy(
        _ request: HTTPRequest,
        body: Data? = nil,
        to file: URL
    ) async throws(DownloadError) -> DownloadResult {
        guard request.method != .head else {
            throw .invalidRequest("'\(request.text)' has no body with HEAD: ask with GET")
        }
        let content = body.map { RequestBody.data($0) }
        return try await copy(try DownloadRequest(request, body: content, configuration, Self.storedOnly), to: file)
    }

    private static let storedOnly = DownloadOptions(cachePolicy: .storedOnly)

    private func copy(_ question: DownloadRequest, to file: URL) async throws(DownloadError) -> DownloadResult {
        let session = try DownloadSession(question, try await engine(), sessions, isObserved: false)
        let head = try await session.ask(staleWanted: true)
        if let failure = head.failure { throw DownloadError(failure) }
        var result = DownloadResult(
            url: question.url,
            outcome: head.outcome,
            head: head.response,
            file: file,
            age: head.age,
            validity: head.validity
        )
        guard configuration.acceptedStatuses.contains(head.response.status.code) else {
            result.file = nil
            throw .unacceptableStatus(result)
        }
        let writer = try await DownloadFile.open(file, session.engine.files)
        while let bytes = try await session.read() { try await writer.write(bytes) }
        if case .left(let left, let reason) = try await writer.commit() {
            result.file = left
            throw .notInPlace(result, reason)
        }
        return result
    }
}

// MARK: - Seeds

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
    /// Writes what is stored into a folder of seeds, in ``SeedLayout/url``; `drydock seed
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
    ///   - parents: URLs of folders, such as `https://example.com/images`. Names of ``SeedLayout/hashed`` are those of files
    ///     below one of them; in ``SeedLayout/url``, a file without a head is taken for the one below them, and for that of an
    ///     `https` URL where it is below none. None by default.
    /// - Throws: `DownloadError.invalidRequest`, `.file` where the folder cannot be read, `.unavailable`, `.closed`;
    ///   `.cancelled` when the task is cancelled, and what has been stored until then stays.
    @concurrent
    public func importSeeds(
        from folder: URL,
        layout: SeedLayout? = nil,
        below parents: [URL] = []
    ) async throws(DownloadError) -> SeedImportReport {
        let path = try folder.seedPath
        let (configuration, sessions, logger) = (configuration, sessions, logger)
        let parents = parents.map(\.absoluteString)
        return try await use { engine throws(DownloadError) in
            let files = engine.files
            let seeds = try await opened(on: files) { () throws(SeedError) in
                var used = SeedLayout.url
                if let layout { used = layout } else { used = try SeedFolder.layout(of: path) }
                return try SeedFolder(path: path, layout: used, mode: .imported, pool: files) {
                    logger.warning("\($0)")
                }
            }
            let copies = await SeedCopies(
                of: seeds,
                into: engine.core,
                parents: parents,
                isEnding: { Task.isCancelled || sessions.isClosed },
                destination: { urls in
                    let url = urls.first { url in parents.contains { url.hasPrefix($0) } } ?? urls.first
                    return url.flatMap { Self.seedDestination($0, configuration, engine) }
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
    private static func seedDestination(
        _ text: String,
        _ configuration: DownloadConfiguration,
        _ engine: DownloadEngine
    ) -> SeedDestination? {
        guard let url = URL(string: text),
            let question = try? DownloadRequest(url, configuration, DownloadOptions())
        else { return nil }
        let ask = engine.identified(question).ask(configuration, seed: nil)
        return SeedDestination(key: ask.key, policy: ask.policy, expectation: nil)
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
