// One call from its veto to its end: attempts, retries, parking, and the word about each of them.

import Drydock
import HTTPTypes
import Logging
import ServiceCore

/// One call.
///
/// Many calls may wait at the same time, so that a wait takes little: the run and its request are references, and what
/// comes before and after a wait is in functions that are not inlined. Sendable: nothing in it changes.
final class ServiceRun<R: Resource>: Sendable {
    private let resource: R
    private let info: CallInfo
    private let configuration: ServiceManager.Configuration
    private let loader: ResourceLoader
    private let logger: Logger
    private let table: CallTable
    private let control: CallControl
    private let mailbox: CallMailbox<R.Model>

    init(
        resource: R,
        info: CallInfo,
        configuration: ServiceManager.Configuration,
        loader: ResourceLoader,
        logger: Logger,
        table: CallTable,
        control: CallControl,
        mailbox: CallMailbox<R.Model>
    ) {
        self.resource = resource
        self.info = info
        self.configuration = configuration
        self.loader = loader
        self.logger = logger
        self.table = table
        self.control = control
        self.mailbox = mailbox
    }

    private var hooks: ServiceHooks { configuration.hooks }

    /// Runs it to its end.
    func result() async -> Result<Loaded<R.Model>, ServiceError> {
        var request: PreparedRequest?
        do throws(ServiceError) {
            if hooks.shouldStart != nil { try await askForLeave() }
            let prepared = try prepare()
            request = prepared
            return succeeded(try await value(of: prepared))
        } catch {
            return failed(error, request)
        }
    }

    @inline(never)
    private func succeeded(_ value: Loaded<R.Model>) -> Result<Loaded<R.Model>, ServiceError> {
        hooks.onSuccess?(info, value.head)
        mailbox.add(.succeeded(value))
        end()
        return .success(value)
    }

    @inline(never)
    private func failed(_ error: ServiceError, _ request: PreparedRequest?) -> Result<Loaded<R.Model>, ServiceError> {
        if isLogged { log(entry(request?.request.head, error.result, error, hidesBody: false)) }
        hooks.onFailure?(info, error)
        mailbox.add(.failed(error))
        end()
        return .failure(error)
    }

    private func end() {
        let isIdle = table.remove(info.id)
        hooks.onEnd?(info)
        mailbox.add(.ended)
        if isIdle { hooks.onIdle?() }
    }

    /// Lets the program say whether the call may begin.
    /// - Throws: `ServiceError.vetoed`, and `.cancelled`, also where the program never answers.
    @inline(never)
    private func askForLeave() async throws(ServiceError) {
        guard let shouldStart = hooks.shouldStart else { return }
        let question = Task { [info] in await shouldStart(info) }
        let answer = await withTaskCancellationHandler {
            await question.valueUnlessCancelled()
        } onCancel: {
            question.cancel()
        }
        guard let answer, !Task.isCancelled else { throw .cancelled }
        if let reason = answer { throw .vetoed(reason) }
    }

    /// The rules for retries, where the transport is not to have its own.
    private var retry: RetryPolicy? {
        if let own = resource.options.retry { return own }
        return configuration.retry.count > 0 ? configuration.retry : nil
    }

    /// The request as the rules of the service have it.
    @inline(never)
    private func prepare() throws(ServiceError) -> PreparedRequest {
        var request = try loader.request(for: resource)
        var options = request.options
        if retry != nil { options.retry = .never }
        request.options = options
        let (hooks, info, mailbox) = (hooks, info, mailbox)
        request.onUpload = { progress in
            hooks.onSent?(info, progress)
            mailbox.add(.sent(progress))
        }
        if let share = retry?.budget { table.earn(share) }
        return PreparedRequest(request)
    }

    // MARK: - Attempts

    /// The model: of the first attempt, of a retry, or of an attempt after the call was parked.
    private func value(of request: PreparedRequest) async throws(ServiceError) -> Loaded<R.Model> {
        var attempt = 1
        while true {
            do throws(ServiceError) {
                try begin(attempt, request)
                if attempt == 1, resource.options.yieldsStaleFirst { await tellStale(request) }
                return try loaded(request, try await loader.response(to: request.request, onBody: received))
            } catch {
                attempt = try await nextAttempt(after: error, attempt, request)
            }
        }
    }

    /// - Throws: `ServiceError.cancelled`.
    @inline(never)
    private func begin(_ attempt: Int, _ request: PreparedRequest) throws(ServiceError) {
        if Task.isCancelled { throw .cancelled }
        hooks.onStart?(info, attempt)
        mailbox.add(.started(attempt: attempt))
        if isLogged { log(ServiceLogEntry(info, request: request.request, limit: configuration.loggedBytes)) }
    }

    @inline(never)
    private func tellStale(_ request: PreparedRequest) async {
        if let stale = await loader.staleValue(of: resource, request.request) { mailbox.add(.stale(stale)) }
    }

    @inline(never)
    private func loaded(
        _ request: PreparedRequest,
        _ response: WholeResponse
    ) throws(ServiceError) -> Loaded<R.Model> {
        let value = try loader.loaded(resource, request.request.head, response)
        if isLogged { log(entry(request.request.head, response.result, nil, hidesBody: !resource.logsBodies)) }
        return value
    }

    /// Waits until the next attempt is due, or until a call that is parked is to be repeated.
    /// - Returns: its number: a repeated call begins with 1 again.
    /// - Throws: the error where it is final, and `ServiceError.cancelled`.
    @inline(never)
    private func nextAttempt(
        after error: ServiceError,
        _ attempt: Int,
        _ request: PreparedRequest
    ) async throws(ServiceError) -> Int {
        do throws(ServiceError) {
            let wait = try self.wait(after: error, attempt, request.request)
            hooks.onRetry?(info, wait, error)
            mailbox.add(.retrying(after: wait, error))
            try await sleep(wait)
            return attempt + 1
        } catch {
            try await park(error, request.request)
            return 1
        }
    }

    /// Tells how much of the body has come.
    private var received: @Sendable (DownloadProgress) -> Void {
        let (hooks, info, mailbox) = (hooks, info, mailbox)
        return { progress in
            hooks.onReceived?(info, progress)
            mailbox.add(.received(progress))
        }
    }

    /// How long to wait before another attempt.
    /// - Throws: the error where it is final.
    private func wait(
        after error: ServiceError,
        _ attempt: Int,
        _ request: TransportRequest
    ) throws(ServiceError) -> Duration {
        guard let retry, request.body?.isRepeatable != false,
            let wait = retry.delay(after: error, attempt: attempt, method: request.head.method, path: info.location)
        else { throw error }
        guard retry.budget != nil, let refusal = table.refusesRetry() else { return wait }
        logger.log(
            level: refusal == .first ? .warning : .info,
            "call not repeated after a failure: \(RetryBudget.refusal)",
            metadata: [
                "call": "\(info.name)", "location": "\(info.location)", "attempts": "\(attempt)", "error": "\(error)",
            ]
        )
        throw error.withoutRetry
    }

    private func sleep(_ duration: Duration) async throws(ServiceError) {
        do {
            try await configuration.clock.sleep(for: duration)
        } catch {
            throw .cancelled
        }
    }

    /// Waits until the call is to be made again.
    /// - Throws: the error where the call is not kept, and `ServiceError.cancelled`.
    private func park(_ error: ServiceError, _ request: TransportRequest) async throws(ServiceError) {
        let methods = (resource.options.retry ?? configuration.retry).methods
        guard resource.parksWithoutResponse, error.cameWithoutResponse, request.body?.isRepeatable != false,
            error.allowsRepetition(of: request.head.method, methods),
            table.takeParkingSlot(configuration.maximumParked)
        else { throw error }
        defer { table.leaveParkingSlot() }
        let isRepeated = await control.park {
            hooks.onPark?(info, error)
            mailbox.add(.parked(error))
            // The manager has gone meanwhile, and did not see that this is parked.
            if table.isParkingClosed { control.cancel() }
        }
        guard isRepeated else { throw .cancelled }
    }

    // MARK: - Logging

    private var isLogged: Bool { hooks.onLog != nil || logger.logLevel <= .debug }

    private func log(_ entry: ServiceLogEntry) {
        logger.debug("\(entry)")
        hooks.onLog?(entry)
    }

    private func entry(
        _ request: HTTPRequest?,
        _ result: DownloadResult?,
        _ error: ServiceError?,
        hidesBody: Bool
    ) -> ServiceLogEntry {
        ServiceLogEntry(info, request, result, error, hidesBody: hidesBody, limit: configuration.loggedBytes)
    }
}

/// The request of a call, with all that its manager adds. Sendable: nothing in it changes.
private final class PreparedRequest: Sendable {
    let request: TransportRequest

    init(_ request: TransportRequest) { self.request = request }
}

extension ServiceError {
    /// Nothing came from the origin, and another time something may.
    fileprivate var cameWithoutResponse: Bool {
        guard case .transport(let error) = self else { return false }
        switch error {
        case .origin(let failure):
            return switch failure.kind {
            case .unknownHost, .unreachable, .timeout, .leftAlone, .cutShort: true
            case .untrusted, .protocolViolation, .local: false
            }
        // The manager is offline.
        case .notStored, .busy: return true
        default: return false
        }
    }
}
