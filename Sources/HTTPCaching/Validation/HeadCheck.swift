// Checks by HEAD: when HEAD is the cheaper check, and what its answer shows about the stored response to GET (RFC 9111
// section 4.3.5), also in library mode.

package import HTTPWire

/// The difference that a HEAD answer showed; the raw value is what diagnostics print.
package enum HeadChange: String, Sendable, CaseIterable {
    case etag
    case lastModified = "last-modified"
    case length
    case status
    /// No validator is in both heads: equal lengths prove nothing.
    case noValidator = "no-validator"
}

package enum HeadVerdict: Sendable, Equatable {
    /// The stored response is current; its head has the fields of the answer now.
    case unchanged(StoredHead)
    /// The stored response is not current, or cannot be shown to be, and is fetched.
    case changed(HeadChange)
    /// The answer is a 404 or 410.
    case gone(Int)
    /// The answer is any other error status: it shows nothing about the stored response, nor whether a GET would be
    /// refused, too.
    case failed(Int)
}

extension Caching {
    /// What `headAnswer`, the answer to a HEAD with the conditions of `revalidation`, shows about `stored`.
    /// - Parameter times: the times of the answer.
    package static func judgeHead(
        stored: StoredHead,
        headAnswer: ResponseHead,
        times: ResponseTimes,
        request: RequestHead? = nil,
        policy: CachePolicy = CachePolicy()
    ) -> HeadVerdict {
        let now = times.responseTime
        let origin = stored.asOrigin
        func updated() -> StoredHead {
            freshened(
                stored: stored,
                by: headAnswer,
                times: times,
                request: request,
                policy: policy,
                byHead: true
            )
        }
        let status = headAnswer.status
        switch status {
        case 304:
            // The stored response matches by itself, but the answer may be about another one (section 4.3.4).
            if identified(by: headAnswer.fields, among: [origin]).isEmpty {
                return .changed(entityTag(headAnswer.fields) == nil ? .lastModified : .etag)
            }
            return .unchanged(updated())
        case stored.status: break
        case 404, 410: return .gone(status)
        case 200..<400: return .changed(.status)
        default: return .failed(status)
        }
        let difference =
            policy.mode == .library
            ? libraryChange(from: origin, to: headAnswer, comparing: policy.compare, now: now)
            : change(from: origin, to: headAnswer, now: now)
        if let difference { return .changed(difference) }
        return .unchanged(updated())
    }

    /// The difference between the stored response and the answer; nil if there is none. Every validator of the answer
    /// must match: one that the stored response lacks may be that of another representation, and a strong tag does not
    /// identify bytes that had only a weak one.
    private static func change(from stored: StoredHead, to answer: ResponseHead, now: Int64) -> HeadChange? {
        var matched = false
        if let new = entityTag(answer.fields) {
            guard let old = entityTag(stored.fields), new.isWeak || !old.isWeak else { return .etag }
            guard old.matchesWeakly(new) else { return .etag }
            matched = true
        }
        if let new = answer.fields.first(.lastModified) {
            guard let old = stored.fields.first(.lastModified) else { return .lastModified }
            let oldDate = HTTPDate.parse(old, now: now)
            guard oldDate != nil ? oldDate == HTTPDate.parse(new, now: now) : old == new else { return .lastModified }
            matched = matched || oldDate != nil
        }
        if let new = contentLength(answer.fields),
            let old = stored.bodyLength, new != old
        {
            return .length
        }
        return matched ? nil : .noValidator
    }
}

// MARK: - HEAD or a conditional GET

/// The observed behaviour of one origin for the two ways to check a stored response; at first nothing is known.
package struct OriginCapabilities: Sendable, Equatable {
    package enum Support: String, Sendable, CaseIterable {
        case unknown, honoured, refused
    }

    /// Whether the origin answers HEAD as it would answer GET.
    package var head: Support
    /// Whether the origin answers 304 if a condition holds.
    package var conditional: Support
    /// The time when HEAD last failed although GET did not, in Unix seconds; nil if that was not observed.
    package private(set) var headFailedAt: Int64?

    /// The seconds after such a failure for which the origin is not asked by HEAD.
    package static let headPause: Int64 = 300

    package init(head: Support = .unknown, conditional: Support = .unknown) {
        self.head = head
        self.conditional = conditional
    }

    /// Learns from the answer to a HEAD, and from the verdict of `Caching.judgeHead`.
    /// - Parameter hadConditions: whether the HEAD carried conditions that a 304 could have answered.
    package mutating func noteHead(status: Int, verdict: HeadVerdict, hadConditions: Bool = true) {
        switch verdict {
        case .unchanged:
            noteHonouredHead()
            // An origin that answers the same validators without a 304 ignores conditions.
            guard hadConditions else { return }
            if status == 304 { conditional = .honoured } else if conditional == .unknown { conditional = .refused }
        // Only GET can show whether HEAD is at fault: see `noteFailedHead(now:)`.
        case .changed(.noValidator), .gone, .failed: break
        case .changed: noteHonouredHead()
        }
    }

    private mutating func noteHonouredHead() { (head, headFailedAt) = (.honoured, nil) }

    /// Learns that HEAD has failed, and the GET after it has not.
    package mutating func noteFailedHead(now: Int64) { (head, headFailedAt) = (.refused, now) }

    /// The capabilities at `now`: HEAD is tried again when the pause is over, or when the clock was set back.
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

    /// The fields of an answer to compare with those of a stored response; for a mapped document, in the form that its
    /// origin's are kept in.
    private static func validators(of stored: StoredHead, _ answer: ResponseHead) -> Fields {
        guard stored.mapped != nil else { return answer.fields }
        return MappedOrigin(answer.fields)?.fields ?? answer.fields
    }
}

extension Caching {
    /// The body length in bytes above which `auto` checks by HEAD first, unless the origin is known to answer 304.
    package static let headCheckLength: Int64 = 16384

    /// The way in which the policy checks a stored response of `length` bytes (nil if unknown); nil if it never asks.
    ///
    /// With `auto`, a conditional GET takes one round trip and brings the body along if it has changed; a HEAD takes a
    /// second one for that, but costs no needless body if the origin ignores conditions.
    package static func chooseCheck(policy: CachePolicy, capabilities: OriginCapabilities, length: Int64?)
        -> Revalidation.Kind?
    {
        switch policy.revalidate {
        case .never: nil
        case .conditional: .conditional
        case .head: capabilities.head == .refused ? .conditional : .head
        case .automatic:
            if capabilities.head == .refused || capabilities.conditional == .honoured {
                .conditional
            } else {
                (length ?? .max) > headCheckLength ? .head : .conditional
            }
        }
    }

    /// Whether both have the same strong entity tag, or have no tag and the same modification date.
    static func hasSameValidators(_ old: Fields, _ new: Fields) -> Bool {
        if let oldTag = entityTag(old), let newTag = entityTag(new) { return oldTag.matchesStrongly(newTag) }
        guard let date = lastModified(old, now: 0) else { return false }
        return date == lastModified(new, now: 0)
    }
}

// MARK: - Library mode

// Checks in library mode: a plain HEAD whose answer is compared, for origins whose fields say little.
extension Caching {
    /// The check of `stored` in library mode; nil if it is fetched anew: nothing is stored, the policy never asks, or
    /// the request has `no-cache`.
    ///
    /// A HEAD carries no conditions: an origin answers If-Modified-Since with 304 also if its copy has become older,
    /// and here any difference counts. A conditional GET carries the validators that the policy compares, and is not
    /// made without one.
    static func libraryCheck(
        _ request: RequestHead,
        _ stored: StoredHead?,
        _ policy: CachePolicy,
        _ capabilities: OriginCapabilities,
        byGet: Bool
    ) -> Revalidation? {
        guard let stored, !CacheControl(request: request.fields).noCache,
            let chosen = chooseCheck(policy: policy, capabilities: capabilities, length: stored.bodyLength)
        else { return nil }
        if chosen == .head, !byGet { return Revalidation(kind: .head, conditions: Fields()) }
        var conditions = Fields()
        if policy.compare.contains(.etag), entityTag(stored.fields) != nil, let tag = stored.fields.first(.etag) {
            conditions.set(.ifNoneMatch, tag)
        } else if policy.compare.contains(.lastModified) {
            conditions = dateCondition(stored)
        }
        return conditions.isEmpty ? nil : Revalidation(kind: .conditional, conditions: conditions)
    }

    /// The difference that `answer`, the answer to a HEAD, shows from the stored response in library mode. At least one
    /// of the compared fields must be in both, and each that is in both must be equal. A field that only one of them
    /// has decides nothing, and the next rule does.
    static func libraryChange(
        from stored: StoredHead,
        to answer: ResponseHead,
        comparing rules: [ComparisonRule],
        now: Int64
    ) -> HeadChange? {
        var matched = false
        for rule in ComparisonRule.allCases where rules.contains(rule) {
            switch rule {
            case .etag:
                guard let old = entityTag(stored.fields), let new = entityTag(answer.fields) else { continue }
                guard old.matchesWeakly(new) else { return .etag }
            case .lastModified:
                guard let old = stored.fields.first(.lastModified), let new = answer.fields.first(.lastModified) else {
                    continue
                }
                guard isSameDate(old, new, now: now) else { return .lastModified }
            case .length:
                // Some origins code their answers to GET, and tell HEAD the length without the coding.
                guard let old = stored.bodyLength, let new = contentLength(answer.fields),
                    hasSameCodings(stored.fields, answer.fields)
                else { continue }
                guard old == new else { return .length }
            }
            matched = true
        }
        return matched ? nil : .noValidator
    }

    private static func hasSameCodings(_ one: Fields, _ other: Fields) -> Bool {
        guard one.contains(.contentEncoding) || other.contains(.contentEncoding) else { return true }
        return one.combined(.contentEncoding)?.lowercased() == other.combined(.contentEncoding)?.lowercased()
    }

    /// Whether two dates, in any of the forms of RFC 9110 section 5.6.7, are the same moment; a value that is not a
    /// date is compared as it was sent.
    private static func isSameDate(_ old: String, _ new: String, now: Int64) -> Bool {
        let oldDate = HTTPDate.parse(old, now: now)
        let newDate = HTTPDate.parse(new, now: now)
        return oldDate == nil && newDate == nil ? old == new : oldDate == newDate
    }
}
