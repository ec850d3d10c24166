// Vary: which request fields select a stored response, and whether two requests agree in them (RFC 9111 section 4.1).

package import HTTPWire

/// The members of a response's Vary lines.
struct Vary {
    /// Lower-case names, each once, in order.
    private(set) var names: [String] = []
    /// A `*` stands somewhere: no request ever matches.
    private(set) var isAny = false
    /// A member is neither `*` nor a token: nobody can say what selects the response.
    private(set) var isMalformed = false

    init(_ fields: Fields) {
        for value in fields.values(.vary) {
            for member in ASCII.listMembers(value) {
                if member.elementsEqual([UInt8(ascii: "*")]) {
                    isAny = true
                } else if ASCII.isToken(member) {
                    let name = ASCII.lowercased(member)
                    if !names.contains(name) { names.append(name) }
                } else {
                    isMalformed = true
                }
            }
        }
        // Kept in the names too, so that a head that was stored under it never matches.
        if isAny || isMalformed { names = ["*"] }
    }

    /// Whether the request has a field whose name differs from a selecting one only by `_` for `-`. CGI, WSGI and Rack
    /// take the two for one, so it is unknown which of them has selected the response.
    func isAmbiguous(for request: Fields) -> Bool {
        var isAmbiguous = false
        request.forEachLine { name, _, _ in
            if !isAmbiguous, names.contains(where: { ASCII.isTwin($0.utf8, name) }) { isAmbiguous = true }
        }
        return isAmbiguous
    }

    /// The lines of `request` that the names select, as received.
    func selectingFields(of request: Fields) -> Fields {
        var selected = request
        selected.removeAll { name, _ in !names.contains(ASCII.lowercased(name)) }
        return selected
    }
}

/// Tells which stored responses a request selects (RFC 9111 section 4.1), as `Caching.selects(stored:request:)` does.
///
/// To normalise a field takes some thousand times as long as to compare it. Each field of the request is normalised once,
/// and a stored response keeps the form of its own.
package struct VariantSelection {
    private let fields: Fields
    /// What the fields mean, by their names in lower case; nil for those that are absent.
    private var meanings: [String: [UInt8]?] = [:]
    /// The key that a variant has which the request selects, for the names that Vary had last.
    private var last: (names: [String], key: [UInt8])?
    /// The number of fields that were normalised, those of stored responses among them.
    private(set) var normalised = 0

    package init(_ request: RequestHead) { fields = request.fields }

    /// Whether the request selects a stored response.
    package mutating func selects(_ stored: StoredHead) -> Bool {
        let names = stored.varyNames
        if names.isEmpty { return true }
        if names.contains("*") { return false }
        if stored.variantKey == nil {
            if names.allSatisfy({ Caching.agreePlainly(stored.varyFields, fields, $0) }) { return true }
            normalised += names.count
        }
        return key(names) == Caching.variantKey(stored)
    }

    private mutating func key(_ names: [String]) -> [UInt8] {
        if let last, last.names == names { return last.key }
        let key = Caching.variantKey(names) { meaning($0) }
        last = (names, key)
        return key
    }

    private mutating func meaning(_ name: String) -> [UInt8]? {
        if let known = meanings[name] { return known }
        normalised += 1
        let meaning = Caching.normalised(fields, name: name)
        meanings.updateValue(meaning, forKey: name)
        return meaning
    }
}

extension Caching {
    /// Whether the request's selecting fields match those of the stored request (RFC 9111 section 4.1): the same after
    /// lines are joined, or absent from both. Of fields that are known to be lists optional whitespace is normalised,
    /// and what Accept and its kin mean is compared.
    package static func selects(stored: StoredHead, request: RequestHead) -> Bool {
        var selection = VariantSelection(request)
        return selection.selects(stored)
    }

    /// Whether a request selects a stored response beyond doubt: of each field that Vary names both have one line with
    /// the same bytes, or none. No allocation. False settles nothing, since what differs may mean the same: see
    /// ``selects(stored:request:)``.
    /// - Parameters:
    ///   - names: the lower-case members of Vary, with commas between them.
    ///   - stored: the lines that they name of the request that brought the response.
    ///   - lines: the fields of the request, those that Connection names not among them.
    package static func selectsPlainly(
        names: UnsafeRawBufferPointer,
        stored: some FieldLines,
        _ lines: some FieldLines
    ) -> Bool {
        var isSelected = true
        names.forEachMember { name in
            if isSelected, !name.isEmpty { isSelected = agreesPlainly(stored, lines, name) }
        }
        return isSelected
    }

    private static func agreesPlainly(
        _ stored: some FieldLines,
        _ lines: some FieldLines,
        _ name: UnsafeRawBufferPointer
    ) -> Bool {
        // What belongs to one connection is not what the request was stored with.
        guard !name.elementsEqual([UInt8(ascii: "*")]), !HopByHop.always.contains(KnownField.find(name))
        else {
            return false
        }
        return agreePlainly(stored, lines, name)
    }

    /// Whether both have one line of a field with the same bytes, or none.
    private static func agreePlainly(
        _ stored: some FieldLines,
        _ lines: some FieldLines,
        _ name: UnsafeRawBufferPointer
    ) -> Bool {
        var (own, others, isSame) = (0, 0, true)
        stored.forEachNamed(name) { _ in own += 1 }
        lines.forEachNamed(name) { value in
            others += 1
            stored.forEachNamed(name) { isSame = isSame && $0.holdsSame(as: value) }
        }
        return own == others && own <= 1 && isSame
    }

    /// The same of a name in lower case.
    static func agreePlainly(_ stored: Fields, _ fields: Fields, _ name: String) -> Bool {
        var name = name
        return name.withUTF8 { agreePlainly(stored, fields, UnsafeRawBufferPointer($0)) }
    }

    /// Whether the request and the stored request agree in one field that Vary names (its name in lower case).
    static func agrees(stored: StoredHead, request: RequestHead, in name: String) -> Bool {
        name != "*" && normalised(request.fields, name: name) == normalised(stored.varyFields, name: name)
    }

    /// Names the variant that `stored` is, by what its selecting fields mean: two heads with the same key answer the
    /// same requests. Empty without Vary. It is short, however long the fields are.
    package static func variantKey(_ stored: StoredHead) -> [UInt8] {
        stored.variantKey ?? variantKey(stored.varyNames) { normalised(stored.varyFields, name: $0) }
    }

    /// - Parameter value: what the field of a name means; nil where it is absent.
    static func variantKey(_ names: [String], value: (String) -> [UInt8]?) -> [UInt8] {
        var key: [UInt8] = []
        for name in names.sorted() {
            key.append(0)
            key += Array(name.utf8)
            // No field value has a control character but tabs in it.
            if let value = value(name) { key += [1] + value }
        }
        return key
    }

    /// Which of the stored responses the request selects, as an index into `variants`: the
    /// most recent one that matches.
    ///
    /// One without Vary yields to a match that has it and was fresh when the other came (RFC 9111 section 4.1,
    /// on resources that omit Vary from their default response): had that match been stale by then, the other
    /// would have come to replace it.
    package static func select(
        from variants: [StoredHead],
        request: RequestHead,
        policy: CachePolicy = CachePolicy()
    ) -> Int? {
        var selection = VariantSelection(request)
        let matching = variants.indices.filter { selection.selects(variants[$0]) }
        guard let latest = matching.max(by: { isMoreRecent(variants[$1], than: variants[$0]) }) else { return nil }
        guard variants[latest].varyNames.isEmpty else { return latest }
        let varying = matching.filter {
            !variants[$0].varyNames.isEmpty
                && staleness(variants[$0], policy: policy, now: variants[latest].responseTime) < 0
        }
        return varying.max { isMoreRecent(variants[$1], than: variants[$0]) } ?? latest
    }

    /// By the Date field, as RFC 9111 section 4 has it, and by arrival where the dates are the same.
    static func isMoreRecent(_ stored: StoredHead, than other: StoredHead) -> Bool {
        let dates = (
            date(stored.fields, responseTime: stored.responseTime), date(other.fields, responseTime: other.responseTime)
        )
        return dates.0 != dates.1 ? dates.0 > dates.1 : stored.responseTime > other.responseTime
    }

    /// Fields that their specifications define as lists, where whitespace around members and semicolons and empty
    /// members mean nothing. Nothing is known of any other field: it is compared as it is.
    private static let lists: Set<String> = [
        "access-control-request-headers", "cache-control", "pragma", "prefer", "te",
    ]

    /// Longer values, in bytes, are compared as they stand. What clients send to negotiate is far shorter, and
    /// spellings of a long value are not worth the time that they take to compare.
    static let normalisedLimit = 512

    /// What the lines of a field mean, in one spelling, or the digest of what is too long for that; nil without a line.
    static func normalised(_ fields: Fields, name: String) -> [UInt8]? {
        let values = fields.values(named: name)
        guard var joined = values.first else {
            // Without the field any media type is acceptable (RFC 9110 section 12.5.1).
            return name == "accept" ? Array("*/*".utf8) : nil
        }
        // One line is the same as several (RFC 9110 section 5.3).
        for value in values.dropFirst() { joined += [ASCII.comma, 0x20] + value }
        guard joined.count <= normalisedLimit else {
            // Nothing that is not too long begins with this byte.
            return [2] + (ContentDigest.sha256.raw(joined) ?? joined)
        }
        if Preferences.covers(name) { return Preferences.normalised(name, ASCII.listMembers(joined)) }
        guard lists.contains(name) else { return joined }
        return Array(ASCII.listMembers(joined).map(withoutOptionalSpace).joined(separator: [ASCII.comma]))
    }

    /// Outside of quoted strings: no whitespace around semicolons, elsewhere one space for any run of it.
    private static func withoutOptionalSpace(_ member: ArraySlice<UInt8>) -> [UInt8] {
        let bytes = Array(member)
        var result: [UInt8] = []
        var pendingSpace = false
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if ASCII.isSpace(byte) {
                pendingSpace = true
                index += 1
                continue
            }
            if pendingSpace, byte != ASCII.semicolon, result.last != ASCII.semicolon { result.append(0x20) }
            pendingSpace = false
            let end = byte == ASCII.quote ? ASCII.endOfQuotedString(bytes, from: index) ?? index + 1 : index + 1
            result.append(contentsOf: bytes[index..<end])
            index = end
        }
        return result
    }
}

extension FieldLines {
    /// Calls `body` with the value of each line of this name.
    fileprivate func forEachNamed(
        _ wanted: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        forEachLine { name, value, _ in
            if name.equalsIgnoringCase(wanted) { body(value) }
        }
    }
}
