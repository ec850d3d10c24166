// The head of a stored response: the fields to answer with, and everything that later decisions need.

package import HTTPWire

/// A stored response without its body. `Caching.makeStoredHead` makes it, `encode(into:)` writes it for the disk tier.
package struct StoredHead: Sendable, Equatable {
    package var status: Int
    package var reason: String
    /// End-to-end fields only, `Date` always among them; without `Age`, which every reuse computes.
    package var fields: Fields
    /// When the request that brought this head was sent, Unix seconds.
    package var requestTime: Int64
    /// When this head, or the latest one that freshened it, arrived, Unix seconds.
    package var responseTime: Int64
    /// When the origin last said that this response is current, Unix seconds.
    package var validatedAt: Int64
    /// The age in seconds at `responseTime` (RFC 9111 section 4.2.3, corrected_initial_age).
    package var initialAge: Int64
    /// The lines of the request that `varyNames` name, as received.
    package var varyFields: Fields { didSet { kept.key = nil } }
    /// The lower-case members of Vary (RFC 9111 section 4.1).
    package var varyNames: [String] { didSet { kept.key = nil } }
    /// What these two mean, so that no request has to find it out again.
    private var kept = KeptVariantKey()
    /// The length of the body in bytes, once it is known.
    package var bodyLength: Int64?
    package var requestMethod: Method
    /// The request carried Authorization (RFC 9111 section 3.5).
    package var hadAuthorization: Bool
    /// The Age field that came with this head, or with the latest one that freshened it, in seconds; nil where there
    /// was none. Only explanations read it: `initialAge` has it in it.
    package var receivedAge: Int64?
    /// The number of the fetch or check that last brought or confirmed this response: greater than the numbers of all
    /// fetches, checks and purges that began before it. 0 without a store that counts them.
    package var number: UInt64 = 0
    /// When a purge made this response stale, whatever its lifetime, Unix seconds. Not encoded: the store applies the
    /// purges in force to each response that it finds.
    package var staleSince: Int64?
    /// The answer to a HEAD has shown at this time that the resource is another one now: stale
    /// from then on, Unix seconds.
    package var changedSince: Int64?
    /// What the origin said of a document that is stored mapped; nil for all other responses.
    package var mapped: MappedOrigin?
    /// What was expected of it when it was stored; nil: nothing.
    package var expectation: String?

    package init(
        status: Int,
        reason: String,
        fields: Fields,
        requestTime: Int64,
        responseTime: Int64,
        validatedAt: Int64,
        initialAge: Int64,
        varyFields: Fields,
        varyNames: [String],
        bodyLength: Int64?,
        requestMethod: Method,
        hadAuthorization: Bool,
        receivedAge: Int64? = nil
    ) {
        self.status = status
        self.reason = reason
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.validatedAt = validatedAt
        self.initialAge = initialAge
        self.varyFields = varyFields
        self.varyNames = varyNames
        self.bodyLength = bodyLength
        self.requestMethod = requestMethod
        self.hadAuthorization = hadAuthorization
        self.receivedAge = receivedAge
    }
}

/// It follows from other members, so that it does not count where heads are compared.
private struct KeptVariantKey: Sendable, Equatable {
    var key: [UInt8]?

    static func == (left: KeptVariantKey, right: KeptVariantKey) -> Bool { true }
}

extension StoredHead {
    /// ``Caching/variantKey(_:)`` of this head, if it is kept.
    package var variantKey: [UInt8]? { kept.key }

    /// Keeps the key, of a head with Vary.
    /// - Parameter key: where it is known.
    package mutating func keepVariantKey(_ key: [UInt8]? = nil) {
        if !varyNames.isEmpty { kept.key = key ?? Caching.variantKey(self) }
    }

    /// The head as the origin sent it, as far as checks ask: of a mapped document, the origin's validators and length.
    package var asOrigin: StoredHead {
        guard let mapped else { return self }
        var head = self
        for field in [KnownField.etag, .lastModified, .contentLength] { head.fields.remove(field) }
        for field in [KnownField.etag, .lastModified] {
            if let value = mapped.fields.first(field) { head.fields.append(field, value) }
        }
        head.bodyLength = mapped.length
        return head
    }

    /// Whether it was made by the mapping of the policy; of a policy without one, by none.
    package func isMapped(as policy: CachePolicy) -> Bool { mapped?.digest == policy.mapping }

    /// Whether it was stored under what the policy expects of responses. Without an expectation anything is.
    package func isExpected(by policy: CachePolicy) -> Bool {
        (policy.expectation == nil || policy.expectation == expectation)
            && (policy.success == nil || policy.isSuccess(status))
    }
}

extension Caching {
    /// What is kept of a response: everything but hop-by-hop fields, what Connection, `private="…"` and `no-cache="…"`
    /// name (RFC 9111 sections 3.1, 5.2.2.4 and 5.2.2.7), and Age. An answer to a POST of `url` that
    /// may be stored is stored as the answer to GET (RFC 9110 section 9.3.3).
    package static func makeStoredHead(
        request: RequestHead,
        response: ResponseHead,
        times: ResponseTimes,
        policy: CachePolicy = CachePolicy(),
        url: String? = nil
    ) -> StoredHead {
        let responseTime = times.responseTime
        let isGet =
            request.method == .post && answersGet(response, policy: policy, now: responseTime, url: url)
        let vary = Vary(response.fields)
        var fields = HopByHop.forwardable(response.fields, isRequest: false)
        fields.remove(.age)
        fields.removeAll(named: ResponseControl(response.fields, policy: policy).unstorableFields)
        fields.keepSetCookie(under: policy)
        // Without a mapping such lines are the origin's own, and mean nothing.
        let mapped = policy.mapping.flatMap { _ in MappedOrigin(response.fields) }
        if mapped != nil { MappedOrigin.remove(from: &fields) }
        // RFC 9110 section 6.6.1: a recipient with a clock adds the Date that is missing.
        if !fields.contains(.date) { fields.set(.date, HTTPDate.format(DeltaSeconds.clampTime(responseTime))) }
        var head = StoredHead(
            status: response.status,
            reason: response.reason,
            fields: fields,
            requestTime: times.requestTime,
            responseTime: responseTime,
            validatedAt: responseTime,
            initialAge: initialAge(response.fields, times),
            varyFields: vary.selectingFields(of: request.fields),
            varyNames: vary.names,
            bodyLength: contentLength(response.fields),
            requestMethod: isGet ? .get : request.method,
            hadAuthorization: request.fields.contains(.authorization),
            receivedAge: receivedAge(response.fields)
        )
        head.mapped = mapped
        head.expectation = policy.expectation
        head.keepVariantKey()
        return head
    }

    /// The fields of an arriving response for the clients that share its fetch: without the fields that may not be
    /// stored (RFC 9111 sections 5.2.2.4 and 5.2.2.7) and without Set-Cookie, which are for the client whose request is
    /// fetched.
    package static func shared(_ fields: Fields, policy: CachePolicy) -> Fields {
        var shared = fields
        shared.removeAll(named: ResponseControl(fields, policy: policy).unstorableFields)
        shared.remove(.setCookie)
        return shared
    }

    /// A stored head as the policy lets it answer: without a Set-Cookie that was stored under another
    /// policy, or by version 0.1.0.
    package static func usable(_ stored: StoredHead, policy: CachePolicy) -> StoredHead {
        guard stored.fields.contains(.setCookie) else { return stored }
        var stored = stored
        if policy.setCookie == .skip { stored.fields.remove(.setCookie) }
        stored.fields.keepSetCookie(under: policy)
        return stored
    }

    /// The length in bytes that Content-Length gives: digits only (RFC 9110 section 8.6).
    static func contentLength(_ fields: Fields) -> Int64? {
        guard let value = fields.first(.contentLength), value.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return Int64(value)
    }
}

extension Fields {
    /// Removes Set-Cookie where the policy does not let it be stored with these fields.
    mutating func keepSetCookie(under policy: CachePolicy) {
        guard contains(.setCookie), !ResponseControl(self, policy: policy).keepsSetCookie(policy) else { return }
        remove(.setCookie)
    }
}
