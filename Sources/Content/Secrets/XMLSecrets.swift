// The positions of secrets in XML, or in the beginning of one: the texts of elements, and the values of attributes.

/// One pass over a text, which need not be valid. Namespaces are ignored.
struct XMLSecrets {
    private struct Element {
        let name: SecretNames.ContentName
        var children = SiblingSecrets()
        /// The range of the first text in the element, without surrounding spaces.
        var text: Range<Int>?
    }

    private let text: [UInt8]
    private let rules: SecretContent
    private var names: ContentNames
    private var position = 0
    private var found: [Range<Int>] = []
    /// The elements that are open, outermost first. Elements deeper than ``deepest`` are not recorded.
    private var elements: [Element] = []
    private var tooDeep = 0

    private static let deepest = 512

    init(_ text: [UInt8], _ rules: SecretContent) {
        self.text = text
        self.rules = rules
        names = ContentNames(rules)
    }

    /// The ranges of the values to hide.
    consuming func ranges() -> [Range<Int>] {
        while position < text.count {
            guard text[position] == UInt8(ascii: "<") else {
                let begin = position
                position = index(of: "<", from: position) ?? text.count
                see(text: begin..<position)
                continue
            }
            if starts("<!--") {
                skip(behind: "-->")
            } else if starts("<![CDATA[") {
                let begin = min(position + 9, text.count)
                skip(behind: "]]>")
                let isClosed = text[begin..<position].suffix(3).elementsEqual("]]>".utf8)
                see(text: begin..<(isClosed ? position - 3 : position))
            } else if starts("<?") {
                skip(behind: "?>")
            } else if starts("<!") {
                skip(behind: ">")
            } else if starts("</") {
                skip(behind: ">")
                end()
            } else {
                begin()
            }
        }
        while !elements.isEmpty { end() }
        return found
    }

    /// The meaning of a name, without the prefix of its namespace.
    private mutating func content(_ name: ArraySlice<UInt8>) -> SecretNames.ContentName {
        let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
        if rules.isForLog, rules.isSecretInLog(local, mayBeSeveral: false) { return .secret }
        return names.content(local)
    }

    /// Takes a tag that opens an element.
    private mutating func begin() {
        position += 1
        let name = word()
        let said = content(name)
        var attributes = SiblingSecrets()
        var isEmpty = false
        while position < text.count, text[position] != UInt8(ascii: ">") {
            if text[position] == UInt8(ascii: "/") {
                isEmpty = position + 1 < text.count && text[position + 1] == UInt8(ascii: ">")
                position += 1
                continue
            }
            let attribute = word()
            guard !attribute.isEmpty else {
                position += 1
                continue
            }
            skipSpace()
            guard position < text.count, text[position] == UInt8(ascii: "=") else { continue }
            position += 1
            skipSpace()
            guard position < text.count, text[position] == UInt8(ascii: "\"") || text[position] == UInt8(ascii: "'")
            else {
                continue
            }
            let quote = text[position]
            let begin = position + 1
            position = text[begin...].firstIndex(of: quote) ?? text.count
            attributes.see(content(attribute), value: begin..<position, &found)
            position = min(position + 1, text.count)
        }
        attributes.end(&found)
        position = min(position + 1, text.count)
        if isEmpty { return }
        if elements.count < Self.deepest { elements.append(Element(name: said)) } else { tooDeep += 1 }
    }

    /// Takes a tag that closes an element, whatever its name.
    private mutating func end() {
        if tooDeep > 0 {
            tooDeep -= 1
            return
        }
        guard let element = elements.popLast() else { return }
        element.children.end(&found)
        if elements.isEmpty {
            if let text = element.text, element.name.contains(.secret) { found.append(text) }
        } else {
            elements[elements.count - 1].children.see(element.name, value: element.text, &found)
        }
    }

    private mutating func see(text range: Range<Int>) {
        guard tooDeep == 0, let last = elements.indices.last, !elements[last].name.isEmpty else { return }
        let isSpace = { (byte: UInt8) in [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
        guard let first = text[range].firstIndex(where: { !isSpace($0) }),
            let end = text[range].lastIndex(where: { !isSpace($0) })
        else { return }
        if elements[last].text == nil {
            elements[last].text = first..<end + 1
        } else if elements[last].name.contains(.secret) {
            // This text comes after a comment or a child.
            found.append(first..<end + 1)
        }
    }

    // MARK: - Bytes

    /// Takes a name, up to the first character that no name has.
    private mutating func word() -> ArraySlice<UInt8> {
        let begin = position
        while position < text.count, text[position] > 32, !"/>=\"'<".utf8.contains(text[position]) { position += 1 }
        return text[begin..<position]
    }

    private mutating func skipSpace() {
        while position < text.count, text[position] <= 32 { position += 1 }
    }

    private func starts(_ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard text.count - position >= count else { return false }
        return word.withUTF8Buffer { text[position..<position + count].elementsEqual($0) }
    }

    private mutating func skip(behind word: StaticString) {
        while position < text.count, !starts(word) { position += 1 }
        position = min(position + word.utf8CodeUnitCount, text.count)
    }

    private func index(of character: Unicode.Scalar, from start: Int) -> Int? {
        text[start...].firstIndex(of: UInt8(ascii: character))
    }
}
