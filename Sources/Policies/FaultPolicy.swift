// Deliberate faults, as a configuration chooses them: between an answer and its client, and in the content of demo
// answers.

/// One rule of `faults`: its conditions and its effects. Times are nanoseconds.
package struct FaultPolicy: Sendable, Equatable {
    /// The rule's name, which is part of every draw's key, and is in Drydock-Demo.
    package var name: String
    /// The seed: another one gives other draws for the same requests.
    package var seed: UInt64
    /// The share of requests that it acts on, 0...1.
    package var chance: Double
    /// The sources of the answers that it acts on.
    package var points: Set<FaultPoint>
    /// Whether the origin is asked if the rule leaves no part of its answer.
    package var origin: FaultOrigin
    /// The number of first requests of a path that the rule acts on; nil for all.
    package var first: Int?
    /// The divisor of the numbers of a path's requests that the rule acts on; nil for all.
    package var every: Int?
    /// The delay of the answer's beginning; nil for none.
    package var latency: LatencyPolicy?
    /// The status of a substitute answer; nil for the original answer.
    package var status: Int?
    /// With `status`: the range from which the value of Retry-After is drawn; nil if there is no such field.
    package var retryAfter: ClosedRange<UInt64>?
    /// With `status`: the absolute path of the body; nil for an empty one.
    package var file: String?
    /// The fault of the bytes; nil for none.
    package var wire: WireFault?
    /// The pace of the body; nil for as fast as the client reads.
    package var pace: Pace?

    package init(
        name: String,
        seed: UInt64 = 0,
        chance: Double = 1,
        points: Set<FaultPoint> = Set(FaultPoint.allCases),
        origin: FaultOrigin = .spare,
        first: Int? = nil,
        every: Int? = nil,
        latency: LatencyPolicy? = nil,
        status: Int? = nil,
        retryAfter: ClosedRange<UInt64>? = nil,
        file: String? = nil,
        wire: WireFault? = nil,
        pace: Pace? = nil
    ) {
        self.name = name
        self.seed = seed
        self.chance = chance
        self.points = points
        self.origin = origin
        self.first = first
        self.every = every
        self.latency = latency
        self.status = status
        self.retryAfter = retryAfter
        self.file = file
        self.wire = wire
        self.pace = pace
    }

    /// True if the client sees no part of the original answer.
    package var leavesNothing: Bool { status != nil || wire?.leavesNothing ?? false }

    /// True if the origin is not asked when the rule acts.
    package var sparesOrigin: Bool { origin == .spare && leavesNothing && points.contains(.miss) }
}

/// Whether an origin is asked for an answer that no client would see.
package enum FaultOrigin: String, Sendable, Hashable, CaseIterable {
    /// The origin is not asked: a request that a client repeats after the fault is processed once.
    case spare
    /// The origin is asked: the answer is lost on its way, and a request that a client repeats is processed twice.
    case ask
}

/// The source of an answer, as far as faults distinguish answers.
package enum FaultPoint: String, Sendable, Hashable, CaseIterable {
    /// The answer is stored and fresh.
    case hit
    /// The answer is stored and stale, or replaces an answer of the origin.
    case stale
    /// The answer comes from the origin, or is the error if the origin has given none.
    case miss
    /// The answer is stored, and the origin has just validated it.
    case revalidate
    case demo
}

/// A fault in the bytes of an answer over HTTP/1.1. Each of them ends the connection.
package enum WireFault: Sendable, Hashable {
    /// The connection is reset after this many bytes of content; nil for before the first byte of the answer.
    case reset(after: Int?)
    /// The connection ends without a byte.
    case empty
    /// The connection ends after this many bytes of content, whatever length the head declares.
    case close(after: Int)
    /// A chunk whose size is not a number comes after this many bytes of content.
    case badChunk(after: Int)
    /// The head stops in its middle for this many nanoseconds, and then the connection ends; nil to wait until the
    /// client leaves.
    case stalledHead(for: UInt64?)
    /// The content stops after this many bytes for this many nanoseconds, and then the connection ends; nil to wait
    /// until the client leaves.
    case stalledBody(after: Int, for: UInt64?)
    /// The answer is whole, and its connection stays open for this many nanoseconds, in which it answers nothing; nil to
    /// wait until the client leaves.
    case slowClose(for: UInt64?)
    /// Bytes that are not HTTP come in place of the answer or after its status line.
    case garbage(afterStatusLine: Bool)
    /// Content-Length is larger than the content by this many bytes, or smaller if negative.
    case wrongLength(by: Int)

    /// True if no byte of the original answer is sent, not even its status.
    package var leavesNothing: Bool {
        switch self {
        case .reset(after: nil), .empty, .garbage(afterStatusLine: false): true
        default: false
        }
    }

    /// The kind, as configuration, logs and metrics name it.
    package var kind: Kind {
        switch self {
        case .reset: .reset
        case .empty: .empty
        case .close: .close
        case .badChunk: .badChunk
        case .stalledHead: .stalledHead
        case .stalledBody: .stalledBody
        case .slowClose: .slowClose
        case .garbage: .garbage
        case .wrongLength: .wrongLength
        }
    }

    package enum Kind: String, Sendable, CaseIterable {
        case reset, empty, close
        case badChunk = "bad_chunk"
        case stalledHead = "stalled_head"
        case stalledBody = "stalled_body"
        case slowClose = "slow_close"
        case garbage
        case wrongLength = "wrong_length"
    }
}

/// The pace at which the body of an answer is sent.
package enum Pace: Sendable, Hashable {
    /// The number of bytes a second, at least 1.
    case rate(Int)
    /// The number of pieces, at least 1, and the nanoseconds after which the last of them is sent.
    case dribble(chunks: Int, over: UInt64)
}

/// Rules of faults that any configuration may name.
package enum FaultPreset: String, Sendable, CaseIterable {
    case flakyMobile = "flaky-mobile"
    case overloaded
    case thirdGeneration = "3g"

    /// The rules of all presets, by their names.
    package static var all: [String: [FaultPolicy]] {
        Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0.rules) })
    }

    package var rules: [FaultPolicy] {
        switch self {
        case .flakyMobile:
            [
                FaultPolicy(name: "flaky-mobile", latency: Self.latency(120, p99: 2500), pace: .rate(256 << 10)),
                FaultPolicy(name: "flaky-mobile-lost", chance: 0.02, wire: .reset(after: nil)),
                FaultPolicy(name: "flaky-mobile-cut", chance: 0.03, wire: .close(after: 2 << 10)),
            ]
        case .overloaded:
            [
                FaultPolicy(name: "overloaded", latency: Self.latency(400, p99: 5000)),
                FaultPolicy(
                    name: "overloaded-503",
                    chance: 0.1,
                    status: 503,
                    retryAfter: 1_000_000_000...5_000_000_000
                ),
            ]
        case .thirdGeneration: [FaultPolicy(name: "3g", latency: Self.latency(200, p99: 800), pace: .rate(200 << 10))]
        }
    }

    /// The latency of a preset, from its median and 99th percentile in milliseconds.
    private static func latency(_ median: UInt64, p99: UInt64) -> LatencyPolicy {
        LatencyPolicy(.lognormal(median: median * 1_000_000, p99: p99 * 1_000_000))
    }
}

// MARK: - Demo answers that misbehave

/// One misbehaviour of a demo rule, and the answers that show it.
package struct Misbehaviour: Sendable, Equatable {
    /// The raw value is the word of configurations and of Drydock-Demo. New kinds are added at the end: the position of a
    /// kind is part of its draws.
    package enum Kind: String, Sendable, CaseIterable {
        /// Content-Length of an answer to HEAD is one more than that of the answer to GET.
        case headLength = "head_length"
        /// The entity tag of an answer to HEAD differs from that of the answer to GET.
        case headETag = "head_etag"
        /// The answer to HEAD is a 404, although that to GET is a success.
        case headStatus = "head_status"
        /// The entity tag is one that no other answer has.
        case etagFlips = "etag_flips"
        /// The answer is a 200 with the whole content, although the conditions of the request ask for a 304.
        case no304 = "no_304"
        /// A 304 has no validator.
        case bare304 = "bare_304"
        /// Vary has the member `*`.
        case varyStar = "vary_star"
        /// Date is not the time of the answer.
        case date
        /// There is an Age, although no cache had the answer.
        case age

        /// Whether the kind needs a number of seconds in a configuration.
        package var takesTime: Bool { self == .date || self == .age }
    }

    package var kind: Kind
    /// The share of answers that show it, 0...1.
    package var chance: Double
    /// The divisor of the numbers of the answers that show it, counted by method and target; nil for all.
    package var every: Int?
    /// The seconds by which Date is ahead (`date`), or the value of Age (`age`); 0 for other kinds.
    package var seconds: Int64

    package init(_ kind: Kind, chance: Double = 1, every: Int? = nil, seconds: Int64 = 0) {
        self.kind = kind
        self.chance = chance
        self.every = every
        self.seconds = seconds
    }
}
