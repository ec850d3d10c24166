// Vary: which request fields select a stored response, and whether two requests agree in them or mean the same (RFC
// 9111 section 4.1).

package import HTTPWire

/// The parsed Vary lines of a response.
struct Vary {
    /// The members in lower case, each once, in order.
    private(set) var names: [String] = []
    /// True if one member is `*`: no request ever matches.
    private(set) var isAny = false
    /// True if a member is neither `*` nor a token: it is unknown which fields select the response.
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
        // The star is in the names, too, so that a head that was stored with it never matches.
        if isAny || isMalformed { names = ["*"] }
    }

    /// Whether the request has a field whose name differs from a selecting one only by `_` for `-`. CGI, WSGI and Rack
    /// treat both names as one, so it is unknown which of the fields has selected the response.
    func isAmbiguous(for request: Fields) -> Bool {
        var isAmbiguous = false
        request.forEachLine { name, _, _ in
            if !isAmbiguous, names.contains(where: { ASCII.isTwin($0.utf8, name) }) { isAmbiguous = true }
        }
        return isAmbiguous
    }

    /// The lines of `request` with the selecting names, as received.
    func selectingFields(of request: Fields) -> Fields {
        var selected = request
        selected.removeAll { name, _ in !names.contains(ASCII.lowercased(name)) }
        return selected
    }
}

/// The stored responses that one request selects (RFC 9111 section 4.1), decided as by
/// `Caching.selects(stored:request:)`.
///
/// To normalise a field takes some thousand times as long as to compare it, so each field of the request is normalised
/// once, and a stored response keeps its normalised form.
package struct VariantSelection {
    private let fields: Fields
    /// The normalised fields, by their names in lower case; nil for those that are absent.
    private var meanings: [String: [UInt8]?] = [:]
    /// The variant key that the request selects, for the names of the last Vary.
    private var last: (names: [String], key: [UInt8])?
    /// The number of fields that were normalised, including those of stored responses.
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
    /// Whether the request's selecting fields match those of the stored request (RFC 9111 section 4.1): they are the
    /// same after lines are joined, or absent from both. Known lists are compared without optional whitespace, and
    /// Accept and related fields by their meaning.
    package static func selects(stored: StoredHead, request: RequestHead) -> Bool {
        var selection = VariantSelection(request)
        return selection.selects(stored)
    }

    /// Whether a request selects a stored response beyond doubt: of each field that Vary names, both have one line with
    /// the same bytes, or none. Allocates nothing. False decides nothing, since different lines may mean the same: see
    /// ``selects(stored:request:)``.
    /// - Parameters:
    ///   - names: the lower-case members of Vary, separated by commas.
    ///   - stored: the selecting lines of the request that brought the response.
    ///   - lines: the fields of the request, without those that Connection names.
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
        // A field of one connection only is not stored with a response.
        guard !name.elementsEqual([UInt8(ascii: "*")]), !HopByHop.always.contains(KnownField.find(name))
        else {
            return false
        }
        return agreePlainly(stored, lines, name)
    }

    /// Whether both have one line of the field with the same bytes, or none.
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

    /// Whether two requests have the same lines of a field, given by its name in lower case.
    static func agreePlainly(_ stored: Fields, _ fields: Fields, _ name: String) -> Bool {
        var name = name
        return name.withUTF8 { agreePlainly(stored, fields, UnsafeRawBufferPointer($0)) }
    }

    /// Whether the request and the stored request agree in one field that Vary names (its name in lower case).
    static func agrees(stored: StoredHead, request: RequestHead, in name: String) -> Bool {
        name != "*" && normalised(request.fields, name: name) == normalised(stored.varyFields, name: name)
    }

    /// The name of the variant that `stored` is, made from its normalised selecting fields: two heads with the same key
    /// answer the same requests. It is empty without Vary, and short however long the fields are.
    package static func variantKey(_ stored: StoredHead) -> [UInt8] {
        stored.variantKey ?? variantKey(stored.varyNames) { normalised(stored.varyFields, name: $0) }
    }

    /// The key of the variant with these selecting fields.
    /// - Parameter value: the normalised field of a name; nil if it is absent.
    static func variantKey(_ names: [String], value: (String) -> [UInt8]?) -> [UInt8] {
        var key: [UInt8] = []
        for name in names.sorted() {
            key.append(0)
            key += Array(name.utf8)
            // No field value contains a control character other than tab.
            if let value = value(name) { key += [1] + value }
        }
        return key
    }

    /// The index in `variants` of the stored response that the request selects: the most recent one that matches.
    ///
    /// One without Vary yields to a match that has it and was fresh when the other arrived (RFC 9111 section 4.1, on
    /// resources that omit Vary from their default response): had that match been stale by then, the other would have
    /// been fetched to replace it.
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

    /// Whether a stored response is more recent: by the Date field, as RFC 9111 section 4 has it, and by arrival if the
    /// dates are the same.
    static func isMoreRecent(_ stored: StoredHead, than other: StoredHead) -> Bool {
        let dates = (
            date(stored.fields, responseTime: stored.responseTime), date(other.fields, responseTime: other.responseTime)
        )
        return dates.0 != dates.1 ? dates.0 > dates.1 : stored.responseTime > other.responseTime
    }

    /// The fields that their specifications define as lists, in which empty members and whitespace around members and
    /// semicolons mean nothing. Any other field is compared as it is.
    private static let lists: Set<String> = [
        "access-control-request-headers", "cache-control", "pragma", "prefer", "te",
    ]

    /// The longest value that is normalised, in bytes; longer ones are compared as they are. Clients negotiate with far
    /// shorter values, and other spellings of a long one are not worth the time of comparing them.
    static let normalisedLimit = 512

    /// The lines of a field in one spelling of their meaning, or their digest if they are too long for that; nil
    /// without a line.
    static func normalised(_ fields: Fields, name: String) -> [UInt8]? {
        let values = fields.values(named: name)
        guard var joined = values.first else {
            // Without Accept any media type is acceptable (RFC 9110 section 12.5.1).
            return name == "accept" ? Array("*/*".utf8) : nil
        }
        // Several lines mean the same as one line with their values joined (RFC 9110 section 5.3).
        for value in values.dropFirst() { joined += [ASCII.comma, 0x20] + value }
        guard joined.count <= normalisedLimit else {
            // This first byte marks a digest: no shorter value begins with it.
            return [2] + (ContentDigest.sha256.raw(joined) ?? joined)
        }
        if Preferences.covers(name) { return Preferences.normalised(name, ASCII.listMembers(joined)) }
        guard lists.contains(name) else { return joined }
        return Array(ASCII.listMembers(joined).map(withoutOptionalSpace).joined(separator: [ASCII.comma]))
    }

    /// The member without whitespace around semicolons, and with one space for any other run of it; quoted strings
    /// stay.
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

// MARK: - What fields of content negotiation mean

/// A value of Accept, Accept-Encoding, Accept-Language and related fields, normalised: members in order of their
/// spelling, each with its weight.
///
/// This follows the semantics of these fields in RFC 9110 section 12.5: neither order nor case nor whitespace counts, a
/// weight of 1 may be left out, and 0.5 is 0.500.
enum Preferences {
    /// Whether the field of this name is normalised here.
    static func covers(_ name: String) -> Bool {
        switch name {
        case "accept", "accept-encoding", "accept-language", "accept-charset": true
        default: false
        }
    }

    /// The normalised spelling of `members`, which are the list in all lines of the field `name` (in lower case).
    static func normalised(_ name: String, _ members: [ArraySlice<UInt8>]) -> [UInt8] {
        if name == "accept-encoding" { return codings(members) }
        let spelled = members.map { member in
            // A malformed member stays as it is: it is unknown how the origin reads it.
            Preference(member, isMediaRange: name == "accept")?.spelled ?? Array(member)
        }
        return joined(spelled)
    }

    // MARK: - Codings (RFC 9110 section 12.5.3)

    /// The acceptable codings, by their canonical names. All malformed members together add one mark with the codings
    /// that a lenient origin might read in them: without the codings a client could get one that it did not name, and
    /// with the whole members each spelling of a mistake would be a variant of its own.
    private static func codings(_ members: [ArraySlice<UInt8>]) -> [UInt8] {
        var weights: [[UInt8]: Int] = [:]
        var isMalformed = false
        var mentioned: Set<String> = []
        for member in members {
            guard let preference = Preference(member, isMediaRange: false), preference.parameters.isEmpty else {
                isMalformed = true
                mentioned.formUnion(known.filter { mentions(member, $0) })
                continue
            }
            // The least weight of duplicates counts, as with directives.
            let name = canonical(preference.value)
            weights[name] = min(weights[name] ?? Preference.full, preference.weight)
        }
        let identity = Array("identity".utf8)
        let any = Array("*".utf8)
        if weights[any] == 0 {
            // A coding that is not listed is not acceptable anyway, except identity.
            weights[any] = nil
            if weights[identity] == nil { weights[identity] = 0 }
        }
        if weights[any] == nil { weights = weights.filter { $0.value > 0 || $0.key == identity } }
        // The weight of identity alone makes no difference; it is acceptable unless refused.
        if let weight = weights[identity], weight > 0, weights.count == 1 { weights = [:] }
        var spelled = weights.map { Preference.spell($0.key, $0.value) }
        if isMalformed { spelled.append([ASCII.quote]) }
        spelled += mentioned.map { [ASCII.quote] + Array($0.utf8) }
        return joined(spelled)
    }

    /// The registered codings that an origin may answer with, in lower case, and the star for all codings.
    private static let known = ["*", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "zstd"]

    private static func mentions(_ member: ArraySlice<UInt8>, _ coding: String) -> Bool {
        member.indices.contains { start in
            member.endIndex - start >= coding.utf8.count
                && zip(member[start...], coding.utf8).allSatisfy { ASCII.lower($0) == $1 }
        }
    }

    /// The current name of a coding for its old one (RFC 9110 sections 8.4.1.1 and 8.4.1.3).
    private static func canonical(_ coding: [UInt8]) -> [UInt8] {
        switch String(decoding: coding, as: UTF8.self) {
        case "x-gzip": Array("gzip".utf8)
        case "x-compress": Array("compress".utf8)
        default: coding
        }
    }

    private static func joined(_ members: [[UInt8]]) -> [UInt8] {
        Array(members.sorted { $0.lexicographicallyPrecedes($1) }.joined(separator: [ASCII.comma]))
    }
}

/// One member of a preference list: its value, its parameters and its weight.
struct Preference {
    /// A weight of 1, in thousandths.
    static let full = 1000

    /// The value in lower case.
    var value: [UInt8]
    /// The parameters in the order of their spelling; names in lower case.
    var parameters: [[UInt8]] = []
    /// The weight in thousandths.
    var weight = Self.full

    var spelled: [UInt8] {
        Self.spell(value + parameters.flatMap { [ASCII.semicolon] + $0 }, weight)
    }

    static func spell(_ value: [UInt8], _ weight: Int) -> [UInt8] {
        weight == full ? value : value + Array(";q=\(weight)".utf8)
    }

    /// Reads a member; nil if it does not follow the grammar.
    init?(_ member: ArraySlice<UInt8>, isMediaRange: Bool) {
        var parts = Self.parts(member)
        let first = parts.removeFirst()
        let names = isMediaRange ? first.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) : [first]
        guard names.count == (isMediaRange ? 2 : 1), names.allSatisfy(ASCII.isToken) else { return nil }
        value = first.map(ASCII.lower)
        for (index, part) in parts.enumerated() {
            guard let equals = part.firstIndex(of: ASCII.equals) else { return nil }
            let name = part[..<equals].map(ASCII.lower)
            let argument = part[(equals + 1)...]
            if name == [UInt8(ascii: "q")] {
                // The weight comes last (RFC 9110 section 12.4.2).
                guard let weight = Self.thousandths(argument), index == parts.count - 1 else { return nil }
                self.weight = weight
            } else {
                guard ASCII.isToken(name), ASCII.isToken(argument) || Self.isQuoted(argument) else { return nil }
                parameters.append(name + [ASCII.equals] + argument)
            }
        }
        parameters.sort { $0.lexicographicallyPrecedes($1) }
    }

    /// The parts between semicolons outside of quoted strings, without surrounding whitespace; never empty.
    private static func parts(_ member: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        let bytes = Array(member)
        var parts: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        while index < bytes.count {
            if bytes[index] == ASCII.quote, let end = ASCII.endOfQuotedString(bytes, from: index) {
                index = end
                continue
            }
            if bytes[index] == ASCII.semicolon {
                parts.append(ASCII.trim(bytes[start..<index]))
                start = index + 1
            }
            index += 1
        }
        return parts + [ASCII.trim(bytes[start...])]
    }

    private static func isQuoted(_ argument: ArraySlice<UInt8>) -> Bool {
        argument.first == ASCII.quote && ASCII.endOfQuotedString(Array(argument), from: 0) == argument.count
    }

    /// The weight in thousandths, from 0 to 1 with at most three decimals (RFC 9110 section 12.4.2); nil for anything
    /// else.
    private static func thousandths(_ bytes: ArraySlice<UInt8>) -> Int? {
        let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, whole.count == 1, let digit = whole.first, digit == 0x30 || digit == 0x31 else {
            return nil
        }
        var decimals = parts.count == 2 ? Array(parts[1]) : []
        guard decimals.count <= 3, decimals.allSatisfy(ASCII.isDigit) else { return nil }
        decimals += repeatElement(0x30, count: 3 - decimals.count)
        let weight = decimals.reduce(Int(digit - 0x30)) { $0 * 10 + Int($1 - 0x30) }
        return weight <= full ? weight : nil
    }
}
