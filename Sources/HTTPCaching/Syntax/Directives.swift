// Splits a Cache-Control field value into directives (RFC 9111 section 5.2), reading what is malformed as
// strictly as it can be meant.

/// One cache directive: a lower-case name with what stood behind its `=`.
struct Directive: Equatable {
    enum Argument: Equatable {
        case none
        case value([UInt8])
        /// Something stood there that the grammar does not allow.
        case malformed
    }

    var name: String
    var argument: Argument

    static func parse(_ value: [UInt8]) -> [Directive] {
        var directives: [Directive] = []
        for member in ASCII.listMembers(value) {
            if let directive = strict(member) {
                directives.append(directive)
            } else {
                // A member that does not parse still forbids what its words forbid, and never allows anything.
                let words = member.split { byte in
                    ASCII.isSpace(byte) || byte == ASCII.semicolon || byte == ASCII.equals || byte == ASCII.quote
                }
                for word in words {
                    directives.append(Directive(name: ASCII.lowercased(word), argument: .malformed))
                }
            }
        }
        return directives
    }

    /// token [ "=" ( token / quoted-string ) ], or nil.
    private static func strict(_ member: ArraySlice<UInt8>) -> Directive? {
        guard let equals = member.firstIndex(of: ASCII.equals) else {
            return ASCII.isToken(member) ? Directive(name: ASCII.lowercased(member), argument: .none) : nil
        }
        let name = member[..<equals]
        let argument = member[(equals + 1)...]
        guard ASCII.isToken(name) else { return nil }
        let value: [UInt8]
        if argument.first == ASCII.quote {
            guard let unquoted = unquote(Array(argument)) else { return nil }
            value = unquoted
        } else {
            guard ASCII.isToken(argument) else { return nil }
            value = Array(argument)
        }
        return Directive(name: ASCII.lowercased(name), argument: .value(value))
    }

    private static func unquote(_ bytes: [UInt8]) -> [UInt8]? {
        guard ASCII.endOfQuotedString(bytes, from: 0) == bytes.count else { return nil }
        var result: [UInt8] = []
        var escaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            if byte == ASCII.backslash, !escaped {
                escaped = true
            } else {
                result.append(byte)
                escaped = false
            }
        }
        return result
    }
}
