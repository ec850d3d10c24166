// Which of HEAD and conditional GET checks a stored response at the least cost, by what its origin was seen to do.

package import HTTPWire

/// What one origin was seen to do with the two ways to check a stored response. Begins with nothing known.
package struct OriginCapabilities: Sendable, Equatable {
    package enum Support: String, Sendable, CaseIterable {
        case unknown, honoured, refused
    }

    /// Answers HEAD as it would answer GET.
    package var head: Support
    /// Answers 304 where a condition holds.
    package var conditional: Support
    /// When HEAD last failed where GET did not, Unix seconds; nil where that was not seen.
    package private(set) var headFailedAt: Int64?

    /// Seconds for which an origin is not asked by HEAD after that.
    package static let headPause: Int64 = 300

    package init(head: Support = .unknown, conditional: Support = .unknown) {
        self.head = head
        self.conditional = conditional
    }

    /// Learns from the answer to a HEAD, and from what `Caching.judgeHead` made of it.
    /// - Parameter hadConditions: the HEAD carried conditions that a 304 could have answered.
    package mutating func noteHead(status: Int, verdict: HeadVerdict, hadConditions: Bool = true) {
        switch verdict {
        case .unchanged:
            noteHonouredHead()
            // The same validators and yet no 304: it does not look at conditions.
            guard hadConditions else { return }
            if status == 304 { conditional = .honoured } else if conditional == .unknown { conditional = .refused }
        // Only GET can tell whether that is HEAD's fault: see `noteFailedHead(now:)`.
        case .changed(.noValidator), .gone, .failed: break
        case .changed: noteHonouredHead()
        }
    }

    private mutating func noteHonouredHead() { (head, headFailedAt) = (.honoured, nil) }

    /// HEAD has failed, and the GET after it has not.
    package mutating func noteFailedHead(now: Int64) { (head, headFailedAt) = (.refused, now) }

    /// The same at `now`: HEAD is tried again when its time has come, and when the clock was set back.
    package func current(at now: Int64) -> OriginCapabilities {
        guard let headFailedAt, !(0..<Self.headPause).contains(now &- headFailedAt) else { return self }
        return OriginCapabilities(conditional: conditional)
    }

    /// Learns from the answer to a conditional GET for `stored`.
    package mutating func noteConditional(stored: StoredHead, answer: ResponseHead) {
        if answer.status == 304 {
            conditional = .honoured
        } else if answer.status == stored.status,
            Caching.hasSameValidators(stored.asOrigin.fields, Self.validators(of: stored, answer))
        {
            conditional = .refused
        }
    }

    /// The fields of an answer that are to be compared with those of a stored response: of a mapped document, what its
    /// origin said.
    private static func validators(of stored: StoredHead, _ answer: ResponseHead) -> Fields {
        guard stored.mapped != nil else { return answer.fields }
        return MappedOrigin(answer.fields)?.fields ?? answer.fields
    }
}

extension Caching {
    /// In bytes: with `auto`, what is longer is checked by HEAD first, unless the origin is known to answer 304.
    package static let headCheckLength: Int64 = 16384

    /// How the policy has a stored response of `length` bytes checked (nil: unknown); nil where it never asks.
    ///
    /// With `auto`: a conditional GET takes one round trip and brings the body along where it has changed; a HEAD takes
    /// a second one for that, but costs no needless body where the origin ignores conditions.
    package static func chooseCheck(policy: CachePolicy, capabilities: OriginCapabilities, length: Int64?)
        -> Revalidation.Kind?
    {
        switch policy.revalidate {
        case .never: nil
        case .conditional: .conditional
        case .head: capabilities.head == .refused ? .conditional : .head
        case .auto:
            if capabilities.head == .refused || capabilities.conditional == .honoured {
                .conditional
            } else {
                (length ?? .max) > headCheckLength ? .head : .conditional
            }
        }
    }

    /// Both have the same strong entity tag, or no tag and the same modification date.
    static func hasSameValidators(_ old: Fields, _ new: Fields) -> Bool {
        if let oldTag = entityTag(old), let newTag = entityTag(new) { return oldTag.matchesStrongly(newTag) }
        guard let date = lastModified(old, now: 0) else { return false }
        return date == lastModified(new, now: 0)
    }
}
