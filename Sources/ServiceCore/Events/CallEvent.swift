// What is told of calls that go to an origin: one event, and what is known of the call with it.

import DownloadCore

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
