// Who is asked before a call, and told of what happens to it.

public import HTTPTypes

/// Who is asked before a call, and told of what happens to it, in the order of ``CallEvent``.
///
/// All but ``shouldStart`` are called in the task of the call, one after the other, before its events have the news: they
/// should not wait for long. A hook has returned before the next one of the same call is called, whoever cancels or
/// repeats the call meanwhile; hooks of several calls run at the same time. None is set by default.
public struct ServiceHooks: Sendable {
    /// Asked before the first attempt: a reason ends the call with ``ServiceError/vetoed(_:)``, and nil lets it begin. It
    /// has a task of its own, which is cancelled with the call: a call that is cancelled does not wait for its answer.
    public var shouldStart: (@Sendable (CallInfo) async -> String?)?
    /// An attempt begins; the first one has the number 1.
    public var onStart: (@Sendable (CallInfo, _ attempt: Int) -> Void)?
    /// More of the request's content has been sent.
    public var onSent: (@Sendable (CallInfo, DownloadProgress) -> Void)?
    /// More of the response's body has come.
    public var onReceived: (@Sendable (CallInfo, DownloadProgress) -> Void)?
    /// The attempt has failed, and another one is made after this wait.
    public var onRetry: (@Sendable (CallInfo, Duration, ServiceError) -> Void)?
    /// No response came, and the call is kept. It counts as parked already: ``ServiceManager/repeatFailed()``, called in
    /// here or at the same time, repeats it, and its next ``onStart`` comes when this has returned.
    public var onPark: (@Sendable (CallInfo, ServiceError) -> Void)?
    /// The call has a model; the response that it was made of.
    public var onSuccess: (@Sendable (CallInfo, HTTPResponse) -> Void)?
    /// The call has none, and why.
    public var onFailure: (@Sendable (CallInfo, ServiceError) -> Void)?
    /// Nothing happens to the call any more.
    public var onEnd: (@Sendable (CallInfo) -> Void)?
    /// The last call has ended: there is none that is under way, waits or is parked.
    public var onIdle: (@Sendable () -> Void)?
    /// A request, a response or a failure, as a log may show it.
    public var onLog: (@Sendable (ServiceLogEntry) -> Void)?

    /// No hooks.
    public init() {}
}
