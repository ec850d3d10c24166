// The positions of secrets in JSON, or in the beginning of one: the values of members, by their names and their siblings.

import Trees

/// One pass over a text, which need not be valid.
struct JSONSecrets {
    private let text: [UInt8]
    private let rules: SecretContent
    private var names: ContentNames
    private var position = 0
    private var found: [Range<Int>] = []
    /// The siblings in the objects that are open, outermost first. Objects deeper than ``deepest`` are not recorded.
    private var objects: [SiblingSecrets] = []
    private var tooDeep = 0

    private static let deepest = 512

    init(_ text: [UInt8], _ rules: SecretContent) {
        self.text = text
        self.rules = rules
        names = ContentNames(rules)
    }

    /// The ranges of the values to hide.
    consuming func ranges() -> [Range<Int>] {
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""): member()
            case UInt8(ascii: "{"):
                if objects.count < Self.deepest { objects.append(SiblingSecrets()) } else { tooDeep += 1 }
                position += 1
            case UInt8(ascii: "}"):
                if tooDeep > 0 { tooDeep -= 1 } else { objects.popLast()?.end(&found) }
                position += 1
            default: position += 1
            }
        }
        // The text ends inside of these objects.
        for object in objects { object.end(&found) }
        return found
    }

    private var peek: UInt8? { position < text.count ? text[position] : nil }

    /// Takes a text, which is the name of a member if a colon follows.
    private mutating func member() {
        let string = string()
        skipSpace()
        guard peek == UInt8(ascii: ":") else { return }
        position += 1
        skipSpace()
        guard let first = peek else { return }
        let name = Self.unescaped(string)
        if rules.isForLog, rules.isSecretInLog(name, mayBeSeveral: "\"[{".utf8.contains(first)) {
            let begin = position
            skipValue()
            found.append(begin..<position)
            return
        }
        let said = names.content(name)
        if said.isEmpty { return }
        if first == UInt8(ascii: "["), said.contains(.secret) { return hideElements() }
        let value = scalar(first)
        if objects.isEmpty || tooDeep > 0 {
            if let value, said.contains(.secret) { found.append(value) }
        } else {
            objects[objects.count - 1].see(said, value: value, &found)
        }
    }

    /// Takes a text or a number, and returns its range; nil for anything else, which is not consumed.
    private mutating func scalar(_ first: UInt8) -> Range<Int>? {
        let begin = position
        if first == UInt8(ascii: "\"") {
            let string = string()
            // An empty text reveals nothing.
            return string.count > 2 || string.last != UInt8(ascii: "\"") ? begin..<position : nil
        }
        guard first == UInt8(ascii: "-") || 48...57 ~= first else { return nil }
        while let byte = peek, 48...57 ~= byte || "+-.eE".utf8.contains(byte) { position += 1 }
        return begin..<position
    }

    /// Hides the texts and numbers of a list that has nothing else.
    private mutating func hideElements() {
        position += 1
        while true {
            skipSpace()
            guard let byte = peek else { return }
            if let value = scalar(byte) {
                found.append(value)
            } else if byte == UInt8(ascii: ",") {
                position += 1
            } else {
                return
            }
        }
    }

    /// Takes a string with its quotes; without the second one if the text ends in it.
    private mutating func string() -> ArraySlice<UInt8> {
        let start = position
        position += 1
        while position < text.count, text[position] != UInt8(ascii: "\"") {
            position += text[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        position = min(position + 1, text.count)
        return text[start..<position]
    }

    private mutating func skipSpace() {
        while let byte = peek, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
    }

    /// Skips a string, a number or a word, or a whole object or array.
    private mutating func skipValue() {
        var depth = 0
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                _ = string()
                if depth == 0 { return }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // This closes the object or array that the member is in.
                if depth == 0 { return }
                depth -= 1
                if depth == 0 {
                    position += 1
                    return
                }
            case UInt8(ascii: ",") where depth == 0: return
            default: break
            }
            position += 1
        }
    }

    /// The name without its quotes and escapes.
    private static func unescaped(_ string: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let inner = string.dropFirst().dropLast(string.count > 1 && string.last == UInt8(ascii: "\"") ? 1 : 0)
        guard inner.contains(UInt8(ascii: "\\")) else { return inner }
        return inner.withUnsafeBytes { JSONTokenizer.unescaped($0) }[...]
    }
}
