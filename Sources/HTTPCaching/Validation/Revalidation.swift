// Validation requests: what they carry (RFC 9111 section 4.3.1), what a 304 to one changes, and which of several
// variants it updates (section 4.3.4).

package import HTTPWire

/// A request that checks a stored response.
package struct Revalidation: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case head
        case conditional
    }

    package var kind: Kind
    /// The If-None-Match and If-Modified-Since with the stored validators, byte for byte.
    package var conditions: Fields

    package init(kind: Kind, conditions: Fields) {
        self.kind = kind
        self.conditions = conditions
    }

    package var method: Method { kind == .head ? .head : .get }

    /// Replaces a request's own conditions and Range by those of the check.
    package func apply(to fields: inout Fields) {
        fields.removeConditions()
        conditions.forEachLine { name, value, _ in fields.append(nameBytes: name, valueBytes: value) }
    }
}

extension Fields {
    /// Removes the conditions of RFC 9110 section 13.1 and Range, so that a response for the store comes in full.
    package mutating func removeConditions() {
        for field in [KnownField.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range] {
            remove(field)
        }
    }
}

extension Caching {
    /// The most bytes of entity tags in one If-None-Match, so that no request grows past the limits of origins.
    static let tagListLimit = 4096

    /// The check of `stored` for `request`; nil if it has no validator, or the policy never asks. In library mode see
    /// ``libraryCheck(_:_:_:_:byGet:)``. `chooseCheck` decides between HEAD and a conditional GET; it is a conditional
    /// GET if the request or the response has `no-cache`, or with `forceConditional`.
    ///
    /// `variants` are other stored responses of the URL: their entity tags are listed, too, so that a 304 can name the
    /// one that is current (RFC 9111 section 4.3.1). Without `stored`, on a Vary miss, only theirs are sent, by a
    /// conditional GET.
    package static func revalidation(
        request: RequestHead,
        stored: StoredHead?,
        variants: [StoredHead] = [],
        policy: CachePolicy,
        capabilities: OriginCapabilities = OriginCapabilities(),
        forceConditional: Bool = false
    ) -> Revalidation? {
        let (stored, variants) = (stored?.asOrigin, variants.map(\.asOrigin))
        if policy.mode == .library {
            return libraryCheck(request, stored, policy, capabilities, byGet: forceConditional)
        }
        guard let chosen = chooseCheck(policy: policy, capabilities: capabilities, length: stored?.bodyLength) else {
            return nil
        }
        let conditions = conditions(stored, variants, policy)
        guard !conditions.isEmpty else { return nil }
        let noCache = stored.map {
            ResponseControl($0.fields, policy: policy).requiresValidation(status: $0.status, policy: policy)
        }
        let asksByHead = chosen == .head && !forceConditional && noCache == false && !isReload(request)
        return Revalidation(kind: asksByHead ? .head : .conditional, conditions: conditions)
    }

    private static func conditions(_ stored: StoredHead?, _ variants: [StoredHead], _ policy: CachePolicy) -> Fields {
        var conditions = Fields()
        var tags: [String] = []
        if let stored {
            if entityTag(stored.fields) != nil, let tag = stored.fields.first(.etag) { tags.append(tag) }
            // A list of tags would keep the origin from looking at the date, which is the only validator here.
            if tags.isEmpty { return dateCondition(stored) }
        }
        var length = tags.reduce(0) { $0 + $1.utf8.count }
        for variant in variants where mayBeNamed(variant, policy) {
            guard let tag = variant.fields.first(.etag), !tags.contains(tag) else { continue }
            length += tag.utf8.count + 2
            guard length <= tagListLimit else { break }
            tags.append(tag)
        }
        guard !tags.isEmpty else { return conditions }
        conditions.set(.ifNoneMatch, tags.joined(separator: ", "))
        if let stored, tags.count == 1, let date = dateCondition(stored).first(.ifModifiedSince) {
            conditions.set(.ifModifiedSince, date)
        }
        return conditions
    }

    static func dateCondition(_ stored: StoredHead) -> Fields {
        var conditions = Fields()
        if lastModified(stored.fields, now: stored.responseTime) != nil, let date = stored.fields.first(.lastModified) {
            conditions.set(.ifModifiedSince, date)
        }
        return conditions
    }

    /// Whether If-None-Match may list a variant's tag: only a quoted tag can be separated from its neighbours, and the
    /// tag of a response for one user must not be shown in the requests of others.
    private static func mayBeNamed(_ variant: StoredHead, _ policy: CachePolicy) -> Bool {
        guard variant.requestMethod == .get, let tag = entityTag(variant.fields), tag.isQuoted else { return false }
        return !variant.hadAuthorization || ResponseControl(variant.fields, policy: policy).allowsAuthorized
    }

    /// `stored` with the fields of a 304 to its conditional request (RFC 9111 section 4.3.4), or of a HEAD answer with
    /// the same validators (section 4.3.5). A changed Vary is taken over only with the `request` whose fields select
    /// from now on.
    /// - Parameters:
    ///   - times: the times of the 304 or the HEAD answer.
    ///   - byHead: whether `notModified` answers a HEAD, whose cookies and content type often differ from those of a
    ///     GET.
    package static func freshened(
        stored: StoredHead,
        by notModified: ResponseHead,
        times: ResponseTimes,
        request: RequestHead? = nil,
        policy: CachePolicy = CachePolicy(),
        byHead: Bool = false
    ) -> StoredHead {
        let responseTime = times.responseTime
        var update = HopByHop.forwardable(notModified.fields, isRequest: false)
        // Another parser may find other lines in this head, so it confirms the response, but none of its fields is
        // stored.
        if notModified.isOddlyFramed { update = Fields() }
        // These fields describe the stored bytes (section 3.2). Age counts once, in the initial age.
        for field in [KnownField.contentLength, .contentEncoding, .contentRange, .age] { update.remove(field) }
        if byHead { for field in [KnownField.setCookie, .contentType] { update.remove(field) } }
        update.removeAll(named: ResponseControl(notModified.fields, policy: policy).unstorableFields)
        if policy.setCookie == .strip || policy.setCookie == .skip { update.remove(.setCookie) }
        if !update.contains(.date) { update.set(.date, HTTPDate.format(DeltaSeconds.clampTime(responseTime))) }
        if request == nil { update.remove(.vary) }

        var result = stored
        if let mapped = stored.mapped {
            // These fields describe the origin's bytes, and the stored ones are others.
            result.mapped = mapped.updated(by: notModified.fields)
            for field in [KnownField.etag, .lastModified, .contentType, .acceptRanges] { update.remove(field) }
            for name in MappedOrigin.digests { update.remove(name) }
        }
        result.fields = merge(stored.fields, update)
        let control = ResponseControl(result.fields, policy: policy)
        // A cookie of the check is kept only if a cookie of the response would have been.
        if update.contains(.setCookie),
            explicitLifetime(control, fields: result.fields, responseTime: responseTime) == nil
        {
            update.remove(.setCookie)
            result.fields = merge(stored.fields, update)
        }
        result.fields.removeAll(named: control.unstorableFields)
        result.fields.keepSetCookie(under: policy)
        if let request, update.contains(.vary) {
            let vary = Vary(update)
            result.varyNames = vary.names
            result.varyFields = vary.selectingFields(of: request.fields)
            result.keepVariantKey()
        }
        result.requestTime = times.requestTime
        result.responseTime = responseTime
        result.validatedAt = responseTime
        result.staleSince = nil
        result.changedSince = nil
        result.receivedAge = receivedAge(notModified.fields)
        result.initialAge = initialAge(notModified.fields, times)
        return result
    }

    /// `stored`, in which the lines of every name in `update` are replaced by those of `update`.
    private static func merge(_ stored: Fields, _ update: Fields) -> Fields {
        var names: Set<String> = []
        update.forEachLine { name, _, _ in names.insert(ASCII.lowercased(name)) }
        var result = stored
        result.removeAll(named: names)
        update.forEachLine { name, value, _ in result.append(nameBytes: name, valueBytes: value) }
        return result
    }
}

// MARK: - Several variants

// The choice among several stored responses under one URL that a 304 updates (RFC 9111 section 4.3.4).
extension Caching {
    /// The indices of the stored responses that a 304 with `notModified` updates, most recent first, among those whose
    /// validators the request `asked` for (RFC 9111 section 4.3.4): with a strong entity tag all that have it; with
    /// weak validators only the most recent that matches; without validators only a response that is the only
    /// candidate.
    ///
    /// Empty if the 304 is about none of them, so that the response has to be fetched without conditions.
    package static func variantsUpdated(
        by notModified: Fields,
        among variants: [StoredHead],
        asked: Revalidation
    ) -> [Int] {
        let variants = variants.map(\.asOrigin)
        let named = variants.indices.filter { isNamed(variants[$0], in: asked.conditions) }
        let chosen = named.map { variants[$0] }
        var hasOtherVariants = false
        if case .tags(let tags)? = EntityTagList(asked.conditions, .ifNoneMatch) {
            // A client's own list may name tags of responses that are not stored.
            hasOtherVariants = tags.contains { tag in !chosen.contains { entityTag($0.fields) == tag } }
        }
        return identified(by: notModified, among: chosen, hasOtherVariants: hasOtherVariants).map { named[$0] }
    }

    /// The indices of the variants that a 304 identifies among those that the request named; with `hasOtherVariants`,
    /// the request also named responses that are not stored.
    static func identified(
        by notModified: Fields,
        among variants: [StoredHead],
        hasOtherVariants: Bool = false
    ) -> [Int] {
        let recent = variants.indices.sorted { isMoreRecent(variants[$0], than: variants[$1]) }
        if let tag = entityTag(notModified) {
            let same = recent.filter { index in
                entityTag(variants[index].fields).map(tag.isWeak ? tag.matchesWeakly : tag.matchesStrongly) ?? false
            }
            return tag.isWeak ? Array(same.prefix(1)) : same
        }
        if let date = lastModified(notModified, now: 0) {
            let same = recent.filter { lastModified(variants[$0].fields, now: 0) == date }
            if !same.isEmpty { return Array(same.prefix(1)) }
            // A date that contradicts the stored one belongs to another response.
            if recent.contains(where: { lastModified(variants[$0].fields, now: 0) != nil }) { return [] }
        }
        if hasOtherVariants { return [] }
        return recent.count == 1 ? recent : []
    }

    private static func isNamed(_ variant: StoredHead, in conditions: Fields) -> Bool {
        if case .tags(let tags)? = EntityTagList(conditions, .ifNoneMatch) {
            return entityTag(variant.fields).map(tags.contains) ?? false
        }
        return variant.fields.contains(.lastModified)
            && variant.fields.first(.lastModified) == conditions.first(.ifModifiedSince)
    }
}
