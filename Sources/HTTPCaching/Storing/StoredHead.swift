// The head of a stored response: the fields to answer with, everything that later decisions need, and its encoding as
// bytes.

package import HTTPWire

/// A stored response without its body. `Caching.makeStoredHead` makes it, `encode(into:)` writes it for the disk tier.
package struct StoredHead: Sendable, Equatable {
    package var status: Int
    package var reason: String
    /// The end-to-end fields; `Date` is always among them, and `Age` never, which every reuse computes.
    package var fields: Fields
    /// The time when the request that brought this head was sent, in Unix seconds.
    package var requestTime: Int64
    /// The time when this head, or the latest one that freshened it, arrived, in Unix seconds.
    package var responseTime: Int64
    /// The time when the origin last confirmed that this response is current, in Unix seconds.
    package var validatedAt: Int64
    /// The age in seconds at `responseTime` (RFC 9111 section 4.2.3, corrected_initial_age).
    package var initialAge: Int64
    /// The lines of the request with the names in `varyNames`, as received.
    package var varyFields: Fields { didSet { kept.key = nil } }
    /// The lower-case members of Vary (RFC 9111 section 4.1).
    package var varyNames: [String] { didSet { kept.key = nil } }
    /// The variant key that follows from these two, kept so that no request has to compute it again.
    private var kept = KeptVariantKey()
    /// The length of the body in bytes; nil until it is known.
    package var bodyLength: Int64?
    package var requestMethod: Method
    /// True if the request carried Authorization (RFC 9111 section 3.5).
    package var hadAuthorization: Bool
    /// The Age field that came with this head, or with the latest one that freshened it, in seconds; nil if there was
    /// none. Only explanations read it: `initialAge` includes it.
    package var receivedAge: Int64?
    /// The number of the fetch or check that last brought or confirmed this response, greater than the numbers of all
    /// fetches, checks and purges that began before it; 0 without a store that counts them.
    package var number: UInt64 = 0
    /// The time when a purge made this response stale, whatever its lifetime, in Unix seconds. It is not encoded: the
    /// store applies the purges in force to each response that it finds.
    package var staleSince: Int64?
    /// The time when the answer to a HEAD showed that the resource has changed, in Unix seconds; the response is stale
    /// from then on.
    package var changedSince: Int64?
    /// The origin's description of a document that is stored mapped; nil for all other responses.
    package var mapped: MappedOrigin?
    /// The expectation that the response met when it was stored; nil for none.
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

/// A variant key that is kept with its head. It follows from other members, so it does not count in comparisons of
/// heads.
private struct KeptVariantKey: Sendable, Equatable {
    var key: [UInt8]?

    static func == (left: KeptVariantKey, right: KeptVariantKey) -> Bool { true }
}

extension StoredHead {
    /// ``Caching/variantKey(_:)`` of this head, if it is kept.
    package var variantKey: [UInt8]? { kept.key }

    /// Keeps the variant key; a head without Vary has none.
    /// - Parameter key: the key if it is known; nil to compute it.
    package mutating func keepVariantKey(_ key: [UInt8]? = nil) {
        if !varyNames.isEmpty { kept.key = key ?? Caching.variantKey(self) }
    }

    /// The head as checks compare it with the origin's: for a mapped document, with the origin's validators and length.
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

    /// Whether it was made by the mapping of the policy, or by none if the policy has none.
    package func isMapped(as policy: CachePolicy) -> Bool { mapped?.digest == policy.mapping }

    /// Whether it was stored under the expectation of the policy; without one, every response is accepted.
    package func isExpected(by policy: CachePolicy) -> Bool {
        (policy.expectation == nil || policy.expectation == expectation)
            && (policy.success == nil || policy.isSuccess(status))
    }
}

extension Caching {
    /// Makes the head that is stored: without hop-by-hop fields, Age, and the fields that Connection, `private="…"` and
    /// `no-cache="…"` name (RFC 9111 sections 3.1, 5.2.2.4 and 5.2.2.7). An answer to a POST of `url` that may be
    /// stored is stored as the answer to GET (RFC 9110 section 9.3.3).
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
        // Without a mapping such lines are the origin's own, and have no meaning here.
        let mapped = policy.mapping.flatMap { _ in MappedOrigin(response.fields) }
        if mapped != nil { MappedOrigin.remove(from: &fields) }
        // A recipient with a clock adds a Date that is missing (RFC 9110 section 6.6.1).
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

    /// A stored head as the policy lets it answer: without a Set-Cookie that another policy, or version 0.1.0, let be
    /// stored.
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
    /// Removes Set-Cookie if the policy does not let it be stored with these fields.
    mutating func keepSetCookie(under policy: CachePolicy) {
        guard contains(.setCookie), !ResponseControl(self, policy: policy).keepsSetCookie(policy) else { return }
        remove(.setCookie)
    }
}

// MARK: - The origin of a mapped document

/// The origin's validators and length of a document that is stored mapped; only checks use them. The fields of the
/// mapped document's own head do not describe the origin's bytes.
package struct MappedOrigin: Sendable, Equatable {
    /// The digest of the mapping that made the document.
    package var digest: String
    /// The origin's ETag and Last-Modified, as far as it sent them.
    package var fields: Fields
    /// The origin's length in bytes; nil if it gave none.
    package var length: Int64?

    package init(digest: String, fields: Fields, length: Int64?) {
        self.digest = digest
        self.fields = fields
        self.length = length
    }

    /// The names of fields that are digests of an origin's bytes (RFC 9530, RFC 3230, RFC 1864).
    package static let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]

    private static let digestName = "Drydock-Mapped"
    private static let tagName = "Drydock-Mapped-ETag"
    private static let dateName = "Drydock-Mapped-Last-Modified"
    private static let lengthName = "Drydock-Mapped-Length"

    /// Writes the description into a head on its way from a source to the store; no client sees these lines.
    package func write(into head: inout Fields) {
        Self.remove(from: &head)
        head.append(Self.digestName, digest)
        if let tag = fields.first(.etag) { head.append(Self.tagName, tag) }
        if let date = fields.first(.lastModified) { head.append(Self.dateName, date) }
        if let length { head.append(Self.lengthName, String(length)) }
    }

    /// Reads the lines that ``write(into:)`` wrote; nil if there are none.
    init?(_ head: Fields) {
        guard let digest = head.first(Self.digestName) else { return nil }
        self.init(digest: digest, fields: Fields(), length: head.first(Self.lengthName).flatMap { Int64($0) })
        if let tag = head.first(Self.tagName) { fields.append(.etag, tag) }
        if let date = head.first(Self.dateName) { fields.append(.lastModified, date) }
    }

    package static func remove(from head: inout Fields) {
        for name in [digestName, tagName, dateName, lengthName] { head.remove(name) }
    }

    /// The description with the validators of a check's answer.
    func updated(by answer: Fields) -> MappedOrigin {
        var result = self
        for field in [KnownField.etag, .lastModified] {
            if let value = answer.first(field) { result.fields.set(field, value) }
        }
        return result
    }
}

// MARK: - As bytes

/// The error of bytes that are not a stored head; the entry that they belong to is to be dropped.
package enum StoredHeadError: Error, Sendable, Equatable {
    /// The bytes end before what they announce; `offset` is where more was needed.
    case truncated(offset: Int)
    /// Another version of the format wrote the bytes.
    case unknownVersion(UInt8)
    /// `part` holds a value that no stored head has; `offset` is just behind it.
    case invalid(part: StoredHeadPart, offset: Int)
}

/// The parts of an encoded stored head, as errors name them.
package enum StoredHeadPart: String, Sendable {
    case magic, status, times, flags, method, reason, fields, varyFields = "vary-fields", varyNames = "vary-names"
    case mapped
    case end
}

extension StoredHead {
    /// The version of the format that `encode` writes and `init(decoding:)` reads.
    package static let formatVersion: UInt8 = 3
    private static let magic: [UInt8] = [0x44, 0x44, 0x48]  // the letters DDH

    /// Appends the encoded head to `bytes`.
    package func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: Self.magic)
        bytes.append(Self.formatVersion)
        bytes.appendInteger(UInt32(truncatingIfNeeded: status))
        for time in [requestTime, responseTime, validatedAt, initialAge, bodyLength ?? -1, receivedAge ?? -1] {
            bytes.appendInteger(UInt64(bitPattern: time))
        }
        bytes.appendInteger(number)
        let kept: UInt8 = (mapped == nil ? 0 : 4) | (expectation == nil ? 0 : 8)
        bytes.append((hadAuthorization ? 1 : 0) | (changedSince == nil ? 0 : 2) | kept)
        bytes.appendCounted(Latin1.bytes(requestMethod.name))
        bytes.appendCounted(Array(reason.utf8))
        bytes.appendFields(fields)
        bytes.appendFields(varyFields)
        bytes.appendInteger(UInt32(truncatingIfNeeded: varyNames.count))
        for name in varyNames { bytes.appendCounted(Array(name.utf8)) }
        if let changedSince { bytes.appendInteger(UInt64(bitPattern: changedSince)) }
        if let mapped {
            bytes.appendCounted(Array(mapped.digest.utf8))
            bytes.appendInteger(UInt64(bitPattern: mapped.length ?? -1))
            bytes.appendFields(mapped.fields)
        }
        if let expectation { bytes.appendCounted(Array(expectation.utf8)) }
    }

    /// Reads the bytes that `encode` wrote; `bytes` must be exactly these, and are only used during the call.
    package init(decoding bytes: UnsafeRawBufferPointer) throws(StoredHeadError) {
        var reader = Reader(bytes)
        guard Array(try reader.take(3)) == Self.magic else { throw reader.invalid(.magic) }
        let version = try reader.byte()
        guard version == Self.formatVersion else { throw .unknownVersion(version) }
        let status = try Int(reader.integer(UInt32.self))
        guard (200...999).contains(status) else { throw reader.invalid(.status) }
        let requestTime = try reader.time()
        let responseTime = try reader.time()
        let validatedAt = try reader.time()
        let initialAge = try reader.int64()
        guard (0...DeltaSeconds.limit).contains(initialAge) else { throw reader.invalid(.times) }
        let bodyLength = try reader.int64()
        guard bodyLength >= -1 else { throw reader.invalid(.times) }
        let receivedAge = try reader.int64()
        guard (-1...DeltaSeconds.limit).contains(receivedAge) else { throw reader.invalid(.times) }
        let number = try reader.integer(UInt64.self)
        let flags = try reader.byte()
        guard flags <= 15 else { throw reader.invalid(.flags) }
        let method = try reader.counted()
        guard ASCII.isToken(method) else { throw reader.invalid(.method) }
        let reason = String(decoding: try reader.counted(), as: UTF8.self)
        guard reason.unicodeScalars.allSatisfy({ ($0.value >= 0x20 && $0.value != 0x7F) || $0.value == 0x09 }) else {
            throw reader.invalid(.reason)
        }
        let fields = try reader.fields(.fields)
        let varyFields = try reader.fields(.varyFields)
        var varyNames: [String] = []
        for _ in 0..<(try reader.integer(UInt32.self)) {
            let name = try reader.counted()
            guard ASCII.isToken(name) else { throw reader.invalid(.varyNames) }
            varyNames.append(ASCII.lowercased(name))
        }
        let changedSince = flags & 2 == 0 ? nil : try reader.time()
        let mapped = flags & 4 == 0 ? nil : try reader.mapped()
        let expectation = flags & 8 == 0 ? nil : String(decoding: try reader.counted(), as: UTF8.self)
        guard reader.atEnd else { throw reader.invalid(.end) }
        self.init(
            status: status,
            reason: reason,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            validatedAt: validatedAt,
            initialAge: initialAge,
            varyFields: varyFields,
            varyNames: varyNames,
            bodyLength: bodyLength == -1 ? nil : bodyLength,
            requestMethod: Method(bytes: method),
            hadAuthorization: flags & 1 == 1,
            receivedAge: receivedAge == -1 ? nil : receivedAge
        )
        self.number = number
        self.changedSince = changedSince
        self.mapped = mapped
        self.expectation = expectation
        keepVariantKey()
    }
}

/// Reads bytes in order; every step is checked against the bytes that are left.
private struct Reader {
    // The caller of init(decoding:) keeps the bytes alive during the call, and a Reader does not outlive it.
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var atEnd: Bool { offset == bytes.count }

    func invalid(_ part: StoredHeadPart) -> StoredHeadError { .invalid(part: part, offset: offset) }

    mutating func take(_ count: Int) throws(StoredHeadError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= bytes.count - offset else { throw .truncated(offset: offset) }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }

    mutating func byte() throws(StoredHeadError) -> UInt8 { try integer(UInt8.self) }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws(StoredHeadError) -> Value {
        Value(littleEndian: try take(MemoryLayout<Value>.size).loadUnaligned(as: Value.self))
    }

    mutating func int64() throws(StoredHeadError) -> Int64 { Int64(bitPattern: try integer(UInt64.self)) }

    mutating func time() throws(StoredHeadError) -> Int64 {
        let time = try int64()
        // The bound is far outside of every calendar, and far inside of the range of arithmetic.
        guard time.magnitude < 1 << 40 else { throw invalid(.times) }
        return time
    }

    mutating func counted() throws(StoredHeadError) -> UnsafeRawBufferPointer {
        try take(Int(try integer(UInt32.self)))
    }

    mutating func mapped() throws(StoredHeadError) -> MappedOrigin {
        let digest = String(decoding: try counted(), as: UTF8.self)
        let length = try int64()
        guard length >= -1 else { throw invalid(.mapped) }
        return MappedOrigin(digest: digest, fields: try fields(.mapped), length: length == -1 ? nil : length)
    }

    mutating func fields(_ part: StoredHeadPart) throws(StoredHeadError) -> Fields {
        var fields = Fields()
        for _ in 0..<(try integer(UInt32.self)) {
            let name = try counted()
            let value = try counted()
            // A control character in a value could end its line on the wire.
            guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }),
                fields.append(nameBytes: name, valueBytes: value)
            else { throw invalid(part) }
        }
        return fields
    }
}

extension [UInt8] {
    fileprivate mutating func appendInteger<Value: FixedWidthInteger>(_ value: Value) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func appendCounted(_ bytes: some Collection<UInt8>) {
        appendInteger(UInt32(truncatingIfNeeded: bytes.count))
        append(contentsOf: bytes)
    }

    fileprivate mutating func appendFields(_ fields: Fields) {
        appendInteger(UInt32(truncatingIfNeeded: fields.count))
        var encoded: [UInt8] = []
        fields.forEachLine { name, value, _ in
            encoded.appendCounted(name)
            encoded.appendCounted(value)
        }
        append(contentsOf: encoded)
    }
}
