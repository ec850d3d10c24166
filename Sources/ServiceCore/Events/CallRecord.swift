// The events of one call, which its fetches report, and which are told in a fixed order.

import DownloadCore
import EventLoop
import HTTPWire

/// The destination of calls: the same for all calls of an endpoint to one origin.
package final class CallDestination: Sendable {
    /// The name of the service in logs and commands.
    let service: String
    let endpoint: String
    /// The part of the URL before the path: `http://example.com`, or `service:NAME`.
    private let root: String
    private let secrets: SecretQuery

    package init(service: String, endpoint: String, root: String, secrets: SecretQuery) {
        self.service = service
        self.endpoint = endpoint
        self.root = root
        self.secrets = secrets
    }

    /// The URL of a path on the origin, without secrets.
    func url(_ path: String) -> String { ShownQuery.text(root + path, secrets) }

    /// The text without the secrets of the service.
    func shown(_ text: String) -> String { secrets.removed(from: text) }
}

/// The record of one call, which tells its events in this order: started → progress* → (retrying | parked → started →
/// progress*)* → finished | failed | cancelled. Loop-bound.
final class CallRecord {
    /// The least nanoseconds between two progress events in one direction.
    static let progressInterval: UInt64 = 100_000_000

    /// The index of the record in the loop's list; only the list sets it.
    var position: Int?
    /// The number of the call's current fetch; reports of an earlier one are ignored.
    private(set) var run = 1
    private(set) var isEnded = false
    /// The end that is told once it is clear that the call is not parked instead.
    private(set) var heldEnd: CallEnd?
    /// True if the call may still be parked when its fetch has ended.
    private var holdsEnd: Bool
    private let destination: CallDestination
    private let path: String
    private let calls: CallsUnderWay
    private var facts: CallFacts
    /// The times of the last progress events for received and sent bytes, in monotonic nanoseconds, 0 for none; and
    /// whether there was progress since that was not told.
    private var toldReceived: UInt64 = 0
    private var toldSent: UInt64 = 0
    private var hasUntold = false

    /// - Parameters:
    ///   - toSend: the number of bytes of the request's content; nil if there is none, or if it is unknown.
    ///   - isListed: true if the loop's list holds the record until its end.
    ///   - phase: the first event; ``CallEventKind/parked`` is for a call without any attempt.
    ///   - holdsEnd: true if an end is held until ``release()``.
    init(
        _ destination: CallDestination,
        _ method: Method,
        _ path: String,
        toSend: UInt64?,
        in calls: CallsUnderWay,
        isListed: Bool = true,
        phase: CallEventKind = .started,
        holdsEnd: Bool = false,
        reason: String? = nil
    ) {
        self.destination = destination
        self.path = path
        self.calls = calls
        self.holdsEnd = holdsEnd
        facts = CallFacts(
            service: destination.service,
            endpoint: destination.endpoint,
            method: method.name,
            toSend: toSend
        )
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

    /// Tells that the attempt has failed, and that another one follows.
    /// - Parameters:
    ///   - wait: nanoseconds until then.
    ///   - status: the status of the failed answer; nil if there was none.
    func retrying(after wait: UInt64, status: Int?, why: String, in run: Int) {
        guard run == self.run, !isEnded else { return }
        tellRest()
        facts.status = status
        facts.waits = wait
        facts.reason = destination.shown(why)
        tell(.retrying)
    }

    /// Tells that the call waits until its origin is back. Reports of its fetch are ignored from now on.
    func park(why: String) {
        guard !isEnded else { return }
        tellRest()
        run += 1
        heldEnd = nil
        holdsEnd = true
        facts.reason = destination.shown(why)
        tell(.parked)
    }

    /// Tells that another attempt begins.
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

    /// Ends the call. The first end counts: a fetch that is released after its end reports another one.
    func end(_ end: CallEnd, in run: Int) {
        guard run == self.run, !isEnded, heldEnd == nil else { return }
        if holdsEnd { heldEnd = end } else { finish(end) }
    }

    /// Notes that the call is not parked: its end is told now, or as soon as it comes.
    func release() {
        holdsEnd = false
        guard let end = heldEnd else { return }
        heldEnd = nil
        finish(end)
    }

    /// Ends a call that made no fetch of its own, and has got its answer from the fetch of another one.
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
            facts.reason = destination.shown(why)
        case .failed(let error):
            kind = .failed
            facts.error = error.proxyStatus
            facts.reason = destination.shown(error.description)
        }
        if kind != .failed, facts.phase == .retrying { facts.reason = nil }
        tell(kind)
        calls.remove(self)
    }

    // MARK: - Telling

    /// Makes the call known to the hub, or updates what the hub knows of it.
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
        if facts.url.isEmpty { facts.url = destination.url(path) }
        facts.number = calls.hub.begin(facts)
    }
}

@available(*, unavailable) extension CallRecord: Sendable {}

/// The kind of an event.
package enum CallEventKind: String, Sendable, Equatable, CaseIterable {
    /// An attempt begins; it may have to wait for a slot of its service first.
    case started
    /// Bytes were received or sent.
    case progress
    /// The attempt has failed, and another one follows after a wait.
    case retrying
    /// The origin is unreachable, and the call waits for it.
    case parked
    case finished
    case failed
    case cancelled
    /// The service has a call under way, and had none before.
    case busy
    /// The service has no call under way any more.
    case idle
    /// The present state of a service or a call, for a reader that has not seen its events.
    case state
    /// The reader was too slow, and has missed events.
    case lost

    /// True if no event of the call follows.
    package var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
}

/// The facts about a call at one event.
package struct CallFacts: Sendable, Equatable {
    /// The number of the call, unique in this process and greater than those of earlier calls; 0 while there is no
    /// listener.
    package internal(set) var number: UInt64 = 0
    package let service: String
    /// The name of the endpoint; empty for a call without a named endpoint.
    package let endpoint: String
    package let method: String
    /// The URL that the origin is asked for, without secrets.
    package internal(set) var url = ""
    /// The kind of the last event of the call.
    package internal(set) var phase = CallEventKind.started
    /// The number of the attempt, from 1; 0 while a call that waited for the fetch of another one has made none of its
    /// own.
    package internal(set) var attempt = 1
    /// The status of the answer to this attempt, or to the previous one while the call waits for its next attempt.
    package internal(set) var status: Int?
    /// The number of content bytes received in this attempt.
    package internal(set) var received: UInt64 = 0
    /// The number of content bytes to be received; nil if the origin has not told it.
    package internal(set) var expected: UInt64?
    /// The number of bytes of the request's content sent in this attempt.
    package internal(set) var sent: UInt64 = 0
    /// The number of bytes to be sent; nil if there is no content, or if its length is unknown.
    package internal(set) var toSend: UInt64?
    /// Nanoseconds until the next attempt; nil if none is due.
    package internal(set) var waits: UInt64?
    /// The error type of a failed call (RFC 9209 section 2.3).
    package internal(set) var error: String?
    /// The reason why the call failed, is retried, or waits.
    package internal(set) var reason: String?

    init(service: String, endpoint: String, method: String, toSend: UInt64?) {
        self.service = service
        self.endpoint = endpoint
        self.method = method
        self.toSend = toSend
    }
}

/// An event of a call, of a service, or of the reader.
package struct CallEvent: Sendable, Equatable {
    package enum Subject: Sendable, Equatable {
        case call(CallFacts)
        /// A service, with the number of its calls under way.
        case service(String, calls: Int)
        /// The reader itself, with the number of events that it missed.
        case reader(lost: Int)
    }

    /// The time of the event in nanoseconds since 1970.
    package let time: UInt64
    package let kind: CallEventKind
    package let subject: Subject

    package init(time: UInt64, kind: CallEventKind, subject: Subject) {
        self.time = time
        self.kind = kind
        self.subject = subject
    }

    /// The approximate number of bytes of the event, in memory or as a line.
    var size: Int {
        guard case .call(let facts) = subject else { return 128 }
        return 320 + facts.url.utf8.count + (facts.reason?.utf8.count ?? 0)
    }
}

/// The events that a reader asks for.
package struct EventFilter: Sendable, Equatable {
    /// The name of the service whose events are told; nil for all services.
    package var service: String?
    /// The name of the endpoint whose calls are told; nil for all endpoints. Events of services are not filtered by it.
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

/// The end of a call.
enum CallEnd {
    case finished
    case failed(FetchError)
    case cancelled
}
