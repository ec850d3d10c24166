// What becomes of one call, put together where it happens, and told in a fixed order as events.

import DownloadCore
import EventLoop
import HTTPWire

/// Where a call goes: the same for all calls of an endpoint to one origin.
package final class CallPlace: Sendable {
    /// As logs and commands call it.
    let service: String
    let endpoint: String
    /// What stands before the path: `http://example.com`, or `service:NAME`.
    private let root: String
    private let secrets: SecretQuery

    package init(service: String, endpoint: String, root: String, secrets: SecretQuery) {
        self.service = service
        self.endpoint = endpoint
        self.root = root
        self.secrets = secrets
    }

    /// The URL of a path, without secrets.
    func url(_ path: String) -> String { ShownQuery.text(root + path, secrets) }

    /// A text without secrets.
    func shown(_ text: String) -> String { secrets.removed(from: text) }
}

/// The order of its events: started → progress* → (retrying | parked → started → progress*)* → finished | failed |
/// cancelled. Loop-bound.
final class CallRecord {
    /// Nanoseconds between two events that tell the progress in one direction.
    static let progressInterval: UInt64 = 100_000_000

    /// Its place in the loop's list; the list's own.
    var position: Int?
    /// The number of the fetches that the call has had; what an earlier one says does not count any more.
    private(set) var run = 1
    private(set) var isEnded = false
    /// The end that is told as soon as it is clear that the call is not parked instead.
    private(set) var heldEnd: CallEnd?
    /// The call may be parked when its fetch has ended.
    private var holdsEnd: Bool
    private let place: CallPlace
    private let path: String
    private let calls: CallsUnderWay
    private var facts: CallFacts
    /// When progress was told last, monotonic nanoseconds, and whether there has been any since.
    private var toldReceived: UInt64 = 0
    private var toldSent: UInt64 = 0
    private var hasUntold = false

    /// - Parameters:
    ///   - toSend: bytes of the request's content; nil where there is none, or that is unknown.
    ///   - isListed: the loop's list holds it until its end.
    ///   - phase: the first event; for ``CallEventKind/parked`` no attempt was made.
    ///   - holdsEnd: an end is held until ``release()``.
    init(
        _ place: CallPlace,
        _ method: Method,
        _ path: String,
        toSend: UInt64?,
        in calls: CallsUnderWay,
        isListed: Bool = true,
        phase: CallEventKind = .started,
        holdsEnd: Bool = false,
        reason: String? = nil
    ) {
        self.place = place
        self.path = path
        self.calls = calls
        self.holdsEnd = holdsEnd
        facts = CallFacts(service: place.service, endpoint: place.endpoint, method: method.name, toSend: toSend)
        if phase == .parked { facts.attempt = 0 }
        facts.reason = reason
        if isListed { calls.add(self) }
        tell(phase)
    }

    var isParked: Bool { facts.phase == .parked }

    // MARK: - One attempt

    func answered(_ status: Int, expected: UInt64?, in run: Int) {
        guard run == self.run, !isEnded else { return }
        facts.status = status
        facts.expected = expected
    }

    func received(_ count: UInt64, in run: Int) {
        guard run == self.run, !isEnded else { return }
        facts.received &+= count
        tellProgress(&toldReceived)
    }

    func sent(_ count: UInt64, in run: Int) {
        guard run == self.run, !isEnded else { return }
        facts.sent &+= count
        tellProgress(&toldSent)
    }

    private func tellProgress(_ told: inout UInt64) {
        guard calls.hub.isListening else { return }
        let now = Monotonic.now()
        guard told == 0 || now &- told >= Self.progressInterval else {
            hasUntold = true
            return
        }
        told = now
        hasUntold = false
        tell(.progress)
    }

    // MARK: - Between attempts

    /// The attempt has failed, and another one follows.
    /// - Parameters:
    ///   - wait: nanoseconds.
    ///   - status: of its answer, where there was one.
    func retrying(after wait: UInt64, status: Int?, why: String, in run: Int) {
        guard run == self.run, !isEnded else { return }
        tellRest()
        facts.status = status
        facts.waits = wait
        facts.reason = place.shown(why)
        tell(.retrying)
    }

    /// The call waits until its origin is back. What its fetch says from now on does not count.
    func park(why: String) {
        guard !isEnded else { return }
        tellRest()
        run += 1
        heldEnd = nil
        holdsEnd = true
        facts.reason = place.shown(why)
        tell(.parked)
    }

    /// Another attempt begins.
    func startAgain(in run: Int) {
        guard run == self.run, !isEnded else { return }
        facts.attempt += 1
        facts.status = nil
        facts.received = 0
        facts.expected = nil
        facts.sent = 0
        facts.waits = nil
        facts.reason = nil
        (toldReceived, toldSent, hasUntold) = (0, 0, false)
        tell(.started)
    }

    // MARK: - The end

    /// The first end counts: a fetch that is released after its end tells another one.
    func end(_ end: CallEnd, in run: Int) {
        guard run == self.run, !isEnded, heldEnd == nil else { return }
        if holdsEnd { heldEnd = end } else { finish(end) }
    }

    /// The call is not parked: its end is told now, or as soon as it comes.
    func release() {
        holdsEnd = false
        guard let end = heldEnd else { return }
        heldEnd = nil
        finish(end)
    }

    /// A call that made no fetch of its own has got its answer.
    func answeredByOther(_ status: Int) {
        facts.status = status
        facts.reason = nil
        holdsEnd = false
        end(.finished, in: run)
    }

    private func finish(_ end: CallEnd) {
        guard !isEnded else { return }
        tellRest()
        isEnded = true
        facts.waits = nil
        let kind: CallEventKind
        switch end {
        case .finished: kind = .finished
        case .cancelled: kind = .cancelled
        case .failed(.cancelled): kind = .cancelled
        case .failed(.stopped(let why)):
            kind = .cancelled
            facts.reason = place.shown(why)
        case .failed(let error):
            kind = .failed
            facts.error = error.proxyStatus
            facts.reason = place.shown(error.description)
        }
        if kind != .failed, facts.phase == .retrying { facts.reason = nil }
        tell(kind)
        calls.remove(self)
    }

    // MARK: - Telling

    /// Makes the call known, or brings up to date what is known of it.
    func adopt() {
        guard !isEnded, heldEnd == nil else { return }
        if facts.number == 0 { makeKnown() } else { calls.hub.refresh(facts) }
    }

    private func tellRest() {
        guard hasUntold else { return }
        hasUntold = false
        if calls.hub.isListening { tell(.progress) }
    }

    private func tell(_ kind: CallEventKind) {
        facts.phase = kind
        if facts.number != 0 {
            calls.hub.tell(facts)
        } else if calls.hub.isListening, !kind.isEnd {
            makeKnown()
        }
    }

    private func makeKnown() {
        if facts.url.isEmpty { facts.url = place.url(path) }
        facts.number = calls.hub.begin(facts)
    }
}

@available(*, unavailable) extension CallRecord: Sendable {}

/// What an event says.
package enum CallEventKind: String, Sendable, Equatable, CaseIterable {
    /// An attempt begins; it may have to wait for a slot of its service first.
    case started
    /// Bytes have come, or gone.
    case progress
    /// The attempt has failed, and another one follows after a wait.
    case retrying
    /// The origin is away, and the call waits for it.
    case parked
    case finished
    case failed
    case cancelled
    /// The service has a call under way, and had none before.
    case busy
    /// The service has no call under way any more.
    case idle
    /// What a service or a call has come to, for a reader that did not hear of it.
    case state
    /// The reader was too slow, and has missed events.
    case lost

    /// Nothing more is told of the call.
    package var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
}

/// What is known of a call.
package struct CallFacts: Sendable, Equatable {
    /// Of no other call of this process, and greater than those of the calls before it; 0 while nobody listens.
    package internal(set) var number: UInt64 = 0
    package let service: String
    /// Empty for calls that no endpoint names.
    package let endpoint: String
    package let method: String
    /// What the origin is asked for, without secrets.
    package internal(set) var url = ""
    /// The last event.
    package internal(set) var phase = CallEventKind.started
    /// 1 for the first; 0 while a call that waited for the fetch of another one has made none of its own.
    package internal(set) var attempt = 1
    /// Of the answer to this attempt; of the one before while a call waits for its next attempt.
    package internal(set) var status: Int?
    /// Bytes of content of this attempt.
    package internal(set) var received: UInt64 = 0
    /// What `received` is to become; nil where the origin has not said it.
    package internal(set) var expected: UInt64?
    /// Bytes of the request's content, in this attempt.
    package internal(set) var sent: UInt64 = 0
    /// What `sent` is to become; nil where there is no content, or nobody knows how long it is.
    package internal(set) var toSend: UInt64?
    /// Nanoseconds until the next attempt; nil where none is due.
    package internal(set) var waits: UInt64?
    /// The error type of RFC 9209 section 2.3, where the call has failed.
    package internal(set) var error: String?
    /// Why the call failed, is made again, or waits.
    package internal(set) var reason: String?

    init(service: String, endpoint: String, method: String, toSend: UInt64?) {
        self.service = service
        self.endpoint = endpoint
        self.method = method
        self.toSend = toSend
    }
}

/// One event.
package struct CallEvent: Sendable, Equatable {
    package enum Subject: Sendable, Equatable {
        case call(CallFacts)
        /// With its calls under way.
        case service(String, calls: Int)
        /// The reader itself, with the events that it missed.
        case reader(lost: Int)
    }

    /// Nanoseconds since 1970.
    package let time: UInt64
    package let kind: CallEventKind
    package let subject: Subject

    package init(time: UInt64, kind: CallEventKind, subject: Subject) {
        self.time = time
        self.kind = kind
        self.subject = subject
    }

    /// About as many bytes as it takes, in memory or as a line.
    var size: Int {
        guard case .call(let facts) = subject else { return 128 }
        return 320 + facts.url.utf8.count + (facts.reason?.utf8.count ?? 0)
    }
}

/// Which events a reader wants.
package struct EventFilter: Sendable, Equatable {
    /// Nil: of all services.
    package var service: String?
    /// Nil: of all endpoints. What is told of services themselves is not filtered by it.
    package var endpoint: String?

    package init(service: String? = nil, endpoint: String? = nil) {
        self.service = service
        self.endpoint = endpoint
    }

    func admits(_ facts: CallFacts) -> Bool {
        admits(service: facts.service) && (endpoint == nil || endpoint == facts.endpoint)
    }

    func admits(service name: String) -> Bool { service == nil || service == name }

    func admits(_ event: CallEvent) -> Bool {
        switch event.subject {
        case .call(let facts): admits(facts)
        case .service(let name, _): admits(service: name)
        case .reader: true
        }
    }
}

/// How a call ends.
enum CallEnd {
    case finished
    case failed(FetchError)
    case cancelled
}
