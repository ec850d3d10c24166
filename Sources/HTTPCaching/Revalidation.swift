// What to send to check a stored response (RFC 9111 section 4.3.1), and what a 304 to it changes (sections 3.2 and 4.3.4).

package import HTTPWire

/// A request that checks a stored response.
package struct Revalidation: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case head
        case conditional
    }

    package var kind: Kind
    /// If-None-Match and If-Modified-Since with the stored validators, byte for byte.
    package var conditions: Fields

    package var method: Method { kind == .head ? .head : .get }

    /// Replaces a request's own conditions and Range by these.
    package func apply(to fields: inout Fields) {
        fields.removeConditions()
        conditions.forEachLine { name, value, _ in fields.append(nameBytes: name, valueBytes: value) }
    }
}

extension Fields {
    /// Removes the conditions of RFC 9110 section 13.1 and Range: what is fetched for the store is asked for in full.
    package mutating func removeConditions() {
        for field in [KnownField.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range] {
            remove(field)
        }
    }
}

extension Caching {
    /// How to check `stored` for `request`; nil where it has no validator, or the policy never asks. HEAD where the policy
    /// says so, but a conditional GET where the request or the response says `no-cache`, or with `forceConditional`.
    package static func revalidation(
        request: RequestHead,
        stored: StoredHead,
        policy: CachePolicy,
        forceConditional: Bool = false
    ) -> Revalidation? {
        guard policy.revalidate != .never, hasValidator(stored.fields) else { return nil }
        var conditions = Fields()
        if entityTag(stored.fields) != nil {
            copyFirst(.etag, of: stored.fields, as: .ifNoneMatch, to: &conditions)
        }
        if lastModified(stored.fields, now: stored.responseTime) != nil {
            copyFirst(.lastModified, of: stored.fields, as: .ifModifiedSince, to: &conditions)
        }
        let noCache = ResponseControl(stored.fields, policy: policy)
            .requiresValidation(status: stored.status, policy: policy)
        let asksByHead = policy.revalidate == .head && !forceConditional && !noCache && !isReload(request)
        return Revalidation(kind: asksByHead ? .head : .conditional, conditions: conditions)
    }

    private static func copyFirst(
        _ source: KnownField,
        of fields: Fields,
        as target: KnownField,
        to result: inout Fields
    ) {
        if let value = fields.first(source) { result.set(target, value) }
    }

    /// `stored` with the fields of a 304 to its conditional request (RFC 9111 section 4.3.4), or of a HEAD answer with the same
    /// validators (section 4.3.5). A changed Vary is taken over only with the `request` whose fields now select. Times are
    /// Unix seconds.
    package static func freshened(
        stored: StoredHead,
        by notModified: ResponseHead,
        requestTime: Int64,
        responseTime: Int64,
        request: RequestHead? = nil,
        policy: CachePolicy = CachePolicy()
    ) -> StoredHead {
        var update = HopByHop.forwardable(notModified.fields, isRequest: false)
        // Section 3.2: these describe the stored bytes. Age counts once, in the initial age.
        for field in [KnownField.contentLength, .contentEncoding, .contentRange, .age] { update.remove(field) }
        update.removeAll(named: ResponseControl(notModified.fields, policy: policy).unstorableFields)
        if !update.contains(.date) { update.set(.date, HTTPDate.format(DeltaSeconds.clampTime(responseTime))) }
        if request == nil { update.remove(.vary) }

        var result = stored
        result.fields = merge(stored.fields, update)
        let control = ResponseControl(result.fields, policy: policy)
        // A cookie of the check is kept only where a cookie of the response would have been.
        if update.contains(.setCookie),
            explicitLifetime(control, fields: result.fields, responseTime: responseTime) == nil
        {
            update.remove(.setCookie)
            result.fields = merge(stored.fields, update)
        }
        result.fields.removeAll(named: control.unstorableFields)
        if let request, update.contains(.vary) {
            let vary = Vary(update)
            result.varyNames = vary.names
            result.varyFields = vary.selectingFields(of: request.fields)
        }
        result.requestTime = requestTime
        result.responseTime = responseTime
        result.validatedAt = responseTime
        result.initialAge = initialAge(notModified.fields, requestTime: requestTime, responseTime: responseTime)
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
