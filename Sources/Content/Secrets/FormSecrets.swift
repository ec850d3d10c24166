// Where secrets stand in a form: the values of items, by their names and their siblings.

/// Items end at `&`, and at `;` for those who read them so: a value is hidden in both readings.
struct FormSecrets {
    private let text: [UInt8]
    private let rules: SecretContent

    init(_ text: [UInt8], _ rules: SecretContent) {
        self.text = text
        self.rules = rules
    }

    /// Where the values are that are to be hidden.
    func ranges() -> [Range<Int>] {
        var names = ContentNames(rules)
        var found: [Range<Int>] = []
        var items = SiblingSecrets()
        for item in pieces(text.indices, at: UInt8(ascii: "&")) {
            let parts = pieces(item, at: UInt8(ascii: ";"))
            see(item, &names, &items, &found)
            // The first of several is the beginning of the item, which was looked at as a whole.
            for part in parts.dropFirst() { see(part, &names, &items, &found) }
        }
        items.end(&found)
        return found
    }

    private func see(
        _ item: Range<Int>,
        _ names: inout ContentNames,
        _ items: inout SiblingSecrets,
        _ found: inout [Range<Int>]
    ) {
        guard let sign = text[item].firstIndex(of: UInt8(ascii: "=")) else { return }
        let name = PercentEncoding.decode(form: text[item.lowerBound..<sign])
        let value = sign + 1..<item.upperBound
        if rules.isForLog, rules.isSecretInLog(name, mayBeSeveral: !text[value].allSatisfy { 48...57 ~= $0 }) {
            found.append(value)
        } else {
            items.see(names.content(ArraySlice(name)), value: value, &found)
        }
    }

    private func pieces(_ range: Range<Int>, at separator: UInt8) -> [Range<Int>] {
        text[range].split(separator: separator).map { $0.startIndex..<$0.endIndex }
    }
}
