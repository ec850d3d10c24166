// What the download core asks for a resource, and how the answer comes back: the seam below which services, retries and
// limits act, what every fetch in such a chain passes on, and how urgent one is that no client waits for.

package import EventLoop
package import HTTPCaching
package import HTTPWire
package import Policies
import Synchronization
package import Upstream

/// One request to an origin. Loop-bound, because its body is.
package struct FetchRequest {
    package var method: Method
    /// Path and query on the origin; the source adds the secret items of its service.
    package var path: String
    /// End-to-end fields; the source adds Host and what its service says.
    package var fields: Fields
    /// The Host field of the client's request, for services that preserve it.
    package var clientHost: String?
    package var framing: BodyFraming
    package var body: (any RequestBodySource)?
    /// Registers a callback for when the body has bytes again after a `.wait`.
    package var bindBody: ((_ available: @escaping () -> Void) -> Void)?
    /// How urgent it is; nil where a client waits for it.
    package var urgency: FetchUrgency?
    /// Checks what is stored: its conditions are those of the origin's validators, and its answer is compared with them.
    package var isCheck = false
    /// Hears of the redirects that are followed; nil where nothing depends on them.
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
    /// Whether asking it opens a socket, which an offline daemon does not; true unless a source says otherwise.
    var opensSockets: Bool { get }

    /// Waits for admission, then starts. The sink is never called before this returns.
    /// - Throws: `FetchError` where the fetch is not admitted or cannot start.
    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle

    /// Starts the fetch if that needs no wait; otherwise does nothing and returns nil. The sink is never
    /// called before this returns.
    func startWithoutWaiting(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)?
}

extension FetchSource {
    package var opensSockets: Bool { true }

    package func startWithoutWaiting(_ request: consuming FetchRequest, sink: any FetchSink) -> (any FetchHandle)? {
        nil
    }
}

/// A fetch under way; loop-bound. It is an ``EndHandle`` or a ``PassingHandle``: no member has a default here, so that no
/// decorator leaves one out unseen.
package protocol FetchHandle: AnyObject {
    /// After a sink said `.pause`, or after ``pause()``: more bytes may come.
    func resume()
    /// As a sink that says `.pause`, while no bytes come: no more of them until ``resume()``, and no deadline runs. Of a
    /// fetch that cannot, more may come all the same.
    func pause()
    /// After the request's body said `.wait`: it has bytes again, or has ended.
    func bodyAvailable()
    /// Whether content came with the final head, so that the sink gets it right after the head; valid during the call
    /// with the head. False where that is unknown.
    var hasContent: Bool { get }
    /// Whether the content waits where it is at no cost, such as in a file: little of it has to be held for a slow reader.
    /// Valid from the call with the head on.
    var isAtHand: Bool { get }
    /// Whether the end of the body is certain; valid from the call that reports the end. False where the body ended
    /// with a TLS connection without close_notify: it may be truncated, so the answer is forwarded and never stored.
    var isEndProven: Bool { get }
    /// Ends the fetch; the sink is not called again.
    func cancel()
}

/// Receives one fetch, in this order: any number of interim responses, one head, bytes, and one end.
/// Loop-bound; called on the loop. It is an ``EndSink`` or a ``PassingSink``.
package protocol FetchSink: AnyObject {
    /// Bytes may come where no other fetch may be begun.
    var acceptsReentrantBytes: Bool { get }
    /// Bytes that should come at a time, at most.
    var maximumAtOnce: Int { get }
    func received(interim head: ResponseHead)
    func received(_ head: ResponseHead, framing: BodyFraming)
    /// The bytes are valid during the call and count as taken, also when the answer is `.pause`.
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow
    /// Whether ``splice(_:from:)`` may ever answer.
    var supportsSplice: Bool { get }
    /// Takes content out of its source by itself, at most `count` bytes; nil: not now.
    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent?
    func finished(trailers: Fields)
    func failed(_ error: FetchError)
}

// MARK: - Fetches that pass another one on

/// A fetch that stands before another one, and passes on whatever it does not answer by itself. Loop-bound.
///
/// `cancel()` alone has to be written: who is behind it must not be called any more.
package protocol PassingHandle: FetchHandle {
    /// The one behind; nil before it has begun, and after its end.
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

/// A sink that stands before another one, and passes on whatever it does not take by itself. Loop-bound.
package protocol PassingSink: FetchSink {
    /// The one behind; nil when it is to hear nothing any more.
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

/// Both of one fetch: what decorates a source.
package typealias PassingFetch = PassingHandle & PassingSink

/// A fetch with no other one behind it: what it does not say by itself is as for most of them. Whoever decorates a fetch is a
/// ``PassingHandle``.
package protocol EndHandle: FetchHandle {}

extension EndHandle {
    package func pause() {}
    package var hasContent: Bool { false }
    package var isAtHand: Bool { false }
    package var isEndProven: Bool { true }
}

/// A sink with no other one behind it. Whoever decorates a sink is a ``PassingSink``.
package protocol EndSink: FetchSink {}

extension EndSink {
    package var acceptsReentrantBytes: Bool { false }
    package var maximumAtOnce: Int { .max }
    package var supportsSplice: Bool { false }
    package func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? { nil }
}

// MARK: - The trail of redirects

/// What becomes of one unsafe request at the URLs on its way. Whoever follows redirects notes them. Loop-bound.
package final class FetchTrail {
    /// Absolute URLs that have answered the unsafe method without an error, in their order.
    package private(set) var changed: [String] = []
    /// The URL that the answer is of, where redirects were followed.
    private var end: (url: String, method: Method)?

    package init() {}

    /// A redirect has come, which may be followed.
    package func noteRedirect(of url: String, _ status: Int, to method: Method) {
        if Caching.invalidates(method: method, status: status), !changed.contains(url) { changed.append(url) }
    }

    /// The answer has come.
    /// - Parameter url: nil without redirects; an attempt before this one may have had some.
    package func noteAnswer(of url: String?, _ status: Int, to method: Method) {
        end = url.map { ($0, method) }
        if let url { noteRedirect(of: url, status, to: method) }
    }

    /// The URLs that an answer names, and that are invalidated with the one that it is of. Another origin must not be
    /// able to invalidate what is not its own.
    /// - Parameter url: of the request, as it was sent first.
    package func urls(named answer: ResponseHead, _ url: String) -> [String] {
        guard let end else { return Caching.invalidatedURLs(url: url, response: answer) }
        guard Caching.invalidates(method: end.method, status: answer.status) else { return [] }
        return Caching.invalidatedURLs(url: end.url, response: answer)
    }
}

@available(*, unavailable) extension FetchTrail: Sendable {}

// MARK: - Times of a response

extension WallClock {
    /// - Parameter requestTime: when it was asked for, Unix seconds; nil where that does not matter.
    package func times(since requestTime: Int64? = nil) -> ResponseTimes {
        let now = now()
        return ResponseTimes(requestTime: requestTime ?? now, responseTime: now, ahead: ahead)
    }
}

// MARK: - Urgency

/// The priority of a fetch, which rises when somebody joins it for whom it is more urgent, and never falls. A request
/// without this is a client's.
///
/// Sendable: the priority is atomic, and who hears of a change is under a mutex; they are called outside of it.
package final class FetchUrgency: Sendable {
    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Observer: Sendable {
        let tell: @Sendable (FetchPriority) -> Void

        init(_ tell: @escaping @Sendable (FetchPriority) -> Void) { self.tell = tell }
    }

    private let value: Atomic<UInt8>
    private let observers = Mutex<(last: UInt64, all: [UInt64: Observer])>((0, [:]))

    package init(_ priority: FetchPriority) { value = Atomic(priority.rawValue) }

    /// The priority at this moment. Any thread.
    package var priority: FetchPriority {
        FetchPriority(rawValue: value.load(ordering: .sequentiallyConsistent)) ?? .client
    }

    /// Somebody joins. Any thread.
    package func raise(to priority: FetchPriority) {
        let before = value.min(priority.rawValue, ordering: .sequentiallyConsistent).oldValue
        guard before > priority.rawValue else { return }
        for observer in observers.withLock({ Array($0.all.values) }) { observer.tell(priority) }
    }

    /// - Parameter tell: called on any thread with each higher priority, until ``forget(_:)``. One that came before this
    ///   call is not told: look at ``priority`` afterwards.
    /// - Returns: what ``forget(_:)`` takes.
    package func observe(_ tell: @escaping @Sendable (FetchPriority) -> Void) -> UInt64 {
        let observer = Observer(tell)
        return observers.withLock { observers in
            observers.last += 1
            observers.all[observers.last] = observer
            return observers.last
        }
    }

    package func forget(_ observer: UInt64) {
        // Let go of without the mutex.
        let old = observers.withLock { $0.all.removeValue(forKey: observer) }
        withExtendedLifetime(old) {}
    }
}

extension FetchUrgency? {
    /// The priority of a request that may have no urgency.
    package var priority: FetchPriority { self?.priority ?? .client }
}

/// A fetch is at least as urgent as who waits for it, for as long as that waits. Any thread.
struct Lift {
    private let waiting: FetchUrgency
    private let observer: UInt64

    /// - Parameters:
    ///   - fetch: what is raised; nil where it is a client's, and nothing is to be done.
    ///   - waiting: of who waits; nil where that is a client.
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
