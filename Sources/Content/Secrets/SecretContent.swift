// Contents of requests and answers without their secrets: JSON, forms and XML, in any charset of Unicode.

import Trees

/// Hides the secrets of token endpoints and logins, by the names of members, items and elements (``SecretNames``).
package struct SecretContent: Sendable, Hashable {
    /// The names whose values are shown although they are secret, in lower case.
    package let shown: Set<String>
    /// Whether every value with a secret name is hidden, and not only those in the contents of logins.
    let isForLog: Bool

    /// - Parameter shown: the names whose values are shown although they are secret, in any case.
    package init(shown: some Sequence<String> = []) {
        self.init(shown: Set(shown.map { $0.lowercased() }), isForLog: false)
    }

    init(shown: Set<String>, isForLog: Bool) {
        self.shown = shown
        self.isForLog = isForLog
    }

    /// The rules for lines of a log.
    package var forLog: SecretContent { SecretContent(shown: shown, isForLog: true) }

    /// Whether the value of a field or of an item of a query is a secret, by its name.
    package func isSecret(_ name: String) -> Bool { SecretNames.contains(name) && !shown.contains(name.lowercased()) }

    /// Whether the value of a member or an item is a secret in a log.
    /// - Parameters:
    ///   - name: the name without escapes.
    ///   - mayBeSeveral: whether the value may be a list of secrets, if the name is a plural, rather than their number.
    func isSecretInLog(_ name: some Collection<UInt8>, mayBeSeveral: @autoclosure () -> Bool) -> Bool {
        let name = String(decoding: name, as: UTF8.self)
        if shown.contains(name.lowercased()) { return false }
        return SecretNames.contains(name) || mayBeSeveral() && SecretNames.containsPlural(name)
    }

    /// A content, or the beginning of one, with `***` in the place of each secret. It need not be valid: parts that
    /// cannot be parsed stay as they are. It takes one pass over the content, and memory for the hidden ranges.
    /// - Parameter type: the value of Content-Type; nil if there is none.
    package func hidden(_ content: [UInt8], type: String?) -> [UInt8] {
        guard let coded = UnicodeText(content) else { return content }
        let plain = coded.utf8
        let kind = ContentKind(plain, type: type)
        var ranges: [Range<Int>] =
            switch kind {
            case .json: JSONSecrets(plain, self).ranges()
            case .form: FormSecrets(plain, self).ranges()
            case .xml: XMLSecrets(plain, self).ranges()
            case .other: []
            }
        if ranges.isEmpty { return content }
        ranges.sort { $0.lowerBound < $1.lowerBound }
        let mark = Array((kind == .json ? "\"\(SecretURL.mark)\"" : SecretURL.mark).utf8)
        var result: [UInt8] = []
        result.reserveCapacity(plain.count)
        var position = 0
        for range in ranges where range.lowerBound >= position {
            result += plain[position..<range.lowerBound]
            result += mark
            position = range.upperBound
        }
        result += plain[position...]
        return coded.coded(result)
    }

    /// The bytes of a content's beginning that usually suffice to tell whether it may have secrets.
    package static let telling = 4096

    /// Whether ``hidden(_:type:)`` looks for secrets in a content; true if its beginning does not decide it.
    /// - Parameter beginning: ``telling`` bytes; fewer are the whole content.
    package func looks(into beginning: [UInt8], type: String?) -> Bool {
        guard let plain = UnicodeText(beginning)?.utf8 else { return false }
        if ContentKind(plain, type: type) != .other { return true }
        guard beginning.count >= Self.telling else { return false }
        // JSON may follow spaces, and a text without spaces may be a form.
        return plain.allSatisfy { [0x20, 0x09, 0x0A, 0x0D].contains($0) } || plain.allSatisfy { $0 > 32 && $0 < 127 }
    }

    /// The meaning of a name for the value beside it.
    func name(_ name: String) -> SecretNames.ContentName {
        if shown.contains(name.lowercased()) { return SecretNames.content(name).intersection(.companion) }
        return SecretNames.content(name)
    }
}

/// The kind of a content, by its type, or by its beginning if the type is unknown.
enum ContentKind {
    case json, form, xml, other

    init(_ content: [UInt8], type: String?) {
        let type = MediaType.essence(type ?? "")
        if type.hasSuffix("/json") || type.hasSuffix("+json") || type.hasSuffix("json-seq") || type.hasSuffix("ndjson")
        {
            self = .json
        } else if type == "application/x-www-form-urlencoded" {
            self = .form
        } else if type.hasSuffix("/xml") || type.hasSuffix("+xml") {
            self = .xml
        } else if type.isEmpty || type.hasPrefix("text/") || type == "application/octet-stream" {
            switch content.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
            case UInt8(ascii: "{"), UInt8(ascii: "["): self = .json
            case UInt8(ascii: "<"): self = type == "text/html" ? .other : .xml
            default:
                let isForm =
                    content.contains(UInt8(ascii: "=")) && content.allSatisfy { $0 > 32 && $0 < 127 }
                self = isForm ? .form : .other
            }
        } else {
            self = .other
        }
    }
}

/// A text as UTF-8 that may have been received as UTF-16 or UTF-32.
struct UnicodeText {
    private enum Coding { case utf8, wide(bytes: Int, isLittle: Bool) }

    let utf8: [UInt8]
    private let mark: [UInt8]
    private let coding: Coding

    /// Reads a content; nil if it is empty.
    init?(_ content: [UInt8]) {
        guard !content.isEmpty else { return nil }
        let marks: [([UInt8], Coding)] = [
            ([0xFF, 0xFE, 0, 0], .wide(bytes: 4, isLittle: true)),
            ([0, 0, 0xFE, 0xFF], .wide(bytes: 4, isLittle: false)),
            ([0xFF, 0xFE], .wide(bytes: 2, isLittle: true)), ([0xFE, 0xFF], .wide(bytes: 2, isLittle: false)),
            ([0xEF, 0xBB, 0xBF], .utf8),
        ]
        let (mark, coding) = marks.first { content.starts(with: $0.0) } ?? ([], Self.guessed(content))
        self.mark = mark
        self.coding = coding
        switch coding {
        case .utf8: utf8 = mark.isEmpty ? content : Array(content.dropFirst(mark.count))
        case .wide(let width, let isLittle):
            utf8 = Self.read(content.dropFirst(mark.count), width, isLittle)
        }
    }

    /// The coding, guessed from the zeros among the first characters, which are ASCII in JSON, XML and forms.
    private static func guessed(_ content: [UInt8]) -> Coding {
        let zeros = content.prefix(4).map { $0 == 0 }
        switch zeros {
        case [false, true, true, true]: return .wide(bytes: 4, isLittle: true)
        case [true, true, true, false]: return .wide(bytes: 4, isLittle: false)
        case _ where zeros.starts(with: [false, true]): return .wide(bytes: 2, isLittle: true)
        case _ where zeros.starts(with: [true, false]): return .wide(bytes: 2, isLittle: false)
        default: return .utf8
        }
    }

    private static func read(_ bytes: ArraySlice<UInt8>, _ width: Int, _ isLittle: Bool) -> [UInt8] {
        var units: [UInt32] = []
        units.reserveCapacity(bytes.count / width)
        var position = bytes.startIndex
        while position + width <= bytes.endIndex {
            let unit = bytes[position..<position + width]
            units.append((isLittle ? Array(unit.reversed()) : Array(unit)).reduce(0) { $0 << 8 | UInt32($1) })
            position += width
        }
        if width == 4 { return Array(String(decoding: units, as: UTF32.self).utf8) }
        return Array(String(decoding: units.map { UInt16(truncatingIfNeeded: $0) }, as: UTF16.self).utf8)
    }

    /// Another text in the coding of the content.
    func coded(_ text: [UInt8]) -> [UInt8] {
        guard case .wide(let width, let isLittle) = coding else { return mark + text }
        let string = String(decoding: text, as: UTF8.self)
        let units = width == 4 ? string.unicodeScalars.map(\.value) : string.utf16.map { UInt32($0) }
        return units.reduce(into: mark) { result, unit in
            let bytes = (0..<width).map { UInt8(truncatingIfNeeded: unit >> (8 * UInt32($0))) }
            result += isLittle ? bytes : bytes.reversed()
        }
    }
}

// MARK: - Siblings

/// The values of one object, form or element that are secret only beside a certain sibling, and the siblings so far.
struct SiblingSecrets {
    private var hasCompanion = false
    private var waiting: [Range<Int>] = []

    /// Takes a name with its value.
    /// - Parameters:
    ///   - value: the range of the value; nil if it cannot be hidden.
    ///   - ranges: gets the ranges to hide.
    mutating func see(_ name: SecretNames.ContentName, value: Range<Int>?, _ ranges: inout [Range<Int>]) {
        if name.contains(.companion) { hasCompanion = true }
        guard let value, !value.isEmpty else { return }
        if name.contains(.secret) { ranges.append(value) } else if name.contains(.beside) { waiting.append(value) }
    }

    /// Ends the object, form or element.
    func end(_ ranges: inout [Range<Int>]) {
        if hasCompanion { ranges += waiting }
    }
}

/// The meanings of the names in a content, each computed once: a long list repeats the same names.
struct ContentNames {
    private let rules: SecretContent
    private var known: [ArraySlice<UInt8>: SecretNames.ContentName] = [:]

    init(_ rules: SecretContent) { self.rules = rules }

    private static let mostKnown = 512
    /// The longest name that is examined, in bytes.
    private static let longest = 128
    /// A name that can be secret contains one of these.
    private static let hints = [
        "token", "pass", "secret", "saml", "assertion", "cvv", "cvc", "code", "otp", "pin", "grant",
    ]
    .map { Array($0.utf8) }

    /// The meaning of a name.
    /// - Parameter name: the name without escapes.
    mutating func content(_ name: ArraySlice<UInt8>) -> SecretNames.ContentName {
        guard name.count <= Self.longest, Self.hasHint(name) else { return [] }
        if let said = known[name] { return said }
        let said = rules.name(String(decoding: name, as: UTF8.self))
        // A slice would retain the whole content, so the name is copied; the number of names is bounded.
        if known.count < Self.mostKnown { known[ArraySlice(Array(name))] = said }
        return said
    }

    private static func hasHint(_ name: ArraySlice<UInt8>) -> Bool {
        for position in name.indices {
            let first = name[position] | 0x20
            for hint in hints where hint[0] == first && name.endIndex - position >= hint.count {
                if zip(name[position...], hint).allSatisfy({ $0 | 0x20 == $1 }) { return true }
            }
        }
        return false
    }
}

// MARK: - Forms

/// Secrets of a form. Items end at `&`, and for some parsers at `;`: a value is hidden in both readings.
struct FormSecrets {
    private let text: [UInt8]
    private let rules: SecretContent

    init(_ text: [UInt8], _ rules: SecretContent) {
        self.text = text
        self.rules = rules
    }

    /// The ranges of the values to hide.
    func ranges() -> [Range<Int>] {
        var names = ContentNames(rules)
        var found: [Range<Int>] = []
        var items = SiblingSecrets()
        for item in pieces(text.indices, at: UInt8(ascii: "&")) {
            let parts = pieces(item, at: UInt8(ascii: ";"))
            see(item, &names, &items, &found)
            // The first part is the beginning of the item, which was examined as a whole.
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
