// The answer to one question to the download core.

package import CacheStore
package import HTTPCaching
package import HTTPWire

/// What to send to the client; loop-bound, because its reader is. A value in one reference, as ``CacheRequest``.
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

    private final class Box {
        // Unchecked: no code runs while a member is changed, and a check would cost instructions with every use.
        @exclusivity(unchecked) var members: Members

        init(_ members: Members) { self.members = members }
    }

    private var box: Box

    private var members: Members {
        get { box.members }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.members) }
            yield &box.members
        }
    }

    /// Status and end-to-end fields, as the origin or the store has them.
    package var head: ResponseHead {
        get { box.members.head }
        _modify { yield &members.head }
    }
    /// The reader of the body; nil if the answer has none (HEAD, 304, 204, an error).
    package var reader: BodyReader? {
        get { box.members.reader }
        set { members.reader = newValue }
    }
    /// The length of the body in bytes, for HEAD too; nil while it is unknown.
    package var length: Int64? {
        get { box.members.length }
        set { members.length = newValue }
    }
    /// The age in seconds; nil for a response that has just come from the origin.
    package var age: Int64? {
        get { box.members.age }
        set { members.age = newValue }
    }
    /// Nanoseconds from sending the request to the origin's head or failure; nil where the origin was not contacted.
    package var originTime: UInt64? {
        get { box.members.originTime }
        set { members.originTime = newValue }
    }
    /// What Cache-Status says; nil if the cache had no part in the answer (a demo answer).
    package var cacheStatus: CacheStatus? {
        get { box.members.cacheStatus }
        _modify { yield &members.cacheStatus }
    }
    /// For an answer that is being stored: lets a reader of its body wait until it is. Nil for other answers.
    package var storing: StoreCompletion? {
        get { box.members.storing }
        set { members.storing = newValue }
    }
    /// The origin could not be contacted, or its response broke off: send an error document in place of `head`.
    package var failure: FetchError? {
        get { box.members.failure }
        set { members.failure = newValue }
    }
    /// Why a fallback answers, for the log.
    package var cause: String? {
        get { box.members.cause }
        set { members.cause = newValue }
    }
    /// A placeholder or a fallback: neither from an origin nor from the store.
    package var isStandIn: Bool {
        get { box.members.isStandIn }
        set { members.isStandIn = newValue }
    }
    /// The origin was to be asked, and was not: whoever asked has an answer of its own.
    package var isUnasked: Bool {
        get { box.members.isUnasked }
        set { members.isUnasked = newValue }
    }
    /// A 416 that was made of what is stored, or of what arrives: the origin has not said it.
    package var isUnsatisfiable: Bool {
        get { box.members.isUnsatisfiable }
        set { members.isUnsatisfiable = newValue }
    }
    /// Why the response is stored, for the log; nil where it is not stored, or was stored before.
    package var storeReason: StoreReason? {
        get { box.members.storeReason }
        set { members.storeReason = newValue }
    }

    package init(
        head: ResponseHead,
        reader: BodyReader? = nil,
        length: Int64? = nil,
        age: Int64? = nil,
        cacheStatus: CacheStatus?,
        failure: FetchError? = nil
    ) {
        box = Box(
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
