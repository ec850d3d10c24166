// `${NAME}` and `${NAME:-default}` in values.

enum Expansion {
    /// The text with every variable replaced, and whether there was one. `$${` stands for a literal `${`.
    static func expand(
        _ text: String,
        _ environment: [String: String]
    ) throws(ScalarProblem) -> (text: String, found: Bool) {
        guard text.contains("${") else { return (text, false) }
        var rest = text[...]
        var result = ""
        var found = false
        while let dollar = rest.firstRange(of: "${") {
            if rest[..<dollar.lowerBound].last == "$" {
                result += rest[..<dollar.lowerBound].dropLast() + "${"
                rest = rest[dollar.upperBound...]
                continue
            }
            result += rest[..<dollar.lowerBound]
            guard let end = closingBrace(rest[dollar.upperBound...]) else {
                throw ScalarProblem("'${' has no '}'; add it, or write $${ for a literal '${'")
            }
            result += try value(of: rest[dollar.upperBound..<end], environment)
            rest = rest[rest.index(after: end)...]
            found = true
        }
        return (result + rest, found)
    }

    private static func value(
        of reference: Substring,
        _ environment: [String: String]
    ) throws(ScalarProblem) -> String {
        let parts = reference.firstRange(of: ":-")
        let name = String(parts.map { reference[..<$0.lowerBound] } ?? reference)
        guard let first = name.utf8.first, !(48...57).contains(first), name.utf8.allSatisfy(isNameByte) else {
            throw ScalarProblem(
                "'${\(reference)}' does not name an environment variable; write ${NAME} or ${NAME:-default}"
            )
        }
        if let value = environment[name], parts == nil || !value.isEmpty { return value }
        guard let parts else {
            throw ScalarProblem(
                "the environment variable \(name) is not set; set it, or write ${\(name):-default}",
                isOfProcess: true
            )
        }
        return try expand(String(reference[parts.upperBound...]), environment).text
    }

    /// The brace that closes a reference, past the references inside its default.
    private static func closingBrace(_ text: Substring) -> Substring.Index? {
        var depth = 1
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            if text[index] == "}" {
                depth -= 1
                if depth == 0 { return index }
            } else if text[index] == "$", next < text.endIndex, text[next] == "{" {
                depth += 1
            }
            index = next
        }
        return nil
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte == 95 || (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
}
