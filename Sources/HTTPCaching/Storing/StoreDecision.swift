// Decides whether a response may be stored, and gives the reason (RFC 9111 section 3), also for a response that
// redirects led to.

package import HTTPWire

/// The reason why a response is worth storing; the raw value is what diagnostics print.
package enum StoreReason: String, Sendable, CaseIterable {
    /// The response declares its freshness.
    case explicit
    /// The configuration gives the freshness lifetime.
    case ttl
    /// The response is fresh for a tenth of the time since its last modification.
    case heuristic
    /// The response is never fresh, but its validator lets it be checked.
    case validator
    /// Library mode stores successful responses, for the lifetime that it gives them.
    case library
}

/// The reason why a response is not stored; the raw value is what `Cache-Status` prints as `detail`.
package enum StoreRefusal: String, Sendable, CaseIterable, Error {
    case cacheOff = "cache-off"
    case method
    /// The response is an answer to POST without explicit freshness, or its Content-Location is not the requested URL.
    case post
    case interim
    case status206 = "status-206"
    case status304 = "status-304"
    /// The status is 412 or 416, which answers the conditions of one request only.
    case statusConditional = "status-conditional"
    /// The status is 428, 429, 431 or 511, which no cache may store: it is for one client.
    case statusNeverStored = "status-never-stored"
    /// The status is not heuristically cacheable, and the response has no explicit freshness.
    case statusNotCacheable = "status-not-cacheable"
    case mustUnderstand = "must-understand"
    case noStore = "no-store"
    case requestNoStore = "request-no-store"
    case `private` = "private"
    case authorization
    case varyStar = "vary-star"
    case varyInvalid = "vary-invalid"
    /// The request has a field that some origins treat as one that Vary names, such as X_Name for X-Name.
    case varyUnderscore = "vary-underscore"
    case setCookieHeuristic = "set-cookie-heuristic"
    /// The response has a Set-Cookie field, and the configuration says `set_cookie: skip`.
    case setCookie = "set-cookie"
    /// The request has Cookie, and the response does not say itself how long it is fresh, or the configuration says
    /// `cookies: never`.
    case requestCookie = "request-cookie"
    /// The body is shorter than the configured `min_length`.
    case tooShort = "too-short"
    /// The status is not a success: library mode stores others only by `ttl_by_status`, and no mode stores a status
    /// that the configured `success` leaves out.
    case statusNotSuccessful = "status-not-successful"
    case noFreshnessAndNoValidator = "no-freshness-and-no-validator"
    /// The response says that it is not fresh, or that it has to be validated before each use, and has no validator.
    case noValidator = "no-validator"
    /// The response is a server error, and a stored response may still answer.
    case errorOverStored = "error-over-stored"
    /// The response is an event stream, which has no end.
    case eventStream = "event-stream"
    /// Other parsers may find the end of the message elsewhere (`ResponseHead.isOddlyFramed`).
    case oddFraming = "odd-framing"
    /// The status is above 599, which belongs to no class of RFC 9110.
    case statusUnknown = "status-unknown"
}

package enum StoreDecision: Sendable, Equatable {
    case store(StoreReason)
    case refuse(StoreRefusal)
}

extension Caching {
    /// Whether the response to `request` may be stored (RFC 9111 section 3); it counts as one that arrived as soon as
    /// it was asked for. `url` is the absolute URL of the request: without it no answer to POST is stored.
    package static func decideStore(
        request: RequestHead,
        response: ResponseHead,
        policy: CachePolicy,
        times: ResponseTimes,
        url: String? = nil
    ) -> StoreDecision {
        decideStore(
            request.method,
            request.fields,
            response: response,
            policy: policy,
            times: times,
            url: url
        )
    }

    /// Whether a response may be stored, by the method and the fields of its request, which are all that counts of it.
    package static func decideStore(
        _ method: Method,
        _ fields: Fields,
        response: ResponseHead,
        policy: CachePolicy,
        times: ResponseTimes,
        url: String? = nil
    ) -> StoreDecision {
        guard policy.mode != .none else { return .refuse(.cacheOff) }
        guard method == .get || method == .post else { return .refuse(.method) }
        if response.isOddlyFramed { return .refuse(.oddFraming) }
        switch response.status {
        case ..<200: return .refuse(.interim)
        case 206: return .refuse(.status206)
        case 304: return .refuse(.status304)
        case 412, 416: return .refuse(.statusConditional)
        case 428, 429, 431, 511: return .refuse(.statusNeverStored)
        case 600...: return .refuse(.statusUnknown)
        default: break
        }
        let now = times.responseTime
        if method == .post, !answersGet(response, policy: policy, now: now, url: url) { return .refuse(.post) }
        if fields.contains(.cacheControl), CacheControl(request: fields).noStore {
            return .refuse(.requestNoStore)
        }
        if response.fields.contains(.vary) {
            let vary = Vary(response.fields)
            if vary.isMalformed { return .refuse(.varyInvalid) }
            if vary.isAny { return .refuse(.varyStar) }
            if vary.isAmbiguous(for: fields) { return .refuse(.varyUnderscore) }
        }
        if policy.minLength > 0, let length = contentLength(response.fields),
            policy.isTooShort(length, status: response.status)
        {
            return .refuse(.tooShort)
        }
        return decideKeep(
            status: response.status,
            fields: response.fields,
            hadAuthorization: fields.contains(.authorization),
            hadCookie: fields.contains(.cookie),
            age: nil,
            times,
            policy: policy
        )
    }

    /// Whether a stored response may stay stored after `freshened` gave it new fields: an origin may withdraw what it
    /// allowed before.
    /// - Parameter hadCookie: whether the new fields are those of an answer to a request with Cookie.
    package static func decideKeep(
        _ stored: StoredHead,
        policy: CachePolicy,
        hadCookie: Bool = false
    ) -> StoreDecision {
        guard policy.mode != .none else { return .refuse(.cacheOff) }
        guard !stored.varyNames.contains("*") else { return .refuse(.varyStar) }
        return decideKeep(
            status: stored.status,
            fields: stored.fields,
            hadAuthorization: stored.hadAuthorization,
            hadCookie: hadCookie,
            age: stored.initialAge,
            ResponseTimes(at: stored.responseTime),
            policy: policy
        )
    }

    /// Whether `freshened`, a stored response with the fields of an answer to `request`, may be stored for all users.
    /// The answer to a request with Authorization updates the stored response only if a response with its directives
    /// could be stored (RFC 9111 section 3.5); otherwise it counts for this one request. The same holds for a request
    /// with Cookie, as ``CookiePolicy`` says. An answer to a request with `no-store` updates nothing (section 5.2.1.5).
    package static func mayShareUpdate(_ freshened: StoredHead, request: RequestHead, policy: CachePolicy) -> Bool {
        if CacheControl(request: request.fields).noStore { return false }
        let hadCookie = request.fields.contains(.cookie)
        guard request.fields.contains(.authorization) || hadCookie else { return true }
        var freshened = freshened
        if request.fields.contains(.authorization) {
            freshened.hadAuthorization = true
        }
        if case .store = decideKeep(freshened, policy: policy, hadCookie: hadCookie) { return true }
        return false
    }

    private static func decideKeep(
        status: Int,
        fields: Fields,
        hadAuthorization: Bool,
        hadCookie: Bool,
        age: Int64?,
        _ times: ResponseTimes,
        policy: CachePolicy
    ) -> StoreDecision {
        let decision = decideKeep(
            status: status,
            fields: fields,
            hadAuthorization: hadAuthorization,
            age: age,
            times,
            policy: policy
        )
        guard hadCookie, policy.cookies != .any, case .store = decision else { return decision }
        let control = ResponseControl(fields, policy: policy)
        let explicit = explicitLifetime(control, fields: fields, responseTime: times.responseTime)
        let saysItself = explicit?.hasExpiry ?? false
        return saysItself && policy.cookies == .explicit ? decision : .refuse(.requestCookie)
    }

    /// - Parameter age: the age on arrival in seconds; nil to compute it if it decides, for a response that arrived at
    ///   once.
    private static func decideKeep(
        status: Int,
        fields: Fields,
        hadAuthorization: Bool,
        age: Int64?,
        _ times: ResponseTimes,
        policy: CachePolicy
    ) -> StoreDecision {
        if policy.success != nil, !policy.isSuccess(status) { return .refuse(.statusNotSuccessful) }
        let (control, responseTime) = (ResponseControl(fields, policy: policy), times.responseTime)
        if control.directives.mustUnderstand, !StatusCode.isUnderstood(status) { return .refuse(.mustUnderstand) }
        if control.forbidsStoring { return .refuse(.noStore) }
        if control.directives.private { return .refuse(.private) }
        if hadAuthorization, !control.allowsAuthorized { return .refuse(.authorization) }
        if isEventStream(fields) { return .refuse(.eventStream) }

        if policy.setCookie == .skip, fields.contains(.setCookie) { return .refuse(.setCookie) }

        let explicit = explicitLifetime(control, fields: fields, responseTime: responseTime)
        let lifetime = lifetime(control, status: status, fields: fields, responseTime: responseTime, policy: policy)
        if explicit == nil, policy.setCookie != .strip, fields.contains(.setCookie),
            !control.unstorableFields.contains("set-cookie")
        {
            return .refuse(.setCookieHeuristic)
        }
        if policy.mode == .library {
            let isKept = StatusCode.isSuccessful(status) || policy.ttlByStatus[status] != nil
            return isKept ? .store(.library) : .refuse(.statusNotSuccessful)
        }
        // A response needs explicit freshness, public, or a heuristically cacheable status (RFC 9111 section 3), or a
        // configured ttl.
        if explicit == nil, !control.directives.public, !StatusCode.isHeuristicallyCacheable(status),
            policy.ttlByStatus[status] == nil
        {
            return .refuse(.statusNotCacheable)
        }
        let age =
            age ?? initialAge(fields, ResponseTimes(at: responseTime, ahead: times.ahead))
        if lifetime.seconds > age, !control.requiresValidation(status: status, policy: policy) {
            switch lifetime.source {
            case .ttl, .ttlByStatus: return .store(.ttl)
            case .heuristic: return .store(.heuristic)
            default: return .store(.explicit)
            }
        }
        if hasValidator(fields) { return .store(.validator) }
        // A response that is never fresh and cannot be checked is still stored if the origin or the configuration lets
        // it be used stale (RFC 5861).
        let directives = control.directives
        if lifetime.hasExpiry, control.staleProhibition(status: status, policy: policy) == nil,
            (directives.staleWhileRevalidate ?? policy.staleWhileRevalidate) > 0 || (directives.staleIfError ?? 0) > 0
        {
            return .store(.explicit)
        }
        let wantsValidation = explicit != nil || control.requiresValidation(status: status, policy: policy)
        return .refuse(wantsValidation ? .noValidator : .noFreshnessAndNoValidator)
    }

    /// Whether the answer to a POST of `url` is the representation that a GET would bring (RFC 9110 sections 8.7 and
    /// 9.3.3). Of the successful statuses only 200 can be: the others tell what the POST has done.
    static func answersGet(_ response: ResponseHead, policy: CachePolicy, now: Int64, url: String?) -> Bool {
        guard let url, response.status == 200, response.fields.all(.contentLocation).count == 1,
            let location = response.fields.first(.contentLocation), refers(location, to: url)
        else { return false }
        let control = ResponseControl(response.fields, policy: policy)
        guard let explicit = explicitLifetime(control, fields: response.fields, responseTime: now) else { return false }
        return explicit.hasExpiry
    }

    private static func isEventStream(_ fields: Fields) -> Bool {
        guard let type = fields.values(.contentType).first?.split(separator: ASCII.semicolon).first else {
            return false
        }
        return ASCII.equalIgnoringCase(ASCII.trim(type), "text/event-stream".utf8)
    }
}

// MARK: - Redirects

/// The limits that the redirects on the way to a response set for it: under the URL that was asked for, it may not be
/// stored or used for longer than each of them allows. A value, one for each request that is redirected.
package struct RedirectTerms: Sendable, Equatable {
    /// The fate of a response that a temporary redirect led to which declares no lifetime (RFC 9110 section 15.4: the
    /// next one may lead elsewhere).
    package enum Temporary: Sendable {
        /// The response is not stored.
        case unstored
        /// The response is stored, and checked before each use by its entity tag.
        case checked
    }

    private let temporary: Temporary
    private var isStorable = true
    private var needsCheck = false
    private var mustRevalidate = false
    /// The end of freshness in Unix seconds; nil if no redirect sets one.
    private var freshUntil: Int64?
    private var vary: [String] = []

    package init(temporary: Temporary = .unstored) { self.temporary = temporary }

    /// Takes a redirect into account.
    /// - Parameter fields: the fields of the request that it answers.
    package mutating func note(_ redirect: ResponseHead, to fields: Fields, policy: CachePolicy, times: ResponseTimes) {
        vary += redirect.fields.all(.vary)
        guard policy.mode != .none, isStorable else { return }
        let isPermanent = redirect.status == 301 || redirect.status == 308
        var (policy, judged) = (policy, redirect)
        policy.minLength = 0
        // Library mode stores successful responses, and the redirect is a part of one.
        if policy.mode == .library { judged.status = 200 }
        switch Caching.decideStore(.get, fields, response: judged, policy: policy, times: times) {
        case .store: break
        case .refuse(let refusal):
            let isSilent = [.noFreshnessAndNoValidator, .noValidator, .statusNotCacheable].contains(refusal)
            guard isSilent, !fields.contains(.cookie) || policy.cookies == .any, isPermanent || temporary == .checked
            else {
                isStorable = false
                return
            }
            if !isPermanent { needsCheck = true }
        }
        if policy.mode == .standard { limit(redirect, isPermanent: isPermanent, policy, times) }
    }

    private mutating func limit(
        _ redirect: ResponseHead,
        isPermanent: Bool,
        _ policy: CachePolicy,
        _ times: ResponseTimes
    ) {
        let control = ResponseControl(redirect.fields, policy: policy)
        if control.requiresValidation(status: redirect.status, policy: policy) { needsCheck = true }
        if control.staleProhibition(status: redirect.status, policy: policy) != nil { mustRevalidate = true }
        let lifetime = Caching.lifetime(
            control,
            status: redirect.status,
            fields: redirect.fields,
            responseTime: times.responseTime,
            policy: policy
        )
        // A permanent redirect without a lifetime of its own leaves the lifetime to the answer.
        if isPermanent || needsCheck, lifetime.source == .none || lifetime.source == .heuristic { return }
        let left = max(0, lifetime.seconds - Caching.initialAge(redirect.fields, times))
        freshUntil = min(freshUntil ?? .max, times.responseTime + left)
    }

    /// Adds to the answer to the last request the limits of the redirects, so that this store and every other one
    /// downstream obeys them.
    package func apply(to answer: inout ResponseHead, policy: CachePolicy, times: ResponseTimes) {
        for names in vary { answer.fields.appendMember(.vary, names) }
        guard policy.mode != .none else { return }
        if !isStorable { return Caching.forbidStoring(&answer.fields, policy: policy) }
        guard policy.mode == .standard else { return }
        if needsCheck { Self.say("no-cache", in: &answer.fields, policy) }
        if mustRevalidate { Self.say("must-revalidate", in: &answer.fields, policy) }
        guard let freshUntil else { return }
        // The age is raised by what the redirect takes from the lifetime, whichever directive gives that.
        let lifetime = Caching.lifetime(
            ResponseControl(answer.fields, policy: policy),
            status: answer.status,
            fields: answer.fields,
            responseTime: times.responseTime,
            policy: policy
        )
        let age = lifetime.seconds - max(0, freshUntil - times.responseTime)
        if age > Caching.initialAge(answer.fields, times) { answer.fields.set(.age, String(age)) }
    }

    /// Adds a directive to Cache-Control, and to the targeted fields that stand in for it.
    private static func say(_ directive: String, in fields: inout Fields, _ policy: CachePolicy) {
        fields.appendMember(.cacheControl, directive)
        for name in policy.targetedFields {
            if let value = fields.combined(name) { fields.set(name, "\(value), \(directive)") }
        }
    }
}

extension Caching {
    /// Marks an answer as one that is not to be stored, for this store and every other one downstream.
    package static func forbidStoring(_ fields: inout Fields, policy: CachePolicy) {
        // `must-understand` would lift a `no-store` beside it.
        let lifts = ResponseControl(fields, policy: policy).directives.mustUnderstand
        let added = lifts ? "private, no-store" : "no-store"
        fields.appendMember(.cacheControl, added)
        for name in policy.targetedFields {
            if let value = fields.combined(name) { fields.set(name, "\(value), \(added)") }
        }
        // A private cache would store a `private` response.
        if lifts, !policy.isShared { fields.appendMember(.vary, "*") }
    }
}
