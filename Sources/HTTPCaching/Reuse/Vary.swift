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

extension Caching {
    /// Whether the request's selecting fields match those of the stored request (RFC 9111 section 4.1): the same after
    /// lines are joined, or absent from both. Of fields that are known to be lists optional whitespace is normalised,
    /// and what Accept and its kin mean is compared.
    package static func selects(stored: StoredHead, request: RequestHead) -> Bool {
        stored.varyNames.allSatisfy { agrees(stored: stored, request: request, in: $0) }
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
        var (own, others, isSame) = (0, 0, true)
        stored.forEachNamed(name) { _ in own += 1 }
        lines.forEachNamed(name) { value in
            others += 1
            stored.forEachNamed(name) { isSame = isSame && $0.holdsSame(as: value) }
        }
        return own == others && own <= 1 && isSame
    }

    /// Whether the request and the stored request agree in one field that Vary names (its name in lower case).
    static func agrees(stored: StoredHead, request: RequestHead, in name: String) -> Bool {
        name != "*" && normalised(request.fields, name: name) == normalised(stored.varyFields, name: name)
    }

    /// Names the variant that `stored` is, by what its selecting fields mean: two heads with the same key answer the
    /// same requests. Empty without Vary.
    package static func variantKey(_ stored: StoredHead) -> [UInt8] {
        var key: [UInt8] = []
        for name in stored.varyNames.sorted() {
            key.append(0)
            key += Array(name.utf8)
            // No field value has a NUL or an SOH in it.
            if let value = normalised(stored.varyFields, name: name) { key += [1] + value }
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
        let matching = variants.indices.filter { selects(stored: variants[$0], request: request) }
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

    private static func normalised(_ fields: Fields, name: String) -> [UInt8]? {
        let values = fields.values(named: name)
        guard !values.isEmpty else { return nil }
        // One line is the same as several (RFC 9110 section 5.3).
        let joined = Array(values.joined(separator: [ASCII.comma, 0x20]))
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
