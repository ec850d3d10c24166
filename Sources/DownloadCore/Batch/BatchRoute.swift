// The route of an item of a batch: the daemon or the library decides it, and the batch runner follows it.

package import CacheStore
package import EventLoop
package import HTTPWire

/// Where an item's answer comes from. Loop-bound, because its source is.
package enum BatchRoute {
    /// From the store, or from the source through it.
    case store(CacheRequest, any FetchSource)
    /// From elsewhere, under a key that tells it from others: a method that is not stored, a demo answer.
    case other(CacheKey, () async throws(BatchRefusal) -> Answer)

    var key: CacheKey {
        switch self {
        case .store(let ask, _): ask.key
        case .other(let key, _): key
        }
    }
}

/// Finds the route of an item. It sends no request, and is called more than once for an item.
package typealias BatchResolver =
    @Sendable (BatchItem, isolated EventLoop) async throws(BatchRefusal) -> BatchRoute

/// The item that an answer sends on to: the target of a redirect, with the fields that may go there. Nil where the
/// answer is no redirect of the item that can be followed. It sends no request, and throws why one must not be followed.
package typealias BatchFollower =
    @Sendable (BatchItem, ResponseHead, isolated EventLoop) throws(BatchRefusal) -> BatchItem?

/// What has changed in a batch; told on its loop, after the change.
package enum BatchChange: Sendable, Equatable {
    /// The batch as a whole.
    case state(BatchState)
    /// The item at this position has another state, size or outcome.
    case entry(Int)
    /// This many bytes have come for the item at this position.
    case received(Int, bytes: Int)
}
