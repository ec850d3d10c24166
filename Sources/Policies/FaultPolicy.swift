// What goes wrong on purpose, as a configuration chooses it: between an answer and its client, and in the content of
// demo answers.

/// One rule of `faults`: when it acts, and what it does then. Times are nanoseconds.
package struct FaultPolicy: Sendable, Equatable {
    /// The rule's name, which is part of every draw's key, and stands in Drydock-Demo.
    package var name: String
    /// Another seed gives other draws for the same requests.
    package var seed: UInt64
    /// The share of requests that it acts on, 0...1.
    package var chance: Double
    /// Which answers it acts on.
    package var points: Set<FaultPoint>
    /// Whether the origin is asked where the rule leaves nothing of its answer.
    package var origin: FaultOrigin
    /// How many of the first requests of a path the rule acts on; nil means all.
    package var first: Int?
    /// The rule acts on each request of a path whose number this divides; nil means all.
    package var every: Int?
    /// How much later the answer begins; nil: it does not.
    package var latency: LatencyPolicy?
    /// The status that is sent in place of the answer; nil: the answer's own.
    package var status: Int?
    /// With `status`: the range from which the value of Retry-After is drawn; nil if there is no such field.
    package var retryAfter: ClosedRange<UInt64>?
    /// With `status`: the absolute path of the body; nil for an empty one.
    package var file: String?
    /// What happens to the bytes; nil: nothing.
    package var wire: WireFault?
    /// How slowly the body goes out; nil: as fast as the client reads.
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

    /// The client sees nothing of the answer that there would be.
    package var leavesNothing: Bool { status != nil || wire?.leavesNothing ?? false }

    /// Where the rule acts, the origin is not asked.
    package var sparesOrigin: Bool { origin == .spare && leavesNothing && points.contains(.miss) }
}

/// Whether an origin is asked whose answer nobody would see.
package enum FaultOrigin: String, Sendable, Hashable, CaseIterable {
    /// The origin is not asked: what a client repeats after the fault is done once.
    case spare
    /// The origin is asked: the answer is lost on its way, and a client that repeats its request has it done twice.
    case ask
}

/// Where an answer comes from, as far as faults tell answers apart.
package enum FaultPoint: String, Sendable, Hashable, CaseIterable {
    /// Stored, and fresh.
    case hit
    /// Stored and stale, or what stands in for an answer of the origin.
    case stale
    /// The answer comes from the origin, or says why the origin has given none.
    case miss
    /// Stored, after the origin has said that it still holds.
    case revalidate
    case demo
}

/// What goes wrong with the bytes of an answer over HTTP/1.1. After each of them the connection ends.
package enum WireFault: Sendable, Hashable {
    /// The connection is reset after so many bytes of content; nil: before the first byte of the answer.
    case reset(after: Int?)
    /// The connection ends without a byte.
    case empty
    /// The connection ends after so many bytes of content, whatever the head has promised.
    case close(after: Int)
    /// After this many bytes of content comes a chunk whose size is no number.
    case badChunk(after: Int)
    /// The head stops in its middle, for so many nanoseconds, and the connection ends; nil: until the client leaves.
    case stalledHead(for: UInt64?)
    /// The content stops after so many bytes, for so many nanoseconds, and the connection ends; nil: until the client
    /// leaves.
    case stalledBody(after: Int, for: UInt64?)
    /// Bytes that are no HTTP, in place of the answer or behind its status line.
    case garbage(afterStatusLine: Bool)
    /// Content-Length says so many bytes more than there are, or fewer.
    case wrongLength(by: Int)

    /// Nothing of the answer goes out, not even its status.
    package var leavesNothing: Bool {
        switch self {
        case .reset(after: nil), .empty, .garbage(afterStatusLine: false): true
        default: false
        }
    }

    /// Its kind as configuration, logs and metrics name it.
    package var kind: Kind {
        switch self {
        case .reset: .reset
        case .empty: .empty
        case .close: .close
        case .badChunk: .badChunk
        case .stalledHead: .stalledHead
        case .stalledBody: .stalledBody
        case .garbage: .garbage
        case .wrongLength: .wrongLength
        }
    }

    package enum Kind: String, Sendable, CaseIterable {
        case reset, empty, close
        case badChunk = "bad_chunk"
        case stalledHead = "stalled_head"
        case stalledBody = "stalled_body"
        case garbage
        case wrongLength = "wrong_length"
    }
}

/// How slowly the body of an answer goes out.
package enum Pace: Sendable, Hashable {
    /// The number of bytes a second, at least 1.
    case rate(Int)
    /// The number of pieces, at least 1, and the nanoseconds after which the last of them goes out.
    case dribble(chunks: Int, over: UInt64)
}

/// Rules of faults that every configuration may name.
package enum FaultPreset: String, Sendable, CaseIterable {
    case flakyMobile = "flaky-mobile"
    case overloaded
    case thirdGeneration = "3g"

    /// The rules of all of them, by their names.
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

    /// The latency of a preset; median and 99th percentile in milliseconds.
    private static func latency(_ median: UInt64, p99: UInt64) -> LatencyPolicy {
        LatencyPolicy(.lognormal(median: median * 1_000_000, p99: p99 * 1_000_000))
    }
}

// MARK: - Demo answers that misbehave

/// One thing that a demo rule gets wrong, and in which of its answers.
package struct Misbehaviour: Sendable, Equatable {
    /// The raw value is the word of configurations and of Drydock-Demo. New kinds stand at the end: the place of a kind
    /// is a part of what it draws.
    package enum Kind: String, Sendable, CaseIterable {
        /// Content-Length of an answer to HEAD is that of the answer to GET, and one byte more.
        case headLength = "head_length"
        /// The entity tag of an answer to HEAD is not that of the answer to GET.
        case headETag = "head_etag"
        /// A success of GET is a 404 to HEAD.
        case headStatus = "head_status"
        /// The entity tag is one that no other answer has.
        case etagFlips = "etag_flips"
        /// 200 with the whole content, where the conditions of the request ask for a 304.
        case no304 = "no_304"
        /// A 304 has no validator.
        case bare304 = "bare_304"
        /// Vary has the member `*`.
        case varyStar = "vary_star"
        /// Date is not the time of the answer.
        case date
        /// There is an Age, though no cache had the answer.
        case age

        /// The number in a configuration that it needs.
        package var takesTime: Bool { self == .date || self == .age }
    }

    package var kind: Kind
    /// The share of answers that it is in, 0...1.
    package var chance: Double
    /// The misbehaviour is in each answer whose number this divides, counted by method and target; nil means all.
    package var every: Int?
    /// With `date`, how far the field is ahead; with `age`, what the field says; otherwise 0.
    package var seconds: Int64

    package init(_ kind: Kind, chance: Double = 1, every: Int? = nil, seconds: Int64 = 0) {
        self.kind = kind
        self.chance = chance
        self.every = every
        self.seconds = seconds
    }
}
