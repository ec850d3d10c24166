// What happens in the course of a call, in its order.

/// What happens in the course of a call.
///
/// ``started(attempt:)`` comes first, then what goes up and what comes down. Where the call is made again,
/// ``retrying(after:_:)`` and another ``started(attempt:)`` follow, and behind ``parked(_:)`` there is another start once it
/// is repeated. ``succeeded(_:)`` or ``failed(_:)`` comes at last, and ``ended`` behind it. A call that cannot start only
/// fails and ends.
public enum CallEvent<Model: Sendable>: Sendable {
    /// An attempt begins; the first one has the number 1.
    case started(attempt: Int)
    /// More of the request's content has been sent.
    case sent(DownloadProgress)
    /// More of the response's body has come.
    case received(DownloadProgress)
    /// What is stored, although it is no longer valid, while the origin is asked; only where the resource's options say
    /// ``DownloadOptions/yieldsStaleFirst``.
    case stale(Loaded<Model>)
    /// The attempt has failed, and another one is made after this wait.
    case retrying(after: Duration, ServiceError)
    /// No response came: the call is kept until ``ServiceManager/repeatFailed()``.
    case parked(ServiceError)
    /// The model has come.
    case succeeded(Loaded<Model>)
    /// There is none.
    case failed(ServiceError)
    /// Nothing comes any more.
    case ended
}
