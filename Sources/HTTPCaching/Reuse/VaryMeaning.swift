// What the fields of content negotiation ask for, in one spelling: two requests that mean the same select the same
// response (RFC 9111 section 4.1).

import HTTPWire

/// A value of Accept, Accept-Encoding, Accept-Language and their kin, normalised: members in order of their
/// spelling, each with its weight.
///
/// All of it is semantics that RFC 9110 section 12.5 gives these fields: neither order nor case nor whitespace counts,
/// a weight of 1 may be left out, and 0.5 is 0.500.
enum Preferences {
    /// The fields that this normalises.
    static func covers(_ name: String) -> Bool {
        switch name {
        case "accept", "accept-encoding", "accept-language", "accept-charset": true
        default: false
        }
    }

    /// The one spelling of `members`, the list in all lines of the field `name` (in lower case).
    static func normalised(_ name: String, _ members: [ArraySlice<UInt8>]) -> [UInt8] {
        if name == "accept-encoding" { return codings(members) }
        let spelled = members.map { member in
            // What is malformed stands for itself: nobody knows what the origin makes of it.
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
            // Of duplicates the least counts, as with directives.
            let name = canonical(preference.value)
            weights[name] = min(weights[name] ?? Preference.full, preference.weight)
        }
        let identity = Array("identity".utf8)
        let any = Array("*".utf8)
        if weights[any] == 0 {
            // What is not listed is not acceptable anyway, but for identity.
            weights[any] = nil
            if weights[identity] == nil { weights[identity] = 0 }
        }
        if weights[any] == nil { weights = weights.filter { $0.value > 0 || $0.key == identity } }
        // With nothing beside it, how much identity is wanted makes no difference; it is acceptable unless refused.
        if let weight = weights[identity], weight > 0, weights.count == 1 { weights = [:] }
        var spelled = weights.map { Preference.spell($0.key, $0.value) }
        if isMalformed { spelled.append([ASCII.quote]) }
        spelled += mentioned.map { [ASCII.quote] + Array($0.utf8) }
        return joined(spelled)
    }

    /// The registered codings that an origin may answer with, in lower case, and what stands for all of them.
    private static let known = ["*", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "zstd"]

    private static func mentions(_ member: ArraySlice<UInt8>, _ coding: String) -> Bool {
        member.indices.contains { place in
            member.endIndex - place >= coding.utf8.count
                && zip(member[place...], coding.utf8).allSatisfy { ASCII.lower($0) == $1 }
        }
    }

    /// RFC 9110 section 8.4.1.1 and 8.4.1.3: the old names mean the same.
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

/// One member: what is preferred, its parameters, its weight.
struct Preference {
    /// A weight of 1, in thousandths.
    static let full = 1000

    /// In lower case.
    var value: [UInt8]
    /// In the order of their spelling; names in lower case.
    var parameters: [[UInt8]] = []
    /// In thousandths.
    var weight = Self.full

    var spelled: [UInt8] {
        Self.spell(value + parameters.flatMap { [ASCII.semicolon] + $0 }, weight)
    }

    static func spell(_ value: [UInt8], _ weight: Int) -> [UInt8] {
        weight == full ? value : value + Array(";q=\(weight)".utf8)
    }

    /// nil where the member does not follow the grammar.
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

    /// At semicolons outside of quoted strings, without the whitespace around them; never empty.
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

    /// RFC 9110 section 12.4.2: 0 to 1 with at most three decimals.
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
