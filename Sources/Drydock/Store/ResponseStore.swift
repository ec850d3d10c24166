// What a manager has stored: listed, removed, pinned, copied into files, and kept or taken as seeds.

import CacheStore
import DownloadCore
import EventLoop
public import FoundationEssentials
import HTTPCaching
public import HTTPTypes
import Logging

/// What a manager has stored, and what can be done to it. Programs get it from ``DownloadManager/store``; it is a value
/// that costs nothing, and no call of it asks an origin.
public struct ResponseStore: Sendable {
    let configuration: DownloadConfiguration
    let sessions: DownloadSessions
    let logger: Logger
    /// Opens the manager where it is not open.
    let engine: @Sendable () async throws(DownloadError) -> DownloadEngine

    // MARK: - What there is

    /// What is stored, in the order of URLs. Seeds that are used in their folder are not in it.
    /// - Parameter selection: which stored responses; all by default.
    public func responses(_ selection: StoredSelection = .all) -> StoredResponses {
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
            let page = try await engine.core.listing(on: engine.files).page(query) { $0.isMeant(by: target) }
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
            return try await engine.core.purge([rule], on: engine.files)
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
        try await change(url) { engine, url throws(PinError) in try await engine.core.pin(url, on: engine.files) }
    }

    /// Removes the pin of a URL; what is stored stays.
    /// - Returns: false where it was not pinned.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func unpin(_ url: URL) async throws(DownloadError) -> Bool {
        try await change(url) { engine, url throws(PinError) in try await engine.core.unpin(url, on: engine.files) }
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

    /// As ``copy(_:to:)``, of what is stored for a request.
    /// - Parameters:
    ///   - request: GET, and in ``DownloadConfiguration/Mode/library`` POST.
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

    private static let storedOnly = DownloadOptions(onlyStored: true)

    private func copy(_ question: DownloadRequest, to file: URL) async throws(DownloadError) -> DownloadResult {
        let session = try DownloadSession(question, try await engine(), sessions, isObserved: false)
        let head = try await session.ask(staleWanted: true)
        if let failure = head.failure { throw DownloadError(failure) }
        var result = DownloadResult(
            url: question.url,
            outcome: head.outcome,
            response: head.response,
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
        if case .left(let place, let reason) = try await writer.commit() {
            result.file = place
            throw .notInPlace(result, reason)
        }
        return result
    }
}
