// One call from its veto to its end: attempts, retries, parking, and the word about each of them.

import HTTPTypes
import Logging
import ServiceCore

/// One call.
struct ServiceRun<R: Resource>: Sendable {
    let resource: R
    let policy: ServicePolicy
    let info: CallInfo
    let configuration: ServiceManager.Configuration
    let loader: ResourceLoader
    let logger: Logger
    let table: CallTable
    let control: CallControl
    let mailbox: CallMailbox<R.Model>

    private var hooks: ServiceHooks { configuration.hooks }

    /// Runs it to its end.
    func result() async -> Result<Loaded<R.Model>, ServiceError> {
        let result: Result<Loaded<R.Model>, ServiceError>
        do throws(ServiceError) {
            let value = try await value()
            hooks.onSuccess?(info, value.response)
            mailbox.add(.succeeded(value))
            result = .success(value)
        } catch {
            hooks.onFailure?(info, error)
            mailbox.add(.failed(error))
            result = .failure(error)
        }
        let isIdle = table.remove(info.id)
        hooks.onEnd?(info)
        mailbox.add(.ended)
        if isIdle { hooks.onIdle?() }
        return result
    }

    private func value() async throws(ServiceError) -> Loaded<R.Model> {
        var request: TransportRequest?
        do throws(ServiceError) {
            if let reason = try await veto() { throw .vetoed(reason) }
            request = prepared(try loader.request(for: resource))
            if let share = retry?.budget { table.earn(share) }
            while let request {
                do throws(ServiceError) {
                    return try await attempts(request)
                } catch {
                    try await park(error, request)
                }
            }
            throw .cancelled
        } catch {
            log(error, of: request)
            throw error
        }
    }

    /// Not inlined, so that a call that waits has no frame of it.
    @inline(never)
    private func log(_ error: ServiceError, of request: TransportRequest?) {
        if isLogged { log(entry(request?.head, error.result, error, hidesBody: false)) }
    }

    /// Why the call is not to begin.
    /// - Throws: `ServiceError.cancelled`, also where the program never answers.
    private func veto() async throws(ServiceError) -> String? {
        guard let shouldStart = hooks.shouldStart else { return nil }
        let question = Task { [info] in await shouldStart(info) }
        let answer = await withTaskCancellationHandler {
            await question.valueUnlessCancelled()
        } onCancel: {
            question.cancel()
        }
        guard let answer, !Task.isCancelled else { throw .cancelled }
        return answer
    }

    /// The rules for retries, where the transport is not to have its own.
    private var retry: DownloadConfiguration.Retry? {
        if let own = resource.options.retry ?? policy.retry { return own }
        return configuration.retry.count > 0 ? configuration.retry : nil
    }

    /// The request as the rules of the service have it.
    private func prepared(_ request: TransportRequest) -> TransportRequest {
        var request = request
        switch policy.storing {
        case []: request.options.bypassesStore = true
        case .write: request.options.forcesDownload = true
        case .read: request.head.headerFields.append(HTTPField(name: .cacheControl, value: "no-store"))
        default: break
        }
        if retry != nil { request.options.retry = .never }
        let (hooks, info, mailbox) = (hooks, info, mailbox)
        request.onUpload = { progress in
            hooks.onSent?(info, progress)
            mailbox.add(.sent(progress))
        }
        return request
    }

    // MARK: - Attempts

    /// The first attempt and its retries.
    private func attempts(_ request: TransportRequest) async throws(ServiceError) -> Loaded<R.Model> {
        var attempt = 1
        while true {
            if Task.isCancelled { throw .cancelled }
            hooks.onStart?(info, attempt)
            mailbox.add(.started(attempt: attempt))
            do throws(ServiceError) {
                return try await value(of: request, isFirst: attempt == 1)
            } catch {
                let wait = try self.wait(after: error, attempt, request)
                hooks.onRetry?(info, wait, error)
                mailbox.add(.retrying(after: wait, error))
                try await sleep(wait)
            }
            attempt += 1
        }
    }

    private func value(of request: TransportRequest, isFirst: Bool) async throws(ServiceError) -> Loaded<R.Model> {
        if isLogged { log(ServiceLogEntry(info, request: request, limit: configuration.loggedBytes)) }
        if isFirst, resource.options.yieldsStaleFirst, let stale = await loader.staleValue(of: resource, request) {
            mailbox.add(.stale(stale))
        }
        let response = try await loader.response(to: request, onBody: received)
        let value = try loader.loaded(resource, request.head, response)
        if isLogged { log(entry(request.head, response.result, nil, hidesBody: !policy.logsBodies)) }
        return value
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
        let methods = (resource.options.retry ?? policy.retry ?? configuration.retry).methods
        guard policy.parksWithoutResponse, error.cameWithoutResponse, request.body?.isRepeatable != false,
            error.allowsRepetition(of: request.head.method, methods),
            table.takeParkingPlace(configuration.maximumParked)
        else { throw error }
        defer { table.leaveParkingPlace() }
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
