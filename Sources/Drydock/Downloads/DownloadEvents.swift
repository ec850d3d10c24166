// A download as a sequence of events: its head, its progress, and its result.

import FoundationEssentials
import HTTPTypes

/// The events of ``DownloadManager/events(for:to:options:)``. Each iteration is a download of its own, which begins with
/// the first event that is asked for.
struct DownloadEvents: AsyncSequence, Sendable {
    typealias Element = DownloadEvent
    typealias Failure = DownloadError

    private let manager: DownloadManager
    private let question: Result<DownloadRequest, DownloadError>
    private let file: URL?

    init(_ manager: DownloadManager, _ question: Result<DownloadRequest, DownloadError>, to file: URL?) {
        self.manager = manager
        self.question = question
        self.file = file
    }

    /// The request changes nothing at its origin.
    var mayBeSentAgain: Bool { asked?.isPassed == false }

    /// What is asked for; nil where it cannot be.
    var asked: DownloadRequest? { try? question.get() }

    /// The downloads of the manager.
    var sessions: DownloadSessions { manager.sessions }

    /// Begins a download of its own.
    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(manager: manager, question: question, file: file)
    }

    /// Begins a download of its own, for whoever suspends and resumes it.
    /// - Parameter onBegin: has the session before anything is asked for.
    func makeIterator(onBegin: @escaping @Sendable (DownloadSession) -> Void) -> AsyncIterator {
        var iterator = makeAsyncIterator()
        iterator.onBegin = onBegin
        return iterator
    }

    /// One download under way.
    struct AsyncIterator: AsyncIteratorProtocol {
        private enum Step {
            case first
            case asking
            case body(DownloadSession.Head)
            case over
        }

        private let manager: DownloadManager
        private let question: Result<DownloadRequest, DownloadError>
        private let file: URL?
        private var step = Step.first
        private var session: DownloadSession?
        private var writer: DownloadFile?
        private var data = Data()
        /// The request, while it sends a content.
        private var uploading: MeteredAsking?
        fileprivate var onBegin: (@Sendable (DownloadSession) -> Void)?

        fileprivate init(
            manager: DownloadManager,
            question: Result<DownloadRequest, DownloadError>,
            file: URL?
        ) {
            self.manager = manager
            self.question = question
            self.file = file
        }

        /// Waits for the next event.
        /// - Returns: nil after the result, and where ``DownloadManager/cancelAll(silently:)``
        ///   ended the download silently.
        /// - Throws: `DownloadError`; nothing comes after it.
        mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            do throws(DownloadError) {
                return try await advance()
            } catch {
                let isSilent = session?.isSilent ?? false
                session?.note(error)
                end()
                if error == .cancelled, isSilent { return nil }
                manager.note(error, of: try? question.get())
                throw error
            }
        }

        private mutating func advance(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            // Each step is a function of its own, which is not inlined: a call that waits in one has no frames of the
            // others.
            if case .first = step {
                try await begin()
                if let session, session.question.wantsStaleFirst { return try await lookAtStored(session) }
            }
            guard let session else { return nil }
            switch step {
            case .first, .over: return nil
            case .asking where session.question.hasContent: return try await send(session)
            case .asking: return try await ask(session)
            case .body: return try await read(session)
            }
        }

        @inline(never)
        private mutating func begin(isolation actor: isolated (any Actor)? = #isolation) async throws(DownloadError) {
            let session = try await manager.begin(try question.get())
            self.session = session
            onBegin?(session)
            step = .asking
        }

        @inline(never)
        private mutating func ask(
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            try await began(try await session.ask(), session)
        }

        @inline(never)
        private mutating func send(
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            let uploading = uploading ?? MeteredAsking(session)
            self.uploading = uploading
            switch await uploading.next() {
            case .uploaded(let progress): return .uploaded(progress)
            case .asked(let head):
                self.uploading = nil
                return try await began(try head.get(), session)
            }
        }

        @inline(never)
        private mutating func read(
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            guard case .body(let head) = step else { return nil }
            guard let bytes = try await session.read() else { return try await finish(head, session) }
            if let writer {
                try await writer.write(bytes)
            } else {
                try append(bytes)
            }
            return .progress(DownloadProgress(completed: session.received, total: head.expected))
        }

        /// The stored response, where there is one: as the result when it is valid, else before the check.
        @inline(never)
        private mutating func lookAtStored(
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent? {
            let head = try await session.ask(staleWanted: true)
            guard head.failure == nil, manager.configuration.acceptedStatuses.contains(head.response.status.code) else {
                return try await advance()
            }
            if head.outcome == .stillValid || head.outcome == .seeded { return try await began(head, session) }
            if let file { writer = try await DownloadFile.open(file, session.engine.files) }
            do throws(DownloadError) {
                while let bytes = try await session.read() {
                    if let writer { try await writer.write(bytes) } else { try append(bytes) }
                }
            } catch .origin {
                // What is stored cannot be read: the origin has it still.
                (data, writer) = (Data(), nil)
                return try await advance()
            }
            let result = try await placed(result(head, .beingChecked, session))
            (data, writer) = (Data(), nil)
            return .stale(result)
        }

        @inline(never)
        private mutating func began(
            _ head: DownloadSession.Head,
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent {
            if let failure = head.failure { throw DownloadError(failure) }
            guard manager.configuration.acceptedStatuses.contains(head.response.status.code) else {
                try await readAll(session)
                let result = result(head, .downloadFailed, session)
                throw .unacceptableStatus(session.isRetryRefused ? result.withoutRetry : result)
            }
            if let file {
                writer = try await DownloadFile.open(file, session.engine.files)
            } else if let expected = head.length {
                guard expected <= manager.configuration.maximumBody else { throw tooLarge }
                data.reserveCapacity(Int(clamping: expected))
            }
            step = .body(head)
            return .began(head.response, expected: head.expected)
        }

        @inline(never)
        private mutating func finish(
            _ head: DownloadSession.Head,
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadEvent {
            let result = try await placed(result(head, head.outcome, session))
            end()
            manager.note(result)
            return .finished(result)
        }

        /// A result whose file, where one is wanted, is in its place.
        /// - Throws: `DownloadError.file`; `.notInPlace` with the result where its file has another name.
        private func placed(
            _ result: DownloadResult,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> DownloadResult {
            guard case .left(let left, let reason) = try await writer?.commit() else { return result }
            var result = result
            result.file = left
            throw .notInPlace(result, reason)
        }

        private mutating func readAll(
            _ session: DownloadSession,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) {
            while let bytes = try await session.read() { try append(bytes) }
        }

        private mutating func append(_ bytes: Data) throws(DownloadError) {
            guard data.count + bytes.count <= manager.configuration.maximumBody else { throw tooLarge }
            data.append(bytes)
        }

        private var tooLarge: DownloadError { .tooLarge(limit: manager.configuration.maximumBody) }

        private func result(
            _ head: DownloadSession.Head,
            _ outcome: DownloadOutcome,
            _ session: DownloadSession
        ) -> DownloadResult {
            DownloadResult(
                url: session.question.url,
                outcome: outcome,
                head: head.response,
                data: data,
                file: writer == nil ? nil : file,
                age: head.age,
                validity: head.validity
            )
        }

        private mutating func end() {
            step = .over
            session = nil
            uploading = nil
            writer = nil
            data = Data()
        }
    }
}
