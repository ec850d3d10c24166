// The seam between the download core and the services with their retries and limits: what a fetch of a resource is
// given, how its answer comes back, and the priority of a fetch without a waiting client.

package import EventLoop
package import HTTPCaching
package import HTTPWire
package import Policies
import Synchronization
package import Upstream

/// A request to an origin. Loop-bound, because its body is.
package struct FetchRequest {
    package var method: Method
    /// The path and query on the origin; the source adds the secret query items of its service.
    package var path: String
    /// The end-to-end fields; the source adds Host and the fields of its service.
    package var fields: Fields
    /// The Host field of the client's request, for services that preserve it.
    package var clientHost: String?
    package var framing: BodyFraming
    package var body: (any RequestBodySource)?
    /// Registers a callback for when the body has bytes again after a `.wait`.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)?
    /// The priority of the fetch; nil if a client waits for it.
    package var urgency: FetchUrgency?
    /// Whether the request checks a stored response: its conditions are the origin's validators, and its answer is
    /// compared with them.
    package var isCheck = false
    /// Records the redirects that are followed; nil if nothing depends on them.
    package var trail: FetchTrail?

    package init(
        method: Method,
        path: String,
        fields: Fields,
        clientHost: String? = nil,
        framing: BodyFraming = .none,
        body: (any RequestBodySource)? = nil
    ) {
        self.method = method
        self.path = path
        self.fields = fields
        self.clientHost = clientHost
        self.framing = framing
        self.body = body
    }
}

/// An origin as the download core sees it; loop-bound, one per loop and service.
package protocol FetchSource: AnyObject {
    /// Whether a fetch opens a socket, which an offline daemon does not; true unless a source says otherwise.
    var opensSockets: Bool { get }

    /// Waits for admission, then starts the fetch. The sink is never called before this returns.
    /// - Throws: `FetchError` if the fetch is not admitted or cannot start.
    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle

    /// Starts the fetch if that needs no wait; otherwise does nothing and returns nil. The sink is never called before
    /// this returns.
    func startWithoutWaiting(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)?
}

extension FetchSource {
    package var opensSockets: Bool { true }

    package func startWithoutWaiting(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)? {
        nil
    }
}

/// A fetch under way; loop-bound. It is an ``EndHandle`` or a ``PassingHandle``: no member has a default here, so that
/// no decorator omits one by mistake.
package protocol FetchHandle: AnyObject {
    /// Lets more bytes come, after a sink returned `.pause`, or after ``pause()``.
    func resume()
    /// Pauses the fetch between two calls of the sink, as `.pause` does in one: until ``resume()`` no bytes come, and
    /// no deadline runs. A fetch that cannot pause may deliver more bytes all the same.
    func pause()
    /// Reports that the request's body has bytes again, or has ended, after it returned `.wait`.
    func bodyAvailable()
    /// Whether content came with the final head, so that the sink gets it right after the head; valid during the call
    /// with the head. False if that is unknown.
    var hasContent: Bool { get }
    /// Whether the content can stay where it is at no cost, such as in a file, so that little of it has to be held for
    /// a slow reader. Valid from the call with the head on.
    var isAtHand: Bool { get }
    /// Whether the end of the body is certain; valid from the call that reports the end. False if the body ended with a
    /// TLS connection without close_notify: it may be truncated, so the answer is forwarded and never stored.
    var isEndProven: Bool { get }
    /// Ends the fetch; the sink is not called again.
    func cancel()
}

/// The receiver of a fetch: any number of interim responses, one head, bytes, and one end, in this order. Loop-bound;
/// called on the loop. It is an ``EndSink`` or a ``PassingSink``.
package protocol FetchSink: AnyObject {
    /// Whether the sink may get bytes during a call in which no other fetch may be begun.
    var acceptsReentrantBytes: Bool { get }
    /// The most bytes that should come in one call.
    var maximumAtOnce: Int { get }
    func received(interim head: ResponseHead)
    func received(_ head: ResponseHead, framing: BodyFraming)
    /// Takes bytes, which are valid during the call. They count as taken even if the result is `.pause`.
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow
    /// Whether ``splice(_:from:)`` may ever succeed.
    var supportsSplice: Bool { get }
    /// Takes content out of its source by itself, at most `count` bytes; nil: not now.
    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent?
    func finished(trailers: Fields)
    func failed(_ error: FetchError)
}

// MARK: - Fetches that pass another one on

/// A decorator of a fetch, which forwards every call that it does not handle itself. Loop-bound.
///
/// `cancel()` alone has no default, because the sink must not be called after it.
package protocol PassingHandle: FetchHandle {
    /// The decorated fetch; nil before it has begun, and after its end.
    var handle: (any FetchHandle)? { get }
}

extension PassingHandle {
    package func resume() { handle?.resume() }
    package func pause() { handle?.pause() }
    package func bodyAvailable() { handle?.bodyAvailable() }
    package var hasContent: Bool { handle?.hasContent ?? false }
    package var isAtHand: Bool { handle?.isAtHand ?? false }
    package var isEndProven: Bool { handle?.isEndProven ?? true }
}

/// A decorator of a sink, which forwards every call that it does not handle itself. Loop-bound.
package protocol PassingSink: FetchSink {
    /// The decorated sink; nil when it is to get no more calls.
    var sink: (any FetchSink)? { get }
}

extension PassingSink {
    package var acceptsReentrantBytes: Bool { sink?.acceptsReentrantBytes ?? false }
    package var maximumAtOnce: Int { sink?.maximumAtOnce ?? .max }
    package var supportsSplice: Bool { sink?.supportsSplice ?? false }
    package func received(interim head: ResponseHead) { sink?.received(interim: head) }
    package func received(_ head: ResponseHead, framing: BodyFraming) { sink?.received(head, framing: framing) }
    package func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow { sink?.received(bytes) ?? .continue }
    package func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? {
        sink?.splice(count, from: source)
    }
    package func finished(trailers: Fields) { sink?.finished(trailers: trailers) }
    package func failed(_ error: FetchError) { sink?.failed(error) }
}

/// Both sides of one fetch, as a decorator of a source needs them.
package typealias PassingFetch = PassingHandle & PassingSink

/// A fetch that decorates no other one; its defaults suit most fetches. A decorator is a ``PassingHandle``.
package protocol EndHandle: FetchHandle {}

extension EndHandle {
    package func pause() {}
    package var hasContent: Bool { false }
    package var isAtHand: Bool { false }
    package var isEndProven: Bool { true }
}

/// A sink that decorates no other one. A decorator is a ``PassingSink``.
package protocol EndSink: FetchSink {}

extension EndSink {
    package var acceptsReentrantBytes: Bool { false }
    package var maximumAtOnce: Int { .max }
    package var supportsSplice: Bool { false }
    package func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? { nil }
}

// MARK: - The trail of redirects

/// The effects of one unsafe request at the URLs on its way through redirects, noted by the source that follows them.
/// Loop-bound.
package final class FetchTrail {
    /// The absolute URLs that have answered the unsafe method without an error, in order.
    package private(set) var changed: [String] = []
    /// The URL and method of the final answer, if redirects were followed.
    private var end: (url: String, method: Method)?

    package init() {}

    /// Notes a redirect that may be followed.
    package func noteRedirect(of url: String, _ status: Int, to method: Method) {
        if Caching.invalidates(method: method, status: status), !changed.contains(url) { changed.append(url) }
    }

    /// Notes the final answer.
    /// - Parameter url: nil without redirects; an attempt before this one may have had some.
    package func noteAnswer(of url: String?, _ status: Int, to method: Method) {
        end = url.map { ($0, method) }
        if let url { noteRedirect(of: url, status, to: method) }
    }

    /// The URLs that an answer names, and that are invalidated with its own URL. An origin must not be able to
    /// invalidate what belongs to another origin.
    /// - Parameter url: the URL of the request as it was sent first.
    package func urls(named answer: ResponseHead, _ url: String) -> [String] {
        guard let end else { return Caching.invalidatedURLs(url: url, response: answer) }
        guard Caching.invalidates(method: end.method, status: answer.status) else { return [] }
        return Caching.invalidatedURLs(url: end.url, response: answer)
    }
}

@available(*, unavailable) extension FetchTrail: Sendable {}

// MARK: - Times of a response

extension WallClock {
    /// The times of the answer.
    /// - Parameter requestTime: the time of the request, Unix seconds; nil if it does not matter.
    package func times(since requestTime: Int64? = nil) -> ResponseTimes {
        let now = now()
        return ResponseTimes(requestTime: requestTime ?? now, responseTime: now, ahead: ahead)
    }
}

// MARK: - Urgency

/// The priority of a fetch. It rises when a request with a higher priority joins, and never falls. A request without an
/// urgency has the priority of a client.
///
/// Sendable: the priority is atomic, and the observers are under a mutex; they are called outside of it.
package final class FetchUrgency: Sendable {
    /// A closure right under a mutex would be wrapped again at each access, so that an object holds it.
    private final class Observer: Sendable {
        let tell: @Sendable (FetchPriority) -> Void

        init(_ tell: @escaping @Sendable (FetchPriority) -> Void) { self.tell = tell }
    }

    private let value: Atomic<UInt8>
    private let observers = Mutex<(last: UInt64, all: [UInt64: Observer])>((0, [:]))

    package init(_ priority: FetchPriority) { value = Atomic(priority.rawValue) }

    /// The present priority. Any thread.
    package var priority: FetchPriority {
        FetchPriority(rawValue: value.load(ordering: .sequentiallyConsistent)) ?? .client
    }

    /// Raises the priority when a request joins. Any thread.
    package func raise(to priority: FetchPriority) {
        let before = value.min(priority.rawValue, ordering: .sequentiallyConsistent).oldValue
        guard before > priority.rawValue else { return }
        for observer in observers.withLock({ Array($0.all.values) }) { observer.tell(priority) }
    }

    /// Adds an observer of higher priorities.
    /// - Parameter tell: called on any thread with each higher priority, until ``forget(_:)``. A change before this
    ///   call is not
    ///   reported: read ``priority`` afterwards.
    /// - Returns: the number for ``forget(_:)``.
    package func observe(_ tell: @escaping @Sendable (FetchPriority) -> Void) -> UInt64 {
        let observer = Observer(tell)
        return observers.withLock { observers in
            observers.last += 1
            observers.all[observers.last] = observer
            return observers.last
        }
    }

    package func forget(_ observer: UInt64) {
        // The observer is released outside the mutex.
        let old = observers.withLock { $0.all.removeValue(forKey: observer) }
        withExtendedLifetime(old) {}
    }
}

extension FetchUrgency? {
    /// The priority of a request, which may have no urgency.
    package var priority: FetchPriority { self?.priority ?? .client }
}

/// Raises a fetch to the priority of a request that waits for it, for as long as the request waits. Any thread.
struct Lift {
    private let waiting: FetchUrgency
    private let observer: UInt64

    /// Raises a fetch.
    /// - Parameters:
    ///   - fetch: the urgency of the fetch; nil if it is a client's, so that nothing has to be done.
    ///   - waiting: the urgency of the waiting request; nil for a client.
    init?(_ fetch: FetchUrgency?, by waiting: FetchUrgency?) {
        guard let fetch, fetch !== waiting else { return nil }
        guard let waiting else {
            fetch.raise(to: .client)
            return nil
        }
        self.waiting = waiting
        observer = waiting.observe { fetch.raise(to: $0) }
        fetch.raise(to: waiting.priority)
    }

    func end() { waiting.forget(observer) }
}
