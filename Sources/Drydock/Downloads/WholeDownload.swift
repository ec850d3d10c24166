// A download for a caller who waits for its result alone: asked for in one piece, and told of at its end.

import FoundationEssentials
import HTTPTypes

/// A download whose body goes into memory, and of whose progress nobody wants to know.
///
/// Many calls may wait at the same time, so that a wait takes little: each step that waits is a function of its own, and
/// what comes before and after it is not inlined.
struct WholeDownload: Sendable {
    private let manager: DownloadManager
    private let question: DownloadRequest

    init(_ manager: DownloadManager, _ question: DownloadRequest) {
        self.manager = manager
        self.question = question
    }

    /// Downloads it.
    func result() async throws(DownloadError) -> DownloadResult {
        var session: DownloadSession?
        do throws(DownloadError) {
            let begun = try await manager.begin(question)
            session = begun
            return try await result(of: begun)
        } catch {
            throw failed(error, session)
        }
    }

    private func result(of session: DownloadSession) async throws(DownloadError) -> DownloadResult {
        guard !session.question.hasContent else { return try await rest(of: session, try await session.ask(), Data()) }
        let all = try await session.askForAll(upTo: manager.configuration.maximumBody)
        return try await rest(of: session, all.head, all.data)
    }

    /// Reads what has not come with the head.
    /// - Parameter first: the bytes of the body that have come.
    @inline(never)
    private func rest(
        of session: DownloadSession,
        _ head: DownloadSession.Head,
        _ first: Data
    ) async throws(DownloadError) -> DownloadResult {
        var data = try checked(head, first)
        while let bytes = try await session.read() { try append(bytes, to: &data) }
        return try finished(session, head, data)
    }

    private func isAccepted(_ head: DownloadSession.Head) -> Bool {
        manager.configuration.acceptedStatuses.contains(head.response.status.code)
    }

    private var tooLarge: DownloadError { .tooLarge(limit: manager.configuration.maximumBody) }

    private func append(_ bytes: Data, to data: inout Data) throws(DownloadError) {
        guard data.count + bytes.count <= manager.configuration.maximumBody else { throw tooLarge }
        data.append(bytes)
    }

    /// What the rest of the body goes to.
    @inline(never)
    private func checked(_ head: DownloadSession.Head, _ first: Data) throws(DownloadError) -> Data {
        if let failure = head.failure { throw DownloadError(failure) }
        guard isAccepted(head), let expected = head.length else { return first }
        guard expected <= manager.configuration.maximumBody else { throw tooLarge }
        var data = first
        if data.isEmpty { data.reserveCapacity(Int(clamping: expected)) }
        return data
    }

    @inline(never)
    private func finished(
        _ session: DownloadSession,
        _ head: DownloadSession.Head,
        _ data: Data
    ) throws(DownloadError) -> DownloadResult {
        let isAccepted = isAccepted(head)
        let result = DownloadResult(
            url: session.question.url,
            outcome: isAccepted ? head.outcome : .downloadFailed,
            head: head.response,
            data: data,
            age: head.age,
            validity: head.validity
        )
        guard isAccepted else { throw .unacceptableStatus(session.isRetryRefused ? result.withoutRetry : result) }
        manager.note(result)
        return result
    }

    /// The error of a download, which has been told to those who observe it.
    @inline(never)
    private func failed(_ error: DownloadError, _ session: DownloadSession?) -> DownloadError {
        session?.note(error)
        if error != .cancelled || session?.isSilent != true { manager.note(error, of: question) }
        return error
    }
}
