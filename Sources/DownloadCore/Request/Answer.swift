// The answer of the download core to one request.

package import CacheStore
package import HTTPCaching
package import HTTPWire

/// The answer that is sent to the client; loop-bound, because its reader is. A value in one reference, as
/// ``CacheRequest``.
package struct Answer {
    private struct Members {
        var head: ResponseHead
        var reader: BodyReader?
        var length: Int64?
        var age: Int64?
        var originTime: UInt64?
        var cacheStatus: CacheStatus?
        var storing: StoreCompletion?
        var failure: FetchError?
        var cause: String?
        var isStandIn = false
        var isUnasked = false
        var isUnsatisfiable = false
        var storeReason: StoreReason?
    }

    private var box: CopyOnWrite<Members>

    /// The status and end-to-end fields, as the origin or the store has them.
    package var head: ResponseHead {
        get { box.members.head }
        _modify { yield &box.members.head }
    }
    /// The reader of the body; nil if the answer has none (HEAD, 304, 204, an error).
    package var reader: BodyReader? {
        get { box.members.reader }
        set { box.members.reader = newValue }
    }
    /// The length of the body in bytes, also for HEAD; nil while it is unknown.
    package var length: Int64? {
        get { box.members.length }
        set { box.members.length = newValue }
    }
    /// The age in seconds; nil for a response that has just arrived from the origin.
    package var age: Int64? {
        get { box.members.age }
        set { box.members.age = newValue }
    }
    /// The nanoseconds from sending the request to the origin's head or failure; nil if the origin was not contacted.
    package var originTime: UInt64? {
        get { box.members.originTime }
        set { box.members.originTime = newValue }
    }
    /// The members of Cache-Status; nil if the cache had no part in the answer (a demo answer).
    package var cacheStatus: CacheStatus? {
        get { box.members.cacheStatus }
        _modify { yield &box.members.cacheStatus }
    }
    /// Waits for the end of storing, if the answer is being stored; nil for other answers.
    package var storing: StoreCompletion? {
        get { box.members.storing }
        set { box.members.storing = newValue }
    }
    /// The failure of the origin, to be sent as an error document in place of `head`; nil if there is none.
    package var failure: FetchError? {
        get { box.members.failure }
        set { box.members.failure = newValue }
    }
    /// The reason why a fallback answers, for the log.
    package var cause: String? {
        get { box.members.cause }
        set { box.members.cause = newValue }
    }
    /// Whether the answer is a placeholder or a fallback, which comes neither from an origin nor from the store.
    package var isStandIn: Bool {
        get { box.members.isStandIn }
        set { box.members.isStandIn = newValue }
    }
    /// Whether the origin would have been contacted and was not, because the caller has an answer of its own.
    package var isUnasked: Bool {
        get { box.members.isUnasked }
        set { box.members.isUnasked = newValue }
    }
    /// Whether the answer is a 416 that was made from a stored or arriving response, rather than by the origin.
    package var isUnsatisfiable: Bool {
        get { box.members.isUnsatisfiable }
        set { box.members.isUnsatisfiable = newValue }
    }
    /// The reason why the response is stored, for the log; nil if it is not stored, or was stored before.
    package var storeReason: StoreReason? {
        get { box.members.storeReason }
        set { box.members.storeReason = newValue }
    }

    package init(
        head: ResponseHead,
        reader: BodyReader? = nil,
        length: Int64? = nil,
        age: Int64? = nil,
        cacheStatus: CacheStatus?,
        failure: FetchError? = nil
    ) {
        box = CopyOnWrite(
            Members(
                head: head,
                reader: reader,
                length: length,
                age: age,
                cacheStatus: cacheStatus,
                failure: failure
            )
        )
    }
}
